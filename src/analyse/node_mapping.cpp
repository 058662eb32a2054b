#include "analyse/node_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <unordered_map>

#include "analyse/edges.h"
#include "analyse/pipeline.h"
#include "analyse/trusted.h"
#include "analyse/witness.h"
#include "base/json.h"

namespace kerntrail::analyse {
namespace {

using base::Json;

template <class T>
void add_unique(std::vector<T>& list, T value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(std::move(value));
}

// Rows of a NameTable by key: a document has each key once, whatever the names in a capture are.
using Rows = std::unordered_map<std::string, std::size_t>;

void add(NameTable& table, Rows& rows, const std::string& key, const std::string& value) {
  const auto [row, is_new] = rows.try_emplace(key, table.size());
  if (is_new) table.push_back({key, {}});
  add_unique(table[row->second].second, value);
}

// One call of a kernel: a key of torch's mapping.
struct Call {
  std::string key;
  std::int64_t number = 0;               // the handle; what torch did not number comes after what it did
  std::vector<std::string> operations;   // by name; empty where it is not known which of the kernel's it is for
};

std::int64_t handle_number(std::string_view handle) {
  const std::size_t colon = handle.rfind(':');
  std::int64_t number = std::numeric_limits<std::int64_t>::max();
  if (colon != std::string_view::npos)
    std::from_chars(handle.data() + colon + 1, handle.data() + handle.size(), number);
  return number;
}

const Column* find_column(const Pipeline& pipeline, std::string_view key) {
  for (const Column& column : pipeline.columns) {
    if (column.key == key) return &column;
  }
  return nullptr;
}

class Mapper {
 public:
  Mapper(const Capture& capture, const Pipeline& pipeline, const WitnessIndex& witness, MappingSource source)
      : capture_(capture), pipeline_(pipeline), witness_(witness), names_(capture) {
    result_.compile = pipeline.compile;
    result_.direction = pipeline.direction;
    result_.source = source;
    for (const Link& link : capture.links) {
      if (link.kind != "define_kernel") continue;
      for (UnitId kernel : link.to) {
        auto& operations = operations_[kernel];
        operations.insert(operations.end(), link.from.begin(), link.from.end());
      }
    }
    for (const Claim& claim : capture.claims) {
      if (claim.claimant == "compiler") claims_[{claim.kernel, claim.evidence}] = &claim;
    }
  }

  NodeMapping build() {
    map_graphs();
    if (const Column* kernels = find_column(pipeline_, "kernel")) map_kernels(*kernels);
    return std::move(result_);
  }

 private:
  bool by_witness() const { return result_.source == MappingSource::kWitness; }

  // What was last seen of a unit: torch reads operations when it generates their code, the end of all looks.
  const Observation* last(UnitId unit, std::string_view attr) const {
    const AttrId id = names_[attr];
    const Observation* seen = nullptr;
    if (has(id)) capture_.each_version(unit, id, [&](SnapshotId, const Observation& o) { seen = &o; });
    return seen;
  }
  const Observation* last_present(UnitId unit, std::string_view attr) const {
    const Observation* seen = last(unit, attr);
    return seen != nullptr && seen->state == State::kPresent ? seen : nullptr;
  }
  std::string name_of(UnitId unit) const {
    const Observation* seen = last_present(unit, "name");
    return seen != nullptr ? std::string(capture_.text(seen->text)) : unit_name(capture_, unit);
  }
  Json json_of(UnitId unit, std::string_view attr) const {
    const Observation* seen = last_present(unit, attr);
    if (seen == nullptr) return {};
    auto json = Json::parse(capture_.text(seen->text));
    return json ? std::move(*json) : Json();
  }

  // ---- graphs

  bool is_outermost(UnitId unit) const {
    return capture_.graphs[index(capture_.units[index(unit)].graph)].path.empty();
  }

