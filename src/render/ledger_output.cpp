#include "render/ledger_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/strings.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

using analyse::DebugifyReport;
using analyse::IdFate;
using analyse::JudgedGraph;
using analyse::Ledger;
using analyse::LedgerEntry;
using analyse::LedgerFault;
using base::JsonWriter;

using Counts = std::array<std::size_t, analyse::kIdFates>;

Counts fates_of(const Ledger& ledger) {
  Counts out{};
  for (const LedgerEntry& entry : ledger.entries) ++out[static_cast<std::size_t>(entry.fate)];
  return out;
}

std::string row(std::string_view fate, std::string_view node, std::string_view what, std::string_view loc) {
  return visible(fmt::format("  {:<11} {}: {}{}{}", fate, node, what, loc.empty() ? "" : ", at ", loc));
}

// An id that is where it was, complete: said in the counts alone.
bool is_plain(const LedgerEntry& entry) {
  return entry.fate == IdFate::kSurvived && entry.without.empty() && entry.altered.empty();
}

std::string title(const JudgedGraph& graph) {
  std::string out = graph.stage;
  if (!graph.direction.empty() && graph.direction != graph.stage) out += ", " + graph.direction;
  if (!graph.compile.empty()) out += ", compile " + graph.compile;
  if (!graph.path.empty()) out += ", in " + graph.path;
  return visible(out);
}

class Text {
 public:
  explicit Text(const DebugifyReport& report) : report_(report) {}

  std::string all() {
    for (const JudgedGraph& graph : report_.graphs) write(graph);
    const DebugifyTotals totals = debugify_totals(report_);
    out_ += fmt::format("{} over {}: {}{}\n", base::counted(totals.passes, "pass", "passes"),
                        base::counted(totals.graphs, "graph"),
                        totals.faults == 0 ? "provenance is preserved" : base::counted(totals.faults, "fault"),
                        totals.unjudged == 0 ? "" : fmt::format("; {} not judged", totals.unjudged));
    return std::move(out_);
  }

 private:
  void write(const JudgedGraph& graph) {
    out_ += title(graph) + "\n";
    std::vector<const Ledger*> touched;
    std::size_t quiet = 0;
    std::size_t width = 4;
    for (const Ledger& ledger : graph.passes) {
      if (is_touched(ledger)) {
        touched.push_back(&ledger);
        width = std::max(width, visible(ledger.pass).size());
      } else if (ledger.pass.rfind("between ", 0) != 0) {
        ++quiet;
      }
    }
    if (!touched.empty()) table(touched, width);
    if (quiet > 0) {
      const std::string_view other = touched.empty() ? "" : "other ";
      out_ += fmt::format("  {} {}{} left every id where it was\n", quiet, other, quiet == 1 ? "pass" : "passes");
    }
    for (const Ledger* ledger : touched) rows(*ledger);
    for (const std::string& text : graph.unjudged) out_ += "  not judged: " + visible(text) + "\n";
    out_ += "\n";
  }

  void table(const std::vector<const Ledger*>& ledgers, std::size_t width) {
    out_ += fmt::format("  {:<{}}  ids", "pass", width);
    for (std::size_t fate = 0; fate < analyse::kIdFates; ++fate)
      out_ += fmt::format("  {}", analyse::id_fate_name(static_cast<IdFate>(fate)));
    out_ += "  fabricated  faults\n";
    for (const Ledger* ledger : ledgers) {
      out_ += fmt::format("  {:<{}}  {:>3}", visible(ledger->pass), width, ledger->entries.size());
      const Counts counts = fates_of(*ledger);
      for (std::size_t fate = 0; fate < counts.size(); ++fate)
        out_ += fmt::format("  {:>{}}", counts[fate], analyse::id_fate_name(static_cast<IdFate>(fate)).size());
      out_ += fmt::format("  {:>10}  {:>6}\n", ledger->fabricated.size(),
                          analyse::ledger_faults(*ledger, report_.rules).size());
    }
  }

  void rows(const Ledger& ledger) {
    std::string text;
    for (const LedgerEntry& entry : ledger.entries)
      if (!is_plain(entry)) text += "  " + ledger_row(entry) + "\n";
    for (const analyse::FabricatedNode& node : ledger.fabricated) text += "  " + ledger_row(node) + "\n";
    if (!text.empty()) out_ += "  " + visible(ledger.pass) + ":\n" + text;
  }

  const DebugifyReport& report_;
  std::string out_;
};

class Document {
 public:
  Document(JsonWriter& json, const DebugifyReport& report) : json_(json), report_(report) {}

