#include "analyse/intents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analyse/pass_path.h"
#include "base/json.h"
#include "base/json_place.h"
#include "base/strings.h"

namespace kerntrail {
namespace {

using analyse::kWithin;

constexpr std::array<std::string_view, 3> kKinds{"synthesises", "removes", "remaps"};

Intent built_in(std::string pass, IntentKind kind, std::string reason) {
  Intent intent;
  intent.pass = std::move(pass);
  intent.kind = kind;
  intent.reason = std::move(reason);
  intent.origin = "built-in";
  return intent;
}

Intent for_targets(Intent intent, std::vector<std::string> targets) {
  intent.targets = std::move(targets);
  return intent;
}

Intent for_fields(Intent intent, std::string subsystem, std::vector<std::string> fields) {
  intent.subsystem = std::move(subsystem);
  intent.fields = std::move(fields);
  return intent;
}

// Reads one member of the document; the place is spelled for the message.
class Reader {
 public:
  Reader(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  tl::unexpected<Error> bad(const std::string& place, std::string_view message) const {
    const base::TextPlace at = base::find_json(text_, place);
    return tl::unexpected<Error>(
        {ErrorCode::kSchema, fmt::format("{}: {}", place, message), path_, at.line, at.column});
  }

  Expected<Intent> intent(const base::Json& json, const std::string& place) const {
    if (!json.is_object()) return bad(place, "must be an object");
    Intent result;
    result.origin = path_;
    for (const auto& [key, value] : json.as_object()) {
      const std::string here = place + "." + key;
      if (std::string* into = text_member(result, key)) {
        if (!value.is_string() || value.as_string().empty()) return bad(here, "must be a text that is not empty");
        *into = value.as_string();
      } else if (std::vector<std::string>* list = list_member(result, key)) {
        KERNTRAIL_TRY(*list, texts(value, here));
      } else if (key == "kind") {
        const auto* found = std::find(kKinds.begin(), kKinds.end(), value.as_string());
        if (found == kKinds.end()) return bad(here, "must be \"synthesises\", \"removes\" or \"remaps\"");
        result.kind = static_cast<IntentKind>(found - kKinds.begin());
      } else {
        return bad(here, "is no member of an intent: pass, kind, reason, subsystem, pattern, targets, fields");
      }
    }
    for (std::string_view needed : {"pass", "kind", "reason"}) {
      if (json.find(needed) == nullptr) return bad(place, fmt::format("\"{}\" is missing", needed));
    }
    if (!result.fields.empty() && result.kind != IntentKind::kRemaps)
      return bad(place + ".fields", "belongs to an intent of kind \"remaps\"");
    return result;
  }

 private:
  static std::string* text_member(Intent& intent, std::string_view key) {
    if (key == "pass") return &intent.pass;
    if (key == "reason") return &intent.reason;
    if (key == "subsystem") return &intent.subsystem;
    return key == "pattern" ? &intent.pattern : nullptr;
  }
  static std::vector<std::string>* list_member(Intent& intent, std::string_view key) {
    if (key == "targets") return &intent.targets;
    return key == "fields" ? &intent.fields : nullptr;
  }

  Expected<std::vector<std::string>> texts(const base::Json& json, const std::string& place) const {
    if (!json.is_array()) return bad(place, "must be a list of texts");
    std::vector<std::string> result;
    for (std::size_t i = 0; i < json.as_array().size(); ++i) {
      const base::Json& item = json.as_array()[i];
      if (!item.is_string() || item.as_string().empty())
        return bad(fmt::format("{}[{}]", place, i), "must be a text that is not empty");
      result.emplace_back(item.as_string());
    }
    return result;
  }

  std::string_view text_;
  std::string path_;
};

bool names_part(std::string_view pattern, std::string_view part) {
  if (pattern.empty() || pattern.back() != '*') return pattern == part;
  return part.substr(0, pattern.size() - 1) == pattern.substr(0, pattern.size() - 1);
}

void add_parts(std::string_view text, std::vector<std::string_view>& out) {
  for (std::size_t at = text.find(kWithin); at != std::string_view::npos; at = text.find(kWithin)) {
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + kWithin.size());
  }
  out.push_back(text);
}

// Whether the intent's parts are a run of the path's that ends within the pass's own name: its last `own` parts.
bool names_path(const std::vector<std::string_view>& wanted, const std::vector<std::string_view>& path,
                std::size_t own) {
  for (std::size_t last = path.size() - own; last < path.size(); ++last) {
    if (wanted.size() > last + 1) continue;
    const auto from = path.begin() + static_cast<std::ptrdiff_t>(last + 1 - wanted.size());
    if (std::equal(wanted.begin(), wanted.end(), from, names_part)) return true;
  }
  return false;
}

// Matches one pass after the other against intents; passes of one path are matched once.
class PassNames {
 public:
  explicit PassNames(const std::vector<Intent>& intents) {
    for (const Intent& intent : intents) {
      plain_.push_back(base::replace_all(intent.pass, "`", ""));  // as copied out of Markdown
    }
    for (const std::string& text : plain_) add_parts(text, parts_.emplace_back());
  }