  void map_graphs() {
    const Column* post = find_column(pipeline_, "fx_post_grad");
    const Column* pre = find_column(pipeline_, "fx_pre_grad");
    if (post == nullptr || pre == nullptr) return;
    std::vector<GraphId> graphs;
    for (SnapshotId id : pre->snapshots) {
      const GraphId graph = capture_.snapshots[index(id)].graph;
      if (capture_.graphs[index(graph)].path.empty()) graphs.push_back(graph);
    }
    Rows rows;
    std::optional<EdgeFinder> edges;
    if (by_witness()) edges.emplace(capture_, pipeline_);
    for (std::size_t i = 0; i < post->units.size(); ++i) {
      const ColumnUnit& unit = post->units[i];
      const Observation* op = present(capture_, unit.unit, names_["op"], unit.snapshot);
      if (!is_outermost(unit.unit) || (op != nullptr && capture_.text(op->text) != "call_function")) continue;
      std::vector<std::string> from = edges ? traced_back(*edges, *post, *pre, i) : named_back(unit, graphs);
      for (const std::string& name : from) add(result_.post_to_pre, rows, name_of(unit.unit), name);
    }
  }

  // Every entry of the node's own chain that names the pre-grad graph, in torch's order.
  std::vector<std::string> named_back(const ColumnUnit& unit, const std::vector<GraphId>& graphs) const {
    std::vector<std::string> result;
    const Observation* chain = present(capture_, unit.unit, names_["from_node"], unit.snapshot);
    if (chain == nullptr) return result;
    const auto json = Json::parse(capture_.text(chain->text));
    if (!json) return result;
    const auto is_pre_grad = [&](const Json& entry) {
      return std::any_of(graphs.begin(), graphs.end(), [&](GraphId graph) {
        return graph_name(capture_, graph) == entry["graph"].as_string() ||
               std::any_of(chain->refs.begin(), chain->refs.end(), [&](UnitId ref) {
                 return capture_.units[index(ref)].graph == graph &&
                        unit_name(capture_, ref) == entry["unit"].as_string();
               });
      });
    };
    const auto note = [&](const Json& entry) {
      if (is_pre_grad(entry)) add_unique(result, std::string(entry["name"].as_string()));
    };
    for (const Json& entry : json->as_array()) {
      note(entry);
      std::vector<const Json*> open;
      for (const Json& inner : entry["from"].as_array()) open.push_back(&inner);
      while (!open.empty()) {
        const Json& next = *open.back();
        open.pop_back();
        note(next);
        for (const Json& inner : next["from"].as_array()) open.push_back(&inner);
      }
    }
    return result;
  }

  // What is known of it beside its own chain too, but for guesses.
  std::vector<std::string> traced_back(EdgeFinder& edges, const Column& post, const Column& pre, std::size_t i) const {
    std::vector<std::string> result;
    const auto place = [&](const Column& column) {
      return static_cast<std::size_t>(&column - pipeline_.columns.data());
    };
    for (const Parent& parent : edges.table(place(post), place(pre))[i]) {
      if (strength_of(parent.evidence) != Strength::kDerived && is_outermost(parent.unit))
        add_unique(result, name_of(parent.unit));
    }
    return result;
  }

  // ---- kernels

  struct Entry {
    UnitId kernel;
    Call call;
    bool is_only;  // the kernel has no other call
  };

  void map_kernels(const Column& column) {
    std::vector<Entry> entries;
    for (const ColumnUnit& unit : column.units) {
      const Observation* handles = last(unit.unit, "handles");
      // Who wrote the capture may not have looked for registrations at all.
      const bool is_registered = !has(names_["handles"]) || (handles != nullptr && handles->state != State::kNoSlot);
      if (!is_registered) ++result_.unregistered;
      if (by_witness() && !is_witnessed(unit.unit)) ++result_.unwitnessed;
      if (!is_registered && !by_witness()) continue;
      std::vector<Call> calls = calls_of(unit.unit);
      const bool is_only = calls.size() == 1;
      for (Call& call : calls) entries.push_back({unit.unit, std::move(call), is_only});
    }
    number(entries);
    Rows rows;  // torch numbers each call once; a damaged capture may not
    for (const Entry& entry : entries) {
      MappedKernel kernel = mapped(entry);
      const auto [place, is_new] = rows.try_emplace(kernel.key, result_.kernels.size());
      if (is_new) {
        result_.kernels.push_back(std::move(kernel));
        continue;
      }
      MappedKernel& known = result_.kernels[place->second];
      for (std::string& node : kernel.nodes) add_unique(known.nodes, std::move(node));
      for (std::string& stack : kernel.stacks) add_unique(known.stacks, std::move(stack));
    }
  }

