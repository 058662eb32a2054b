#include "spyre_op_spec.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "spyre_body.h"

namespace kerntrail::python {
namespace {

nb::object python_class(const char* name) { return nb::module_::import_("kerntrail.spyre.op_spec").attr(name); }

template <class T>
nb::object or_none(const std::optional<T>& value) {
  return value ? nb::cast(*value) : nb::none();
}

nb::object source_to_python(const std::optional<SourceLoc>& source) {
  if (!source) return nb::none();
  return python_class("SourceLoc")(source->file, source->start_line, source->start_col, or_none(source->end_line),
                                   or_none(source->end_col));
}

nb::object history_to_python(const std::optional<std::vector<ProvenanceTransform>>& history) {
  if (!history) return nb::none();
  nb::list out;
  for (const ProvenanceTransform& step : *history)
    out.append(python_class("ProvenanceTransform")(step.kind, step.pass_name, or_none(step.reason)));
  return nb::tuple(out);
}

nb::object handle_to_python(const DebugHandle& handle) {
  nb::list children;
  for (const DebugHandle& child : handle.fused_from) children.append(handle_to_python(child));
  return python_class("DebugHandle")(handle.id, source_to_python(handle.source), or_none(handle.aten_op),
                                     nb::tuple(nb::cast(handle.ir_chain)), nb::tuple(children),
                                     history_to_python(handle.transform_history));
}

std::optional<std::int64_t> optional_integer(nb::handle value) {
  if (value.is_none()) return std::nullopt;
  return nb::cast<std::int64_t>(value);
}

}  // namespace

std::vector<ProvenanceTransform> history_from_python(nb::handle records) {
  std::vector<ProvenanceTransform> out;
  for (nb::handle record : records) {
    ProvenanceTransform step{nb::cast<std::string>(record.attr("kind")),
                             nb::cast<std::string>(record.attr("pass_name")), std::nullopt};
    if (nb::object reason = record.attr("reason"); !reason.is_none()) step.reason = nb::cast<std::string>(reason);
    out.push_back(std::move(step));
  }
  return out;
}

namespace {

DebugHandle handle_from_python(nb::handle value) {
  DebugHandle handle;
  handle.id = nb::cast<std::uint64_t>(value.attr("id"));
  if (nb::object source = value.attr("source"); !source.is_none()) {
    handle.source =
        SourceLoc{nb::cast<std::string>(source.attr("file")), nb::cast<std::int64_t>(source.attr("start_line")),
                  nb::cast<std::int64_t>(source.attr("start_col")), optional_integer(source.attr("end_line")),
                  optional_integer(source.attr("end_col"))};
  }
  if (nb::object aten = value.attr("aten_op"); !aten.is_none()) handle.aten_op = nb::cast<std::string>(aten);
  for (nb::handle name : value.attr("ir_chain")) handle.ir_chain.push_back(nb::cast<std::string>(name));
  for (nb::handle child : value.attr("fused_from")) handle.fused_from.push_back(handle_from_python(child));
  if (nb::object history = value.attr("transform_history"); !history.is_none())
    handle.transform_history = history_from_python(history);
  return handle;
}

std::string_view memory_name(spyre::Memory memory) {
  switch (memory) {
    case spyre::Memory::kHbm: return "hbm";
    case spyre::Memory::kLx: return "lx";
    case spyre::Memory::kPool: return "pool";
  }
  return "";
}

}  // namespace

void bind_tensor_arg(nb::module_& m) {
  using spyre::TensorArg;
  nb::class_<TensorArg>(m, "TensorArg", "One operand of an OpSpec: the host's view of it and the device's.")
      .def_rw("is_input", &TensorArg::is_input, "Read (true) or written.")
      .def_rw("arg_index", &TensorArg::arg_index, "Position among the kernel's arguments; -1: private to the kernel.")
      .def_rw("name", &TensorArg::name)
      .def_prop_ro("dtype", [](const TensorArg& arg) { return std::string(spyre::dtype_name(arg.dtype)); })
      .def_ro("host_size", &TensorArg::host_size)
      .def_ro("host_stride", &TensorArg::host_stride, "Elements.")
      .def_ro("index", &TensorArg::index, "Element touched at a point of the iteration space.")
      .def_prop_ro("device_size", [](const TensorArg& arg) { return arg.layout.device_size; })
      .def_prop_ro("stride_map", [](const TensorArg& arg) { return arg.layout.stride_map; })
      .def_ro("device_coordinates", &TensorArg::device_coordinates)
      .def_prop_ro("memory", [](const TensorArg& arg) { return memory_name(arg.memory); })
      .def_ro("base", &TensorArg::base, "Bytes.")
      .def("__eq__", [](const TensorArg& a, const TensorArg& b) { return a == b; })
      .def("__repr__", [](const TensorArg& arg) {
        return std::string("TensorArg(") + (arg.is_input ? "in " : "out ") + arg.name + "[" + arg.index + "])";
      });
}

nb::object to_python(const std::optional<DebugHandle>& handle) {
  return handle ? handle_to_python(*handle) : nb::none();
}

nb::object to_python(const spyre::OpSpec& spec) {
  nb::dict space;
  for (const spyre::IterDim& dim : spec.iteration_space) {
    space[nb::cast(dim.symbol)] = nb::make_tuple(dim.extent, dim.split);
  }
  nb::list args;
  for (const spyre::TensorArg& arg : spec.args) args.append(nb::cast(arg));
  return python_class("OpSpec")(spec.op, spec.is_reduction, space, args, json_to_python(spec.op_info),
                                nb::list(nb::cast(spec.tiled_symbols)), json_to_python(spec.symbolic_dim_bounds),
                                to_python(spec.debug_handle));
}

spyre::OpSpec op_spec_from_python(nb::handle value) {
  spyre::OpSpec spec;
  spec.op = nb::cast<std::string>(value.attr("op"));
  spec.is_reduction = nb::cast<bool>(value.attr("is_reduction"));
  for (auto [symbol, range] : nb::cast<nb::dict>(value.attr("iteration_space"))) {
    spec.iteration_space.push_back(
        {nb::cast<std::string>(nb::str(symbol)), nb::cast<std::int64_t>(range[0]), nb::cast<std::int64_t>(range[1])});
  }
  for (nb::handle arg : value.attr("args")) spec.args.push_back(nb::cast<spyre::TensorArg>(arg));
  spec.op_info = json_from_python(value.attr("op_info"));
  for (nb::handle symbol : value.attr("tiled_symbols")) {
    spec.tiled_symbols.push_back(nb::cast<std::string>(nb::str(symbol)));
  }
  spec.symbolic_dim_bounds = json_from_python(value.attr("symbolic_dim_bounds"));
  if (nb::object handle = value.attr("debug_handle"); !handle.is_none()) spec.debug_handle = handle_from_python(handle);
  return spec;
}

nb::object json_to_python(const base::Json& json) { return nb::module_::import_("json").attr("loads")(json.dump()); }

base::Json json_from_python(nb::handle value) {
  const auto text = nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(value));
  auto json = base::Json::parse(text);
  if (!json) throw std::runtime_error(json.error().text());
  return *json;
}

}  // namespace kerntrail::python
