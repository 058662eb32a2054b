#include "analyse/end_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "analyse/pipeline.h"
#include "analyse/settings.h"
#include "analyse/support.h"
#include "base/json.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

constexpr std::string_view kView =
    "It computes nothing: what reads it indexes through it, or takes one of several results.";
constexpr std::string_view kNotRecorded = "Why was not recorded.";

struct ClassRow {
  std::string_view name, why;
};

// Operations that the wrapper carries out itself, by their class.
constexpr std::array kWrapperDoes{
    ClassRow{"Conditional", "It is control flow: the wrapper decides it, and runs the kernels of its branches."},
    ClassRow{"WhileLoop", "It is control flow: the wrapper runs the loop, and the kernels of its sub-graphs."},
    ClassRow{"InvokeSubgraph", "It is a call of a sub-graph: the wrapper makes it, and runs the kernels in there."},
    ClassRow{"MultiOutput",
             "It is one of several results of a call: the wrapper unpacks it, and no kernel is written."},
    ClassRow{"DynamicScalar", "It is a number that the wrapper reads from a tensor: no kernel is written."},
    ClassRow{"AssertScalar", "It is a check of a number that the wrapper makes: no kernel is written."},
    ClassRow{"InputBuffer", "It is an input: kernels read it, and none is written for it."},
    ClassRow{"ConstantBuffer", "It is a constant: kernels read it, and none is written for it."},
};

// Notes that tell why a compile has no later stages.
constexpr std::array<std::string_view, 5> kStopped{"compile-raised", "compile-not-finished", "not-observed",
                                                   "backward-not-observed", "fallback-stock"};

class Reasons {
 public:
  Reasons(const Capture& capture, UnitId unit) : capture_(capture), unit_(unit), compile_(capture.compile_of(unit)) {}

  std::string_view last(std::string_view attr) const {
    const auto kind = capture_.find_attr(attr);
    std::string_view out;
    if (kind)
      capture_.each_version(unit_, *kind, [&](SnapshotId, const Observation& seen) { out = capture_.text(seen.text); });
    return out;
  }

  // "Nothing later of its graph ...": empty where something is.
  std::string compile_ended(std::string_view stage) const {
    const auto here = capture_.find_stage(stage);
    if (!here || goes_on(capture_.stages[index(*here)].order)) return {};
    std::string out = "Nothing later of its graph is in the capture: ";
    if (!capture_.end) {
      const Note* torn = note("torn-capture", false);
      return out + "it breaks off" + (torn == nullptr ? "." : fmt::format(" ({}).", torn->text));
    }
    for (std::string_view code : kStopped) {
      if (const Note* why = note(code, true)) return out + fmt::format("{} (note {}).", why->text, code);
    }
    return out + "no note says why.";
  }

  std::string of_node(bool witnessed) const {
    if (std::string special = special_node(); !special.empty()) return special;
    if (!read_by_anything()) return "Nothing reads it at that stage, so that nothing was made for it.";
    std::string out =
        "No operation names it in its `origins`: it went into the operations of what reads it, or needed "
        "none. ";
    return out + (witnessed ? "The witness saw no line that is for it." : level_text());
  }

  std::string of_operation() const {
    if (const std::string done = by_class(last("ir_class")); !done.empty()) return done;
    const Note* dropped = note("operation-not-scheduled", true);
    if (dropped != nullptr && names(*dropped, last("name")))
      return "The scheduler put it into no group (note operation-not-scheduled): no kernel computes it.";
    return no_kernel();
  }

  std::string of_group() const {
    const auto attr = capture_.find_attr("operations");
    const Observation* members = nullptr;
    if (attr) capture_.each_version(unit_, *attr, [&](SnapshotId, const Observation& seen) { members = &seen; });
    if (members != nullptr && members->refs.size() == 1) {
      const std::string done = by_class(Reasons(capture_, members->refs.front()).last("ir_class"));
      if (!done.empty()) return done;
    }
    if (all_nop())
      return "The scheduler makes no code for it (nop): others write its memory, or it holds what is there already.";
    return no_kernel();
  }

  std::string special_node() const {
    const std::string_view op = last("op");
    const std::string_view target = last("target");
    if (op == "placeholder") return "It is an input of the graph: kernels read it, and none is written for it.";
    if (op == "output") return "It hands on the results of the graph, and computes nothing.";
    if (op == "get_attr")
      return "It holds an attribute of the graph (a parameter, a constant, a sub-graph), and computes nothing.";
    if (is_view(target)) return std::string(kView);
    if (target.find("_assert") != std::string_view::npos || target.find("sym_constrain") != std::string_view::npos)
      return "It is a check: the wrapper makes it where it is not known to hold, and no kernel is written for it.";
    if (last("type").starts_with("Sym") || target.find("sym_size") != std::string_view::npos)
      return "It is a number, as a size is: kernels and the wrapper take it as an argument, and no operation is made.";
    return {};
  }