  bool is_witnessed(UnitId kernel) const {
    const auto found = operations_.find(kernel);
    return witness_.of(kernel) != nullptr ||
           (found != operations_.end() &&
            std::any_of(found->second.begin(), found->second.end(),
                        [&](UnitId operation) { return witness_.of(operation) != nullptr; }));
  }

  // Torch's handles where it gave any, else one a call in the wrapper.
  std::vector<Call> calls_of(UnitId kernel) const {
    std::vector<Call> result;
    const Json calls = json_of(kernel, "calls");
    const auto operations_of = [](const Json& call) {
      std::vector<std::string> names;
      for (const Json& name : call["operations"].as_array()) names.emplace_back(name.as_string());
      return names;
    };
    const Json handles = json_of(kernel, "handles");
    for (const Json& handle : handles.as_array()) {
      Call one{std::string(handle.as_string()), handle_number(handle.as_string()), {}};
      for (const Json& call : calls.as_array()) {
        if (call["handle"].as_string() == one.key) one.operations = operations_of(call);
      }
      result.push_back(std::move(one));
    }
    if (!result.empty()) return result;
    for (const Json& call : calls.as_array()) result.push_back({{}, call["order"].as_int(), operations_of(call)});
    if (result.empty()) result.push_back({{}, std::numeric_limits<std::int64_t>::max(), {}});
    return result;
  }

