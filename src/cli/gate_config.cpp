#include "cli/gate_config.h"

// Header only: Debian's shared library would be one more thing to install beside the binary.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <span>

#include "analyse/rules.h"
#include "base/strings.h"

namespace kerntrail::cli {
namespace {

using Names = std::span<const std::string_view>;

// What fails closed whatever anybody allows.
constexpr std::array<std::string_view, 9> kNeverAllowed{"torn-capture", "partial-capture", "no-compile",
                                                        "not-observed", "missing-stage",   "missing-field",
                                                        "empty-stage",  "no-passes",       "no-witness"};

ConfigPlace place_of(const toml::source_region& region) { return {region.begin.line, region.begin.column}; }

std::vector<std::string> copied(Names names) { return {names.begin(), names.end()}; }

std::string list_of(const std::vector<std::string>& names) { return base::join(names, ", "); }

// One table of the document; `what` names it in messages: "[[coverage]]".
class TableReader {
 public:
  TableReader(const toml::table& table, std::string what, const std::string& path)
      : table_(table), what_(std::move(what)), path_(path) {}

  ConfigPlace place() const { return place_of(table_.source()); }

  tl::unexpected<Error> bad(ConfigPlace at, std::string message) const {
    return tl::unexpected<Error>({ErrorCode::kSchema, std::move(message), path_, at.line, at.column});
  }
  tl::unexpected<Error> bad(std::string_view key, std::string_view message) const {
    const toml::node* node = table_.get(key);
    return bad(node == nullptr ? place() : place_of(node->source()), fmt::format("{} {}: {}", what_, key, message));
  }

  Expected<void> only(Names known) const {
    for (const auto& [key, value] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      const std::string near = base::nearest(key.str(), copied(known));
      return bad(place_of(key.source()),
                 fmt::format("{} has no member \"{}\"{}", what_, key.str(),
                             near.empty() ? "; it has " + list_of(copied(known)) : "; did you mean " + near + "?"));
    }
    return {};
  }

  bool holds(std::string_view key) const { return table_.contains(key); }

  Expected<void> text(std::string_view key, std::string& into) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->value<std::string>();
    if (!node->is_string() || base::trim(*value).empty()) return bad(key, "must be a text that is not empty");
    into = *value;
    return {};
  }
  // A text or a list of them.
  Expected<void> texts(std::string_view key, std::vector<std::string>& into) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    if (node->is_string()) return text(key, into.emplace_back());
    const toml::array* list = node->as_array();
    if (list == nullptr || list->empty()) return bad(key, "must be a text, or a list of texts that is not empty");
    for (const toml::node& item : *list) {
      const auto value = item.value<std::string>();
      if (!item.is_string() || base::trim(*value).empty())
        return bad(place_of(item.source()), fmt::format("{} {}: must hold texts that are not empty", what_, key));
      into.push_back(*value);
    }
    return {};
  }
  Expected<void> ratio(std::string_view key, double& into) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->value<double>();
    if (!node->is_number() || !(*value >= 0.0 && *value <= 1.0))
      return bad(key, "must be a ratio from 0 to 1; a gate knows no counts, since they change with the model");
    into = *value;
    return {};
  }
  Expected<void> ratio(std::string_view key, std::optional<double>& into) const {
    if (!holds(key)) return {};
    return ratio(key, into.emplace(0.0));
  }
  Expected<void> choice(std::string_view key, Names words, std::string& into) const {
    KERNTRAIL_CHECK(text(key, into));
    if (!holds(key) || std::find(words.begin(), words.end(), into) != words.end()) return {};
    return bad(key, wrong_word(into, copied(words)));
  }
  static std::string wrong_word(const std::string& word, const std::vector<std::string>& known) {
    const std::string near = base::nearest(word, known);
    return fmt::format("is \"{}\"{}", word,
                       near.empty() ? ", and must be one of " + list_of(known) : "; did you mean " + near + "?");
  }
  Expected<void> needs(std::string_view key, std::string_view why) const {
    if (holds(key)) return {};
    return bad(place(), fmt::format("{} has no \"{}\": {}", what_, key, why));
  }
  Expected<void> day(std::string_view key, std::string& into) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->value<toml::date>();
    if (!node->is_date()) return bad(key, "must be a day, unquoted: 2027-01-31");
    into = fmt::format("{:04}-{:02}-{:02}", value->year, value->month, value->day);
    return {};
  }

 private:
  const toml::table& table_;
  std::string what_;
  const std::string& path_;
};

class ConfigReader {
 public:
  ConfigReader(const toml::table& root, const std::string& path) : root_(root), path_(path) { config_.path = path; }

  Expected<GateConfig> all() {
    constexpr std::array<std::string_view, 7> kKnown{"gate",  "coverage", "drops",   "verified",
                                                     "hooks", "allow",    "baseline"};
    KERNTRAIL_CHECK(TableReader(root_, "the configuration", path_).only(kKnown));
    KERNTRAIL_CHECK(table("gate", &ConfigReader::gate));
    KERNTRAIL_CHECK(table("baseline", &ConfigReader::baseline));
    KERNTRAIL_CHECK(table("hooks", &ConfigReader::hooks));
    KERNTRAIL_CHECK(tables("coverage", &ConfigReader::coverage));
    KERNTRAIL_CHECK(tables("drops", &ConfigReader::drops));
    KERNTRAIL_CHECK(tables("verified", &ConfigReader::verified));
    KERNTRAIL_CHECK(tables("allow", &ConfigReader::allow));
    return std::move(config_);
  }