  // Indices of the intents that name the pass.
  const std::vector<std::uint32_t>& of(const Capture& capture, PassId pass) {
    std::vector<std::string_view> path = analyse::shown_path(capture, pass);
    const auto [place, fresh] = known_.try_emplace(path);
    if (!fresh) return place->second;
    std::vector<std::string_view> parts;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) add_parts(path[i], parts);
    const std::size_t around = parts.size();
    add_parts(path.back(), parts);
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      if (names_path(parts_[i], parts, parts.size() - around)) place->second.push_back(i);
    }
    return place->second;
  }

 private:
  std::vector<std::string> plain_;
  std::vector<std::vector<std::string_view>> parts_;
  std::map<std::vector<std::string_view>, std::vector<std::uint32_t>> known_;
};

template <class Test>
bool any_or_none(const std::vector<std::string>& list, Test test) {
  return list.empty() || std::any_of(list.begin(), list.end(), test);
}

}  // namespace

std::string_view intent_kind_name(IntentKind v) { return kKinds[static_cast<std::size_t>(v)]; }

// Only what is by design. A pass that could copy metadata and does not is a loss, however well known it is.
const std::vector<Intent>& builtin_intents() {
  static const std::vector<Intent> kIntents{
      for_targets(built_in("constant_fold_uniform_value", IntentKind::kSynthesises,
                           "a value that is the same everywhere is written as one new constant"),
                  {"aten.full", "aten.scalar_tensor"}),
      built_in("remove_noop_ops", IntentKind::kRemoves, "an op that does nothing gives its uses to its input"),
      built_in("remove_assert_ops", IntentKind::kRemoves, "assertions are not compiled"),
      built_in("remove_profiler_ops", IntentKind::kRemoves, "profiler marks are not compiled"),
      built_in("remove_identity", IntentKind::kRemoves, "an identity gives its uses to its input"),
      built_in("insert_restickify", IntentKind::kSynthesises,
               "a change of device layout; it belongs to no operation of the model"),
      built_in("insert_post_mutation_restickify", IntentKind::kSynthesises,
               "a change of device layout after a mutation; it belongs to no operation of the model"),
      built_in("insert_bmm_padding", IntentKind::kSynthesises,
               "padding up to the device's block size; it belongs to no operation of the model"),
      built_in("deadcode_elimination", IntentKind::kRemoves, "nothing reads what these operations compute"),
      for_fields(built_in("relabel_linear_permutes", IntentKind::kRemaps,
                          "emulation: on the device linear is dispatched whole and owns its permute"),
                 "kerntrail_spyre", {"original_aten"}),
  };
  return kIntents;
}

Expected<std::vector<Intent>> parse_intents(std::string_view json, std::string_view path) {
  const Reader reader(json, path);
  auto read = base::Json::parse(json, path);
  if (!read) {
    const base::TextPlace at = base::find_json_end(json);
    read.error().line = at.line;
    read.error().column = at.column;
    return tl::unexpected(std::move(read.error()));
  }
  const base::Json document = std::move(*read);
  if (!document.is_object()) return reader.bad("the file", "must be an object with a list \"intents\"");
  for (const auto& [key, value] : document.as_object()) {
    if (key == "$schema") continue;  // for editors
    if (key != "intents" && key != "version")
      return reader.bad(key, "is no member of the file: $schema, version, intents");
    if (key == "version" && value != base::Json(1)) return reader.bad(key, "must be 1");
  }
  if (!document["intents"].is_array()) return reader.bad("intents", "must be a list");
  std::vector<Intent> result;
  for (std::size_t i = 0; i < document["intents"].as_array().size(); ++i) {
    KERNTRAIL_TRY(auto intent, reader.intent(document["intents"].as_array()[i], fmt::format("intents[{}]", i)));
    result.push_back(std::move(intent));
  }
  return result;
}

