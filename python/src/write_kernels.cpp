#include "write_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_set>

#include "observations.h"
#include "read/wrapper_text.h"

namespace kerntrail::probe {
namespace {

// One call in the wrapper, with the kernel that it calls (an index) and its registration where there is one.
struct Call {
  read::WrapperCall text;
  std::size_t kernel = 0;
  const Registration* registration = nullptr;
};

// Kernels and their calls are brought together by name and function, in order: within one function the compiler
// writes calls in the order in which it registers them.
class CallMatcher {
 public:
  explicit CallMatcher(PendingGraph& graph) : graph_(graph) {}

  void match() {
    if (!graph_.wrapper) return;
    std::unordered_set<std::string> names;
    for (const PendingKernel& kernel : graph_.kernels) names.insert(kernel.name);
    read::WrapperText wrapper = read::read_wrapper(graph_.wrapper->text, names);
    mentioned = std::move(wrapper.mentioned);
    for (const read::WrapperCall& call : wrapper.calls) functions_.insert(call.function);
    queue_kernels();
    for (read::WrapperCall& call : wrapper.calls) add(std::move(call));
  }

  // Each call takes the next registration of its kernel in its function.
  void give_registrations() {
    std::map<std::pair<std::size_t, std::string>, std::deque<const Registration*>> waiting;
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i) {
      for (const Registration& r : graph_.kernels[i].registrations) waiting[{i, scope(r.function)}].push_back(&r);
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto found = waiting.find({calls[i].kernel, matched_[i].first});
      if (found == waiting.end() || found->second.empty()) continue;
      calls[i].registration = found->second.front();
      found->second.pop_front();
    }
  }

  std::vector<Call> calls;
  std::unordered_set<std::string> mentioned;

 private:
  using Key = std::pair<std::string, std::string>;  // function of a sub-graph, kernel

  // Partitions and sub-graphs written in place have no lowering of their own in the wrapper: they are the root's.
  std::string scope(const std::string& function) const {
    return functions_.contains(function) && sub_graphs_.contains(function) ? function : std::string();
  }

  void queue_kernels() {
    for (const PendingKernel& kernel : graph_.kernels) {
      if (!kernel.function.empty()) sub_graphs_.insert(kernel.function);
      for (const Registration& r : kernel.registrations) {
        if (!r.function.empty()) sub_graphs_.insert(r.function);
      }
    }
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i) {
      const PendingKernel& kernel = graph_.kernels[i];
      if (kernel.is_extern) {
        externs_[{scope(kernel.function), kernel.name}].push_back(i);
      } else {
        defined_.try_emplace(kernel.name, i);
      }
    }
  }

  void add(read::WrapperCall text) {
    Call call;
    const Key key{scope(text.function), text.name};
    if (const auto own = defined_.find(text.name); own != defined_.end()) {
      call.kernel = own->second;
    } else if (auto waiting = externs_.find(key); waiting != externs_.end() && !waiting->second.empty()) {
      call.kernel = waiting->second.front();
      waiting->second.pop_front();
    } else {
      call.kernel = add_unknown(text.name);
    }
    text.line += graph_.wrapper->offset;
    call.text = std::move(text);
    matched_.push_back(key);
    calls.push_back(std::move(call));
  }

  std::size_t add_unknown(const std::string& name) {
    PendingKernel kernel;
    kernel.name = name;
    kernel.is_extern = kernel.is_tentative = true;
    graph_.kernels.push_back(std::move(kernel));
    return graph_.kernels.size() - 1;
  }

  PendingGraph& graph_;
  std::unordered_set<std::string> functions_, sub_graphs_;
  std::map<Key, std::deque<std::size_t>> externs_;
  std::map<std::string, std::size_t> defined_;
  std::vector<Key> matched_;  // by call
};

base::Json call_json(const Call& call, std::size_t order) {
  base::JsonObject out{{"order", static_cast<std::int64_t>(order)},
                       {"line", call.text.line},
                       {"function", call.text.function},
                       {"text", call.text.text}};
  if (call.registration != nullptr) {
    if (!call.registration->handle.empty()) out.emplace_back("handle", call.registration->handle);
    const auto& operations = call.registration->operations;
    out.emplace_back("operations", base::JsonArray(operations.begin(), operations.end()));
  }
  return base::Json(std::move(out));
}