 private:
  using Section = Expected<void> (ConfigReader::*)(const TableReader&);

  Expected<void> table(std::string_view name, Section read) {
    const toml::node* node = root_.get(name);
    if (node == nullptr) return {};
    const TableReader root(root_, "the configuration", path_);
    if (!node->is_table()) return root.bad(name, fmt::format("must be a table: write [{}]", name));
    return (this->*read)(TableReader(*node->as_table(), fmt::format("[{}]", name), path_));
  }
  Expected<void> tables(std::string_view name, Section read) {
    const toml::node* node = root_.get(name);
    if (node == nullptr) return {};
    const TableReader root(root_, "the configuration", path_);
    const toml::array* list = node->as_array();
    if (list == nullptr) return root.bad(name, fmt::format("must be a list of tables: write [[{}]]", name));
    for (const toml::node& item : *list) {
      if (!item.is_table()) return root.bad(name, fmt::format("must be a list of tables: write [[{}]]", name));
      KERNTRAIL_CHECK((this->*read)(TableReader(*item.as_table(), fmt::format("[[{}]]", name), path_)));
    }
    return {};
  }

  Expected<void> gate(const TableReader& t) {
    constexpr std::array<std::string_view, 2> kKnown{"name", "intents"};
    KERNTRAIL_CHECK(t.only(kKnown));
    KERNTRAIL_CHECK(t.text("name", config_.name));
    return t.text("intents", config_.intents);
  }

  Expected<void> baseline(const TableReader& t) {
    constexpr std::array<std::string_view, 2> kKnown{"tolerance", "ignore"};
    constexpr std::array<std::string_view, 8> kMembers{"model",    "backend", "torch",  "level", "provenance_level",
                                                       "metadata", "compile", "sources"};
    KERNTRAIL_CHECK(t.only(kKnown));
    KERNTRAIL_CHECK(t.ratio("tolerance", config_.tolerance));
    KERNTRAIL_CHECK(t.texts("ignore", config_.ignore));
    return words(t, "ignore", config_.ignore, copied(kMembers));
  }

  static Expected<void> words(const TableReader& t, std::string_view key, const std::vector<std::string>& list,
                              const std::vector<std::string>& known) {
    for (const std::string& word : list) {
      if (std::find(known.begin(), known.end(), word) == known.end())
        return t.bad(key, TableReader::wrong_word(word, known));
    }
    return {};
  }

  Expected<void> hooks(const TableReader& t) {
    constexpr std::array<std::string_view, 6> kKnown{"absent",       "failed",   "errors",
                                                     "not_restored", "required", "expected_absent"};
    KERNTRAIL_CHECK(t.only(kKnown));
    config_.hooks.at = t.place();
    const std::array<std::pair<std::string_view, bool*>, 4> switches{{{"absent", &config_.hooks.absent},
                                                                      {"failed", &config_.hooks.failed},
                                                                      {"errors", &config_.hooks.errors},
                                                                      {"not_restored", &config_.hooks.not_restored}}};
    constexpr std::array<std::string_view, 2> kWords{"fail", "ignore"};
    for (const auto& [key, into] : switches) {
      std::string word = *into ? "fail" : "ignore";
      KERNTRAIL_CHECK(t.choice(key, kWords, word));
      *into = word == "fail";
    }
    KERNTRAIL_CHECK(t.texts("required", config_.hooks.required));
    return t.texts("expected_absent", config_.hooks.expected_absent);
  }

  Expected<void> coverage(const TableReader& t) {
    constexpr std::array<std::string_view, 6> kKnown{"stages", "fields", "backend", "direction", "min", "count"};
    constexpr std::array<std::string_view, 2> kCounts{"present", "kept"};
    constexpr std::array<std::string_view, 2> kDirections{"forward", "backward"};
    KERNTRAIL_CHECK(t.only(kKnown));
    CoverageRule rule;
    rule.at = t.place();
    std::string count = "present";
    KERNTRAIL_CHECK(t.needs("stages", "which stages to look at, e.g. \"fx_post_grad\"; \"*\" for all"));
    KERNTRAIL_CHECK(t.needs("fields", "which fields, e.g. \"stack_trace\"; \"*\" for all"));
    KERNTRAIL_CHECK(t.needs("min", "the least share of units that has it; 1.0: every one"));
    KERNTRAIL_CHECK(t.texts("stages", rule.stages));
    KERNTRAIL_CHECK(t.texts("fields", rule.fields));
    KERNTRAIL_CHECK(t.text("backend", rule.backend));
    KERNTRAIL_CHECK(t.choice("direction", kDirections, rule.direction));
    KERNTRAIL_CHECK(t.ratio("min", rule.min));
    KERNTRAIL_CHECK(t.choice("count", kCounts, count));
    rule.kept = count == "kept";
    config_.coverage.push_back(std::move(rule));
    return {};
  }