  void write() {
    const DebugifyTotals totals = debugify_totals(report_);
    json_.begin_object();
    json_.member("format", "kerntrail-debugify");
    json_.member("version", 1);
    texts("stages", report_.stages);
    text("pass", report_.pass);
    texts("fields", report_.rules.fields);
    texts("allow", report_.rules.allow);
    count("faults", totals.faults);
    count("unjudged", totals.unjudged);
    json_.key("graphs").begin_array();
    for (const JudgedGraph& graph : report_.graphs) this->graph(graph);
    json_.end_array();
    json_.end_object();
  }

 private:
  void count(std::string_view key, std::size_t n) { json_.member(key, static_cast<std::uint64_t>(n)); }
  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) json_.member(key, value);
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    json_.key(key).begin_array();
    for (const std::string& value : values) json_.value(value);
    json_.end_array();
  }

  void graph(const JudgedGraph& graph) {
    json_.begin_object();
    text("compile", graph.compile);
    json_.member("stage", graph.stage);
    text("direction", graph.direction);
    json_.member("path", graph.path);
    json_.key("passes").begin_array();
    for (const Ledger& ledger : graph.passes) pass(ledger);
    json_.end_array();
    texts("unjudged", graph.unjudged);
    json_.end_object();
  }

  void pass(const Ledger& ledger) {
    const std::vector<LedgerFault> faults = analyse::ledger_faults(ledger, report_.rules);
    const auto fault_at = [&](bool is_fabricated, std::size_t place) -> std::string_view {
      const auto found = std::find_if(faults.begin(), faults.end(), [&](const LedgerFault& fault) {
        return fault.is_fabricated == is_fabricated && fault.place == place;
      });
      return found == faults.end() ? std::string_view() : found->kind;
    };
    json_.begin_object();
    json_.member("pass", ledger.pass);
    count("ids", ledger.entries.size());
    json_.key("fates").begin_object();
    const Counts counts = fates_of(ledger);
    for (std::size_t fate = 0; fate < counts.size(); ++fate)
      count(analyse::id_fate_name(static_cast<IdFate>(fate)), counts[fate]);
    json_.end_object();
    count("kept", ledger.kept);
    count("inheriting", ledger.inheriting);
    count("faults", faults.size());
    json_.key("entries").begin_array();
    for (std::size_t i = 0; i < ledger.entries.size(); ++i)
      if (!is_plain(ledger.entries[i])) entry(ledger.entries[i], fault_at(false, i));
    json_.end_array();
    json_.key("fabricated").begin_array();
    for (std::size_t i = 0; i < ledger.fabricated.size(); ++i) fabricated(ledger.fabricated[i], fault_at(true, i));
    json_.end_array();
    json_.end_object();
  }

  void entry(const LedgerEntry& entry, std::string_view fault) {
    json_.begin_object();
    json_.member("id", static_cast<std::uint64_t>(entry.id));
    json_.member("node", entry.node);
    json_.member("fate", analyse::id_fate_name(entry.fate));
    texts("heirs", entry.heirs);
    json_.member("is_named", entry.is_named);
    texts("without", entry.without);
    texts("altered", entry.altered);
    tail(entry.loc, entry.why, fault);
  }

  void fabricated(const analyse::FabricatedNode& node, std::string_view fault) {
    json_.begin_object();
    json_.member("node", node.node);
    tail(node.loc, node.why, fault);
  }

  void tail(std::string_view loc, std::string_view why, std::string_view fault) {
    text("loc", loc);
    text("why", why);
    text("fault", fault);
    json_.end_object();
  }

  JsonWriter& json_;
  const DebugifyReport& report_;
};

}  // namespace

std::string ledger_row(const LedgerEntry& entry) {
  std::string text = entry.why.empty() ? "a new node names it" : entry.why;
  if (!entry.heirs.empty()) text += fmt::format(" ({})", fmt::join(entry.heirs, ", "));
  if (!entry.without.empty()) text += fmt::format(", without {}", fmt::join(entry.without, ", "));
  if (!entry.altered.empty()) text += fmt::format(", with another {}", fmt::join(entry.altered, ", "));
  return row(analyse::id_fate_name(entry.fate), entry.node, text, entry.loc);
}

std::string ledger_row(const analyse::FabricatedNode& node) { return row("fabricated", node.node, node.why, node.loc); }

std::string debugify_text(const DebugifyReport& report) { return Text(report).all(); }

std::string debugify_json(const DebugifyReport& report) {
  std::string out;
  JsonWriter json(out, 2);
  Document(json, report).write();
  return out + "\n";
}

DebugifyTotals debugify_totals(const DebugifyReport& report) {
  DebugifyTotals out;
  out.graphs = report.graphs.size();
  for (const JudgedGraph& graph : report.graphs) {
    out.unjudged += graph.unjudged.size();
    for (const Ledger& ledger : graph.passes) {
      if (ledger.pass.rfind("between ", 0) != 0) ++out.passes;
      out.faults += analyse::ledger_faults(ledger, report.rules).size();
    }
  }
  return out;
}

}  // namespace kerntrail::render