namespace {

struct Names {
  std::vector<std::string> in_order;
  std::set<std::string> known;
  void add(std::string name) {
    if (!name.empty() && known.insert(name).second) in_order.push_back(std::move(name));
  }
};

// What intents may name, as far as the passes that one of them names have it.
struct Nameable {
  bool pass = false, subsystem = false, pattern = false;
  Names subsystems, patterns;
};

std::vector<Nameable> nameable(const Capture& capture, const std::vector<Intent>& intents, Names& paths) {
  std::vector<Nameable> out(intents.size());
  PassNames names(intents);
  std::vector<std::vector<std::uint32_t>> of_pass(capture.passes.size());
  for (std::size_t p = 0; p < capture.passes.size(); ++p) {
    const Pass& pass = capture.passes[p];
    if (pass.kind != PassKind::kGap) {
      paths.add(analyse::path_text(capture, id_at<PassId>(p)));
      paths.add(pass.name);
    }
    for (std::uint32_t i : names.of(capture, id_at<PassId>(p))) {
      out[i].pass = true;
      out[i].subsystems.add(pass.subsystem);
      if (!intents[i].subsystem.empty() && intents[i].subsystem != pass.subsystem) continue;
      out[i].subsystem = true;
      of_pass[p].push_back(i);
    }
  }
  for (const Birth& birth : capture.births) {
    if (!has(birth.pass)) continue;
    for (std::uint32_t i : of_pass[index(birth.pass)]) {
      out[i].patterns.add(birth.pattern);
      out[i].pattern = out[i].pattern || birth.pattern == intents[i].pattern;
    }
  }
  return out;
}

}  // namespace

std::vector<IdleIntent> idle_intents(const Capture& capture, const std::vector<Intent>& intents) {
  std::vector<IdleIntent> idle;
  Names paths, fields;
  for (const AttrKind& field : capture.attr_kinds) fields.add(field.name);
  const std::vector<Nameable> found = nameable(capture, intents, paths);
  for (std::size_t i = 0; i < intents.size(); ++i) {
    const Intent& intent = intents[i];
    if (!found[i].pass) {
      idle.push_back({i, "pass", intent.pass, paths.in_order});
    } else if (!found[i].subsystem) {
      idle.push_back({i, "subsystem", intent.subsystem, found[i].subsystems.in_order});
    } else if (!intent.pattern.empty() && !found[i].pattern) {
      idle.push_back({i, "pattern", intent.pattern, found[i].patterns.in_order});
    }
    for (const std::string& field : intent.fields) {
      if (!fields.known.contains(field)) idle.push_back({i, "fields", field, fields.in_order});
    }
  }
  return idle;
}

namespace analyse {

IntentTable::IntentTable(const Capture& capture, const std::vector<Intent>& callers)
    : capture_(capture), intents_(builtin_intents()), of_pass_(capture.passes.size()) {
  intents_.insert(intents_.end(), callers.begin(), callers.end());
  PassNames names(intents_);
  for (std::size_t p = 0; p < capture.passes.size(); ++p) {
    for (std::uint32_t i : names.of(capture, id_at<PassId>(p))) {
      const std::string& subsystem = intents_[i].subsystem;
      if (subsystem.empty() || subsystem == capture.passes[p].subsystem) of_pass_[p].push_back(i);
    }
  }
}

namespace {

bool covers(const Intent& intent, std::string_view target, std::string_view field) {
  return any_or_none(intent.targets, [&](const std::string& t) { return target.substr(0, t.size()) == t; }) &&
         any_or_none(intent.fields, [&](const std::string& f) { return f == field; });
}

}  // namespace

std::uint32_t IntentTable::find(IntentKind kind, PassId pass, std::string_view pattern, std::string_view target,
                                std::string_view field) const {
  if (!has(pass)) return kNoIndex;
  for (std::uint32_t i : of_pass_[index(pass)]) {
    const Intent& intent = intents_[i];
    if (intent.kind != kind || (!intent.pattern.empty() && intent.pattern != pattern)) continue;
    if (covers(intent, target, field)) return i;
  }
  return kNoIndex;
}

// The groups that built-in intents name are back ends' own: their passes run in no other's compile.
std::uint32_t IntentTable::perhaps(IntentKind kind, CompileId compile, std::string_view target,
                                   std::string_view field) const {
  for (std::uint32_t i = 0; i < intents_.size(); ++i) {
    const Intent& intent = intents_[i];
    if (intent.kind != kind || !covers(intent, target, field)) continue;
    const bool of_another = intent.origin == builtin_intents().front().origin && !intent.subsystem.empty() &&
                            intent.subsystem != capture_.compiles[index(compile)].backend;
    if (!of_another) return i;
  }
  return kNoIndex;
}

}  // namespace analyse
}  // namespace kerntrail