  Expected<void> drops(const TableReader& t) {
    constexpr std::array<std::string_view, 5> kKnown{"classes", "stages", "fields", "passes", "max"};
    KERNTRAIL_CHECK(t.only(kKnown));
    DropRule rule;
    rule.at = t.place();
    KERNTRAIL_CHECK(
        t.needs("classes", "which losses, e.g. [\"dropped\", \"overwritten\"]; kerntrail rules lists them"));
    KERNTRAIL_CHECK(t.texts("classes", rule.classes));
    KERNTRAIL_CHECK(words(t, "classes", rule.classes, gate_classes()));
    KERNTRAIL_CHECK(t.texts("stages", rule.stages));
    KERNTRAIL_CHECK(t.texts("fields", rule.fields));
    KERNTRAIL_CHECK(t.texts("passes", rule.passes));
    KERNTRAIL_CHECK(t.ratio("max", rule.max));
    config_.drops.push_back(std::move(rule));
    return {};
  }

  Expected<void> verified(const TableReader& t) {
    constexpr std::array<std::string_view, 6> kKnown{"stages", "classes",       "evidence",
                                                     "of",     "min_precision", "min_recall"};
    constexpr std::array<std::string_view, 2> kOf{"lines", "nodes"};
    KERNTRAIL_CHECK(t.only(kKnown));
    VerifiedRule rule;
    rule.at = t.place();
    std::string of = "lines";
    KERNTRAIL_CHECK(t.texts("stages", rule.stages));
    KERNTRAIL_CHECK(t.texts("classes", rule.classes));
    KERNTRAIL_CHECK(t.texts("evidence", rule.evidence));
    KERNTRAIL_CHECK(t.choice("of", kOf, of));
    KERNTRAIL_CHECK(t.ratio("min_precision", rule.min_precision));
    KERNTRAIL_CHECK(t.ratio("min_recall", rule.min_recall));
    rule.nodes = of == "nodes";
    if (!rule.min_precision && !rule.min_recall)
      return t.bad(t.place(), "[[verified]] asks for nothing: it needs min_precision or min_recall");
    config_.verified.push_back(std::move(rule));
    return {};
  }

  Expected<void> allow(const TableReader& t) {
    constexpr std::array<std::string_view, 9> kKnown{"rule", "stage",  "field", "pass",   "place",
                                                     "unit", "reason", "owner", "expires"};
    KERNTRAIL_CHECK(t.only(kKnown));
    AllowEntry entry;
    entry.at = t.place();
    const std::array<std::pair<std::string_view, std::string*>, 8> members{{{"rule", &entry.rule},
                                                                            {"stage", &entry.stage},
                                                                            {"field", &entry.field},
                                                                            {"pass", &entry.pass},
                                                                            {"place", &entry.place},
                                                                            {"unit", &entry.unit},
                                                                            {"reason", &entry.reason},
                                                                            {"owner", &entry.owner}}};
    for (const auto& [key, into] : members) KERNTRAIL_CHECK(t.text(key, *into));
    KERNTRAIL_CHECK(t.needs("reason", "why is this fine?"));
    KERNTRAIL_CHECK(t.needs("owner", "who answers for it?"));
    KERNTRAIL_CHECK(t.needs("expires", "until when? A day: 2027-01-31"));
    KERNTRAIL_CHECK(t.day("expires", entry.expires));
    if (entry.rule.empty() && entry.pass.empty() && entry.place.empty() && entry.unit.empty() && entry.field.empty())
      return t.bad(t.place(), "[[allow]] would allow everything: say which rule, pass, place, unit or field");
    KERNTRAIL_CHECK(allowable(t, entry.rule));
    config_.allow.push_back(std::move(entry));
    return {};
  }

  static Expected<void> allowable(const TableReader& t, const std::string& rule) {
    if (rule.empty() || rule.find('*') != std::string::npos) return {};
    if (std::find(kNeverAllowed.begin(), kNeverAllowed.end(), rule) != kNeverAllowed.end())
      return t.bad("rule",
                   fmt::format("\"{}\" can't be allowed: what is missing or was not seen is never a pass", rule));
    std::vector<std::string> known = gate_classes();
    for (const analyse::Rule& row : analyse::rules()) {
      if (row.axis == "gate" && std::find(kNeverAllowed.begin(), kNeverAllowed.end(), row.id) == kNeverAllowed.end())
        known.emplace_back(row.id);
    }
    return words(t, "rule", {rule}, known);
  }

  const toml::table& root_;
  const std::string& path_;
  GateConfig config_;
};

}  // namespace

Expected<GateConfig> parse_gate_config(std::string_view toml, const std::string& path) {
  const toml::parse_result parsed = toml::parse(toml, path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    const ConfigPlace at = place_of(error.source());
    return tl::unexpected<Error>(
        {ErrorCode::kSyntax, fmt::format("is not TOML: {}", error.description()), path, at.line, at.column});
  }
  return ConfigReader(parsed.table(), path).all();
}

}  // namespace kerntrail::cli