 private:
  static std::string by_class(std::string_view name) {
    for (const ClassRow& row : kWrapperDoes) {
      if (row.name == name) return std::string(row.why);
    }
    return {};
  }

  static bool may_follow(std::string_view a, std::string_view b) {
    const auto whole = [](std::string_view one) { return one != "forward" && one != "backward"; };
    return a == b || whole(a) || whole(b);
  }

  // Whether a later stage shows a graph that this unit's may have become.
  bool goes_on(int order) const {
    const std::string& own = capture_.graphs[index(capture_.units[index(unit_)].graph)].direction;
    const Capture::Range near = capture_.snapshots_near(compile_);
    for (std::size_t i = near.first; i < near.last; ++i) {
      const Snapshot& look = capture_.snapshots[i];
      if (!has(look.stage) || capture_.stages[index(look.stage)].order <= order) continue;
      const Graph& graph = capture_.graphs[index(look.graph)];
      if (graph.compile == compile_ && may_follow(graph.direction, own)) return true;
    }
    return false;
  }

  const Note* note(std::string_view code, bool of_compile) const {
    const auto found = std::find_if(capture_.notes.begin(), capture_.notes.end(), [&](const Note& one) {
      return one.code == code && (!of_compile || one.compile == compile_);
    });
    return found == capture_.notes.end() ? nullptr : &*found;
  }

  // "...: op5, op16"
  static bool names(const Note& note, std::string_view name) {
    const std::size_t colon = note.text.rfind(": ");
    if (name.empty() || colon == std::string::npos) return false;
    const auto parts = base::split(std::string_view(note.text).substr(colon + 2), ',');
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return base::trim(part) == name; });
  }

  bool read_by_anything() const {
    const auto inputs = capture_.find_attr("inputs");
    if (!inputs) return true;  // not known
    const Capture::Range near = capture_.snapshots_near(compile_);
    for (std::size_t i = near.last; i-- > near.first;) {
      const Snapshot& look = capture_.snapshots[i];
      const auto& units = look.units;
      if (!has(look.stage) || std::find(units.begin(), units.end(), unit_) == units.end()) continue;
      return std::any_of(units.begin(), units.end(), [&](UnitId other) {
        const Observation* seen = present(capture_, other, *inputs, id_at<SnapshotId>(i));
        return seen != nullptr && std::find(seen->refs.begin(), seen->refs.end(), unit_) != seen->refs.end();
      });
    }
    return true;
  }

  bool all_nop() const {
    const auto outcomes = base::Json::parse(last("outcomes"));
    if (!outcomes || !outcomes->is_array() || outcomes->as_array().empty()) return false;
    const base::JsonArray& all = outcomes->as_array();
    return std::all_of(all.begin(), all.end(),
                       [](const base::Json& one) { return one["outcome"].as_string() == "nop"; });
  }

  std::string level_text() const {
    const std::string_view level = setting(capture_.run.settings, "level");
    if (level.empty() || level == "truth") return std::string(kNotRecorded);
    return fmt::format("Which was not recorded at level {}: record with --level truth.", level);
  }

  std::string no_kernel() const {
    const Note* lost = note("kernel-call-not-found", true);
    if (lost == nullptr) lost = note("kernel-not-registered", true);
    if (lost != nullptr)
      return fmt::format("No kernel was seen to be made of it; of its compile it is known: {} (note {}).", lost->text,
                         lost->code);
    return "No kernel was seen to be made of it. " + std::string(kNotRecorded);
  }

  const Capture& capture_;
  UnitId unit_;
  CompileId compile_;
};

}  // namespace

std::string why_it_ends(const Capture& capture, UnitId unit, std::string_view stage, bool witnessed) {
  const Reasons reasons(capture, unit);
  if (std::string ended = reasons.compile_ended(stage); !ended.empty()) return ended;
  switch (capture.units[index(unit)].kind) {
    case UnitKind::kFxNode: return reasons.of_node(witnessed);
    case UnitKind::kOperation: return reasons.of_operation();
    case UnitKind::kGroup: return reasons.of_group();
    default: return "Nothing that was recorded was made of it. " + std::string(kNotRecorded);
  }
}

std::string why_unseen(const Capture& capture, UnitId unit) {
  if (capture.units[index(unit)].kind != UnitKind::kFxNode) return {};
  return Reasons(capture, unit).special_node();
}

}  // namespace kerntrail::analyse
