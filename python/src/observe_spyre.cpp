#include "observe_spyre.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "observations.h"
#include "observe_ir.h"
#include "observe_kernels.h"
#include "python_text.h"
#include "spyre/file_fields.h"
#include "write_witness.h"

namespace kerntrail::probe {
namespace {

constexpr int kMaxHandleDepth = 20;
constexpr int kMaxHandleJsonDepth = 2 * kMaxHandleDepth;  // a list between each handle and its constituents

// A handle as a JSON object: its own to_dict() where it has one, else its fields. Ids are decimal strings.
base::Json handle_json(nb::handle handle, int depth) {
  if (!is_valid(handle)) return {};
  if (PyDict_Check(handle.ptr())) return plain_json(handle, kMaxHandleJsonDepth);
  if (const nb::object dict = call_method(handle, "to_dict"); dict.is_valid())
    return plain_json(dict, kMaxHandleJsonDepth);
  const nb::object fields = attribute(handle, "__dataclass_fields__");
  if (!fields.is_valid() || depth >= kMaxHandleDepth) return plain_json(handle);
  base::Json out = base::JsonObject{};
  for (auto [name, field] : nb::borrow<nb::dict>(fields)) {
    const std::string key = text(name).value_or("");
    const nb::object value = attribute(handle, key.c_str());
    if (!value.is_valid()) {  // declared, but not set on this instance
      out.set(key, base::Json());
    } else if (key == "id") {
      out.set(key, base::Json(text(value).value_or("")));
    } else if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) {
      base::JsonArray items;
      for (nb::handle item : value) items.push_back(handle_json(item, depth + 1));
      out.set(key, std::move(items));
    } else {
      out.set(key, handle_json(value, depth + 1));
    }
  }
  return out;
}

// The handle's own source as a location, so that readers need not parse the JSON for it.
LocId source_loc(Session& session, const base::Json& handle) {
  const base::Json& source = handle["source"];
  if (!source.is_object()) return LocId::kNone;
  const std::string file(source["file"].as_string());
  Loc loc;
  loc.kind = LocKind::kRange;
  loc.text = session.recorder().text(session.sources().shown_path(file));
  loc.line = source["start_line"].as_int();
  loc.col = source["start_col"].as_int(-1);
  loc.end_line = source["end_line"].as_int();
  loc.end_col = source["end_col"].as_int(-1);
  std::tie(loc.frame_class, loc.rule) = classify_frame(file, session.options().frames);
  return session.recorder().loc(loc);
}

Observation handle_observation(Session& session, const base::Json& json) {
  Observation o;
  o.state = json.is_null() ? State::kEmpty : State::kPresent;
  if (json.is_null()) return o;
  o.text = session.recorder().json_value(json);
  o.loc = source_loc(session, json);
  return o;
}

base::Json declared_fields(nb::handle op_spec) {
  base::JsonArray out;
  const nb::object fields = attribute(op_spec, "__dataclass_fields__");
  if (fields.is_valid() && PyDict_Check(fields.ptr())) {
    for (auto [name, field] : nb::borrow<nb::dict>(fields)) out.push_back(base::Json(text(name).value_or("")));
  }
  return base::Json(std::move(out));
}

model::ObservedUnit read_bundle_file(Session& session, const std::string& directory, const std::string& name,
                                     UnitId unit) {
  const Tables::Attrs& attr = session.tables().attr;
  model::ObservedUnit out{unit, {}};
  out.attrs.push_back({attr.name, text_of(session, name)});
  const auto content = base::read_file(directory + "/" + name);
  const auto json = content ? base::Json::parse(*content) : Expected<base::Json>(tl::unexpected(content.error()));
  if (!json) {
    out.attrs.push_back({attr.parse_error, text_of(session, json.error().message)});
    return out;
  }
  const spyre::FileFields fields = spyre::fields_of_file(*json);
  out.attrs.push_back(
      {attr.op_keys, json_of(session, base::Json(base::JsonArray(fields.keys.begin(), fields.keys.end())))});
  out.attrs.push_back(
      {attr.fields_found, json_of(session, base::Json(base::JsonArray(fields.found.begin(), fields.found.end())))});
  if (fields.handle) out.attrs.push_back({attr.debug_handle, handle_observation(session, *fields.handle)});
  return out;
}

// sdsc_2 before sdsc_10.
std::vector<std::string> bundle_files(const std::string& directory) {
  std::vector<std::pair<std::int64_t, std::string>> numbered;
  for (const std::string& name : base::list_files(directory).value_or(std::vector<std::string>{})) {
    if (!name.starts_with("sdsc_") || !name.ends_with(".json")) continue;
    std::int64_t number = 0;
    for (const char c : std::string_view(name).substr(5)) {
      if (c < '0' || c > '9' || number > 1'000'000'000) break;
      number = number * 10 + (c - '0');
    }
    numbered.emplace_back(number, name);
  }
  std::sort(numbered.begin(), numbered.end());
  std::vector<std::string> out;
  for (auto& [number, name] : numbered) out.push_back(std::move(name));
  return out;
}

// A file is written for the OpSpec of its number; nothing is said where numbers and OpSpecs are not as many.
Observation file_witness(Session& session, const PendingGraph& graph, const PendingKernel& kernel, std::size_t file,
                         const std::vector<std::string>& names) {
  std::vector<std::vector<const PendingOpSpec*>> entries;
  for (const std::vector<std::size_t>& specs : kernel.op_specs) {
    const bool paired = specs.size() == names.size() && names[file] == fmt::format("sdsc_{}.json", file);
    if (paired) entries.push_back({&graph.op_specs[specs[file]]});
  }
  return op_spec_witness(session, entries);
}

}  // namespace

void collect_op_spec(Session& session, Frame& frame, nb::handle op_spec, nb::handle buffer, nb::handle kernel) {
  if (!is_valid(op_spec)) return;
  PendingGraph& graph = pending_graph(frame);
  model::Recorder& recorder = session.recorder();
  const Tables::Attrs& attr = session.tables().attr;
  if (!has(graph.op_spec_graph)) graph.op_spec_graph = recorder.graph(frame.compile->id, "op_spec", frame.direction);
  model::ObservedUnit out{recorder.unit(graph.op_spec_graph, UnitKind::kOpSpec), {}};
  out.attrs.push_back({attr.op, text_of(session, text(attribute(op_spec, "op")).value_or(""))});
  out.attrs.push_back({attr.is_reduction, json_of(session, plain_json(attribute(op_spec, "is_reduction")))});
  out.attrs.push_back({attr.fields, json_of(session, declared_fields(op_spec))});
  nb::object handle = attribute(op_spec, "debug_handle");
  if (handle.is_valid()) out.attrs.push_back({attr.debug_handle, handle_observation(session, handle_json(handle, 0))});
  // OpSpecs of later generations may carry more of the tracked fields themselves.
  for (const auto& [name, id] :
       {std::pair{"origins", attr.origins}, {"origin_node", attr.origin_node}, {"traceback", attr.traceback}}) {
    const nb::object own = attribute(op_spec, name);
    if (!own.is_valid()) continue;
    Observation o =
        is_populated(own) ? json_of(session, plain_json(own)) : Observation{State::kEmpty, {}, {}, {}, {}, {}};
    out.attrs.push_back({id, std::move(o)});
  }
  if (is_valid(buffer)) {
    out.attrs.push_back({attr.name, text_of(session, operation_name(buffer))});
    out.attrs.push_back({attr.buffer, text_of(session, text(call_method(buffer, "get_name")).value_or(""))});
    read_ir_fields(session, *frame.compile, buffer,
                   {attr.buffer_origins, attr.buffer_origin_node, attr.buffer_traceback, attr.buffer_get_stack_traces},
                   out);
    recorder.link("create_op_spec",
                  {unit_of_operation(session, *frame.compile, buffer, "a buffer outside every captured lowering")},
                  {out.unit});
  }
  PendingOpSpec pending{std::move(out), is_valid(buffer) ? operation_name(buffer) : std::string(), {}};
  if (session.options().level >= Level::kTruth) pending.ops = witnessed_ops(session, kernel, buffer);
  auto open = std::find_if(graph.open_kernels.begin(), graph.open_kernels.end(),
                           [&](const OpenKernel& o) { return o.kernel.is(kernel); });
  if (open == graph.open_kernels.end()) open = graph.open_kernels.insert(open, {nb::borrow(kernel), {}});
  open->op_specs.push_back(graph.op_specs.size());
  graph.op_specs.push_back(std::move(pending));
}

void give_op_specs(Frame& frame, std::string_view name, nb::handle kernel) {
  PendingGraph& graph = pending_graph(frame);
  const auto open = std::find_if(graph.open_kernels.begin(), graph.open_kernels.end(),
                                 [&](const OpenKernel& o) { return o.kernel.is(kernel); });
  const auto named = std::find_if(graph.kernels.begin(), graph.kernels.end(),
                                  [&](const PendingKernel& k) { return k.name == name && !k.is_extern; });
  if (open == graph.open_kernels.end() || named == graph.kernels.end()) return;
  named->op_specs.push_back(std::move(open->op_specs));
  graph.open_kernels.erase(open);
}

void collect_reread(Session& session, Frame& frame, std::string_view name, nb::handle op_specs) {
  PendingGraph& graph = pending_graph(frame);
  const auto named = std::find_if(graph.kernels.begin(), graph.kernels.end(),
                                  [&](const PendingKernel& k) { return k.name == name && !k.is_extern; });
  if (named == graph.kernels.end() || !is_valid(op_specs)) return;
  base::JsonArray list;
  for (Py_ssize_t i = 0, n = PySequence_Size(op_specs.ptr()); i < n; ++i) {
    const nb::object spec = nb::steal(PySequence_GetItem(op_specs.ptr(), i));
    if (!spec.is_valid()) return clear_error();
    base::JsonObject one{{"op", text(attribute(spec, "op")).value_or("")},
                         {"is_reduction", plain_json(attribute(spec, "is_reduction"))}};
    const nb::object handle = attribute(spec, "debug_handle");
    if (handle.is_valid()) one.emplace_back("debug_handle", handle_json(handle, 0));
    list.push_back(base::Json(std::move(one)));
  }
  if (PyErr_Occurred()) return clear_error();
  named->reread = base::Json(std::move(list));
  named->reread_at = line_here(session);
}

void write_op_specs(Session& session, PendingGraph& pending_graph) {
  if (!has(pending_graph.op_spec_graph)) return;
  std::vector<model::ObservedUnit> units;
  for (const PendingOpSpec& spec : pending_graph.op_specs) {
    units.push_back(spec.observed);
    if (session.options().level >= Level::kTruth)
      units.back().attrs.push_back({session.tables().attr.witness, op_spec_witness(session, {{&spec}})});
  }
  session.recorder().snapshot(session.tables().stage.op_spec, pending_graph.op_spec_graph, units);
}

void write_bundles(Session& session, const Frame& frame, const PendingGraph& pending_graph) {
  model::Recorder& recorder = session.recorder();
  std::vector<model::ObservedUnit> files;
  std::vector<std::pair<UnitId, std::vector<UnitId>>> links;
  GraphId graph = GraphId::kNone;
  for (const PendingKernel& kernel : pending_graph.kernels) {
    if (kernel.directory.empty()) continue;
    if (!has(graph)) graph = recorder.graph(frame.compile->id, "bundle", frame.direction);
    std::vector<UnitId> units;
    // Of each file the line that its folder was asked for at.
    const auto write_line = [&](model::ObservedUnit& file) {
      if (!file.attrs.empty()) file.attrs.front().value.loc = kernel.written_at;
    };
    const std::vector<std::string> names = bundle_files(kernel.directory);
    for (std::size_t i = 0; i < names.size(); ++i) {
      units.push_back(recorder.unit(graph, UnitKind::kBundleFile));
      files.push_back(read_bundle_file(session, kernel.directory, names[i], units.back()));
      write_line(files.back());
      if (session.options().level >= Level::kTruth)
        files.back().attrs.push_back(
            {session.tables().attr.witness, file_witness(session, pending_graph, kernel, i, names)});
    }
    links.emplace_back(kernel.observed.unit, std::move(units));
    recorder.volatile_value(recorder.unit_name(kernel.observed.unit), "output_dir", kernel.directory);
  }
  if (!has(graph)) return;
  recorder.snapshot(session.tables().stage.superdsc, graph, files);
  for (auto& [kernel, units] : links) recorder.link("bundle_file", {kernel}, std::move(units));
}

}  // namespace kerntrail::probe