base::Json list_json(const std::vector<std::string>& values) {
  return base::Json(base::JsonArray(values.begin(), values.end()));
}

class KernelWriter {
 public:
  KernelWriter(Session& session, const Frame& frame, PendingGraph& graph)
      : session_(session), frame_(frame), graph_(graph), calls_(graph) {}

  void write() {
    calls_.match();
    calls_.give_registrations();
    by_kernel_.resize(graph_.kernels.size());
    for (std::size_t i = 0; i < calls_.calls.size(); ++i) by_kernel_[calls_.calls[i].kernel].push_back(i);
    if (!declare()) return;
    std::vector<model::ObservedUnit> observed;
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i) {
      if (is_kernel(i)) observed.push_back(observe(i));
    }
    session_.recorder().snapshot(session_.tables().stage.kernel, graph_.kernel_graph, observed);
    link_groups();
    write_calls();
    write_claims();
    compare();
  }

 private:
  // An extern operation that was not registered and is not called either is no kernel: the code it made was something
  // else, e.g. taking one of several outputs.
  bool is_kernel(std::size_t i) const { return !graph_.kernels[i].is_tentative || !by_kernel_[i].empty(); }

  // Units of the kernels that only the wrapper shows. False where there is no kernel at all.
  bool declare() {
    bool any = false;
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i) {
      if (!is_kernel(i)) continue;
      any = true;
      PendingKernel& kernel = graph_.kernels[i];
      if (!kernel.is_tentative) continue;
      model::Recorder& recorder = session_.recorder();
      if (!has(graph_.kernel_graph))
        graph_.kernel_graph = recorder.graph(frame_.compile->id, "kernel", frame_.direction);
      kernel.observed.unit = recorder.unit(graph_.kernel_graph, UnitKind::kKernel);
      kernel.observed.attrs.push_back({session_.tables().attr.name, text_of(session_, kernel.name)});
      if (!kernel.operations.empty()) recorder.link("define_kernel", kernel.operations, {kernel.observed.unit});
    }
    return any;
  }

  model::ObservedUnit observe(std::size_t i) {
    const Tables::Attrs& attr = session_.tables().attr;
    const PendingKernel& kernel = graph_.kernels[i];
    model::ObservedUnit out = kernel.observed;
    if (!kernel.kernel_class.empty()) out.attrs.push_back({attr.kernel_class, text_of(session_, kernel.kernel_class)});
    if (!kernel.ir_classes.empty())
      out.attrs.push_back({attr.ir_classes, json_of(session_, list_json(kernel.ir_classes))});
    add_handles(kernel, out);
    if (graph_.wrapper) {
      base::JsonArray entries;
      for (const std::size_t c : by_kernel_[i]) entries.push_back(call_json(calls_.calls[c], c));
      Observation o = json_of(session_, base::Json(entries));
      if (entries.empty()) o = {State::kEmpty, {}, {}, {}, {}, {}};
      out.attrs.push_back({attr.calls, std::move(o)});
    }
    out.attrs.push_back({attr.seen, json_of(session_, seen(i))});
    if (!kernel.reread.is_null()) {
      out.attrs.push_back({attr.reread, json_of(session_, kernel.reread)});
      out.attrs.back().value.loc = kernel.reread_at;
    }
    for (const std::vector<std::size_t>& specs : kernel.op_specs) {
      std::vector<UnitId> units;
      for (const std::size_t spec : specs) units.push_back(graph_.op_specs[spec].observed.unit);
      if (!units.empty()) session_.recorder().link("print_op_specs", std::move(units), {kernel.observed.unit});
    }
    if (session_.options().level >= Level::kTruth) out.attrs.push_back({attr.witness, witness(kernel)});
    return out;
  }

  // Handles and stacks are torch's own: empty where it registered the kernel without numbering it (level 0), no slot
  // where it did not register it.
  void add_handles(const PendingKernel& kernel, model::ObservedUnit& out) {
    if (kernel.registrations.empty()) return;
    const Tables::Attrs& attr = session_.tables().attr;
    std::vector<std::string> handles;
    for (const Registration& r : kernel.registrations) {
      if (!r.handle.empty()) handles.push_back(r.handle);
    }
    const Observation empty{State::kEmpty, {}, {}, {}, {}, {}};
    out.attrs.push_back({attr.handles, handles.empty() ? empty : json_of(session_, list_json(handles))});
    if (!handles.empty())
      out.attrs.push_back({attr.stacks, kernel.stacks.empty() ? empty : json_of(session_, list_json(kernel.stacks))});
  }

  // What the closures themselves say of each registration; units by their place in `refs`.
  Observation witness(const PendingKernel& kernel) {
    if (kernel.witness.empty()) return {State::kEmpty, {}, {}, {}, {}, {}};
    Observation out = json_of(session_, base::Json(kernel.witness));
    out.refs = kernel.witnessed;
    return out;
  }

  base::Json seen(std::size_t i) const {
    const PendingKernel& kernel = graph_.kernels[i];
    base::Json called;
    if (graph_.wrapper) called = static_cast<std::int64_t>(by_kernel_[i].size());
    return base::JsonObject{{"defined", kernel.defined},
                            {"called", std::move(called)},
                            {"registered", static_cast<std::int64_t>(kernel.registrations.size())}};
  }

  // A kernel was made from a group if it has operations of it: exact, both are the compiler's own lists.
  void link_groups() {
    std::map<UnitId, UnitId> group_of;
    for (const PendingSchedule& schedule : graph_.schedules) {
      for (const PendingGroup& group : schedule.groups) {
        for (const PendingGroup::Member& member : group.members) group_of.emplace(member.unit, group.unit);
      }
    }
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i) {
      if (!is_kernel(i)) continue;
      std::vector<UnitId> groups;
      for (const UnitId operation : graph_.kernels[i].operations) {
        const auto found = group_of.find(operation);
        if (found == group_of.end()) continue;
        if (std::find(groups.begin(), groups.end(), found->second) == groups.end()) groups.push_back(found->second);
      }
      if (!groups.empty()) session_.recorder().link("emit_kernel", groups, {graph_.kernels[i].observed.unit});
    }
  }

  void write_calls() {
    for (const Call& call : calls_.calls) {
      const UnitId unit =
          session_.recorder().unit(graph_.kernel_graph, UnitKind::kKernelCall, "a call in the generated wrapper");
      session_.recorder().link("call_kernel", {graph_.kernels[call.kernel].observed.unit}, {unit});
    }
  }

  void write_claims() {
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i) {
      PendingKernel& kernel = graph_.kernels[i];
      if (!is_kernel(i)) continue;
      if (!kernel.claimed.empty())
        session_.recorder().claim(kernel.observed.unit, "compiler", "origins", std::move(kernel.claimed));
      if (!kernel.mapped.empty())
        session_.recorder().claim(kernel.observed.unit, "compiler", "mapping", std::move(kernel.mapped));
    }
  }

  void note(std::string_view code, Severity severity, std::string text) {
    session_.recorder().note({std::string(code), severity, std::move(text), frame_.compile->id, graph_.kernel_graph});
  }

  // What each of the three ways of seeing a kernel lacks.
  void compare() {
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i) {
      const PendingKernel& kernel = graph_.kernels[i];
      if (!is_kernel(i)) continue;
      const std::size_t called = by_kernel_[i].size(), registered = kernel.registrations.size();
      const std::string id = fmt::format("{} ({})", kernel.name, session_.recorder().unit_name(kernel.observed.unit));
      if (called > registered) {
        const Call& last = calls_.calls[by_kernel_[i].back()];
        note("kernel-not-registered", Severity::kWarning,
             fmt::format(
                 "{} is called {} time{}, registered {}: the compiler's own provenance does not know it (line {} "
                 "of the wrapper: {})",
                 id, called, called == 1 ? "" : "s", registered, last.text.line, last.text.text));
      }
      if (!graph_.wrapper || called > 0 || calls_.mentioned.contains(kernel.name)) continue;
      if (kernel.defined > 0) {
        note("kernel-not-called", Severity::kWarning,
             fmt::format("{} is defined, but no line of the wrapper calls it", id));
      } else {
        note("kernel-call-not-found", Severity::kInfo,
             fmt::format("{} is registered, but no line of the wrapper calls it by this name", id));
      }
    }
  }

  Session& session_;
  const Frame& frame_;
  PendingGraph& graph_;
  CallMatcher calls_;
  std::vector<std::vector<std::size_t>> by_kernel_;  // its calls
};

}  // namespace

void write_kernels(Session& session, const Frame& frame, PendingGraph& graph) {
  KernelWriter(session, frame, graph).write();
}

}  // namespace kerntrail::probe