  // Sorts by handle; calls without one get the numbers behind.
  void number(std::vector<Entry>& entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.call.key.empty(), a.call.number) < std::pair(b.call.key.empty(), b.call.number);
    });
    std::int64_t highest = 0;
    for (Entry& entry : entries) {
      if (!entry.call.key.empty()) {
        if (entry.call.number != std::numeric_limits<std::int64_t>::max())
          highest = std::max(highest, entry.call.number);
        continue;
      }
      result_.has_own_handles = true;
      entry.call.key = fmt::format("{}:{}", name_of(entry.kernel), ++highest);
    }
  }

  std::vector<UnitId> operations_of(const Entry& entry) const {
    const auto found = operations_.find(entry.kernel);
    if (found == operations_.end()) return {};
    if (entry.call.operations.empty()) return found->second;
    std::vector<UnitId> result;
    for (UnitId operation : found->second) {
      const auto& names = entry.call.operations;
      if (std::find(names.begin(), names.end(), name_of(operation)) != names.end()) result.push_back(operation);
    }
    return result;
  }

  MappedKernel mapped(const Entry& entry) const {
    MappedKernel result;
    result.key = entry.call.key;
    const std::vector<UnitId> operations = operations_of(entry);
    for (UnitId node : by_witness() ? worked_for(entry, operations) : claimed(entry, operations)) {
      add_unique(result.nodes, name_of(node));
      if (by_witness()) add_true_stack(result.stacks, node);
    }
    if (!by_witness()) result.stacks = claimed_stacks(entry, operations);
    return result;
  }

  std::vector<UnitId> worked_for(const Entry& entry, const std::vector<UnitId>& operations) const {
    std::vector<UnitId> result;
    const auto add = [&](UnitId unit) {
      const Work* work = witness_.of(unit);
      if (work == nullptr) return;
      for (const auto& [node, support] : *work) add_unique(result, node);
    };
    if ((entry.is_only || operations.empty()) && witness_.of(entry.kernel) != nullptr) {
      add(entry.kernel);
    } else {
      for (UnitId operation : operations) add(operation);
    }
    return result;
  }

  // A node's own stack before anything wrote another's over it.
  void add_true_stack(std::vector<std::string>& stacks, UnitId node) const {
    if (capture_.snapshots.empty() || !has(names_["stack_trace"])) return;
    const auto end = id_at<SnapshotId>(capture_.snapshots.size() - 1);
    const Observation* stack = trusted_value(capture_, node, names_["stack_trace"], end).value;
    if (stack != nullptr) add_unique(stacks, std::string(capture_.text(stack->text)));
  }

  // As torch does it: what it wrote down itself where that is of this call alone, else the same from the operations:
  // of a call of something ready-made the one node it stands for, of generated code every origin.
  std::vector<UnitId> claimed(const Entry& entry, const std::vector<UnitId>& operations) const {
    if (entry.is_only) {
      if (const auto own = claims_.find({entry.kernel, "mapping"}); own != claims_.end()) return own->second->units;
    }
    const Observation* found = last_present(entry.kernel, "class");
    const std::string_view kind = found != nullptr ? capture_.text(found->text) : std::string_view();
    const bool is_extern = kind == "extern" || kind == "fallback" || kind == "user";
    std::vector<UnitId> result;
    for (UnitId operation : operations) {
      const Observation* node = is_extern ? last_present(operation, "origin_node") : nullptr;
      if (node == nullptr || node->refs.empty()) node = last_present(operation, "origins");
      if (node == nullptr) continue;
      for (UnitId ref : node->refs) add_unique(result, ref);
    }
    if (!result.empty()) return result;
    const auto origins = claims_.find({entry.kernel, "origins"});
    return origins == claims_.end() ? result : origins->second->units;
  }

  std::vector<std::string> claimed_stacks(const Entry& entry, const std::vector<UnitId>& operations) const {
    std::vector<std::string> result;
    const auto add = [&](const Json& list) {
      for (const Json& stack : list.as_array()) add_unique(result, std::string(stack.as_string()));
    };
    const Observation* own = last(entry.kernel, "stacks");
    if (entry.is_only && own != nullptr && own->state != State::kNoSlot) {
      add(json_of(entry.kernel, "stacks"));
    } else {
      for (UnitId operation : operations) add(json_of(operation, "get_stack_traces"));
    }
    return result;
  }

  const Capture& capture_;
  const Pipeline& pipeline_;
  const WitnessIndex& witness_;
  AttrNames names_;
  std::unordered_map<UnitId, std::vector<UnitId>> operations_;
  std::map<std::pair<UnitId, std::string_view>, const Claim*> claims_;
  NodeMapping result_;
};

}  // namespace

Expected<std::vector<NodeMapping>> node_mappings(const Capture& capture, const AnalysisOptions& options,
                                                 std::optional<MappingSource> source) {
  KERNTRAIL_TRY(const auto compiles, select_compiles(capture, options));
  std::vector<NodeMapping> result;
  bool is_witnessed = false;
  for (CompileId compile : compiles) {
    const WitnessIndex witness(capture, compile);
    is_witnessed = is_witnessed || !witness.empty();
    const MappingSource chosen = source.value_or(witness.empty() ? MappingSource::kClaims : MappingSource::kWitness);
    for (const std::string& direction : directions_of(capture, compile)) {
      const Pipeline pipeline = pipeline_of(capture, compile, direction);
      if (find_column(pipeline, "kernel") == nullptr && find_column(pipeline, "fx_post_grad") == nullptr) continue;
      result.push_back(Mapper(capture, pipeline, witness, chosen).build());
    }
  }
  if (source == MappingSource::kWitness && !is_witnessed) {
    return fail(ErrorCode::kUnsupported,
                "nothing was witnessed in this capture: record it with --level truth, or take --from claims");
  }
  return result;
}

NameTable inverse(const NameTable& table) {
  NameTable result;
  Rows rows;
  for (const auto& [key, values] : table) {
    for (const std::string& value : values) add(result, rows, value, key);
  }
  return result;
}

}  // namespace kerntrail::analyse
