#include "observe_fx.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/strings.h"
#include "python_text.h"

namespace kerntrail::probe {
namespace {

constexpr std::size_t kReprLimit = 200;
constexpr std::size_t kModulesReprLimit = 1000;  // before ids are taken out; cut to kReprLimit after
constexpr int kMaxChainDepth = 16;
constexpr std::string_view kFromOutside = "an input from outside its graph";

// Attribute names used for every node, interned once.
struct Names {
  PyObject* root = PyUnicode_InternFromString("_root");
  PyObject* next = PyUnicode_InternFromString("_next");
  PyObject* name = PyUnicode_InternFromString("name");
  PyObject* op = PyUnicode_InternFromString("op");
  PyObject* target = PyUnicode_InternFromString("target");
  PyObject* args = PyUnicode_InternFromString("_args");
  PyObject* kwargs = PyUnicode_InternFromString("_kwargs");
  PyObject* meta = PyUnicode_InternFromString("meta");
  PyObject* inputs = PyUnicode_InternFromString("_input_nodes");
};

const Names& names() {
  static const Names n;
  return n;
}

std::uint64_t address(nb::handle object) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(object.ptr()));
}

// Identities of a container's items: while they are the same objects, so is what we would read. Dynamo and AOT share
// these containers between nodes and replace them rather than change their items.
std::uint64_t signature_of(nb::handle object) {
  std::uint64_t out = 1;
  PyObject* p = object.ptr();
  if (PyList_Check(p)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(p); ++i) out = base::hash64(address(PyList_GET_ITEM(p, i)), out);
  } else if (PyDict_Check(p)) {
    PyObject *k, *v;
    for (Py_ssize_t pos = 0; PyDict_Next(p, &pos, &k, &v);)
      out = base::hash64(address(v), base::hash64(address(k), out));
  } else {
    return 0;
  }
  return out;
}

class NodeReader {
 public:
  NodeReader(Session& session, CompileState& compile, std::string_view unknown_inputs = kFromOutside)
      : session_(session), compile_(compile), unknown_inputs_(unknown_inputs), recorder_(session.recorder()), attr_(session.tables().attr) {}

  model::ObservedUnit read(nb::handle node, UnitId unit) {
    model::ObservedUnit out{unit, {}};
    out.attrs.reserve(12);
    const nb::object meta = attribute(node, names().meta);
    add(out, attr_.name, text_value(attribute(node, names().name)));
    add(out, attr_.op, text_value(attribute(node, names().op)));
    add(out, attr_.target, target_value(attribute(node, names().target)));
    add(out, attr_.inputs, inputs_value(node));
    add(out, attr_.args, guarded([&] { return args_value(node); }));
    add(out, attr_.type, guarded([&] { return type_value(meta); }));
    add(out, attr_.keys, keys_value(meta));
    tracked(out, attr_.stack_trace, "stack_trace", meta, [&](nb::handle v, Observation& o) { read_stack(v, o); });
    tracked(out, attr_.nn_module_stack, "nn_module_stack", meta,
            [&](nb::handle v, Observation& o) { read_modules(v, o); });
    tracked(out, attr_.source_fn_stack, "source_fn_stack", meta,
            [&](nb::handle v, Observation& o) { read_pairs(v, o); });
    tracked(out, attr_.original_aten, "original_aten", meta, [&](nb::handle v, Observation& o) { read_op(v, o); });
    tracked(out, attr_.from_node, "from_node", meta, [&](nb::handle v, Observation& o) { read_sources(v, o); });
    return out;
  }

 private:
  static Observation unreadable() { return Observation{State::kUnreadable, {}, {}, {}, {}, {}}; }

  // One hostile value (an iterator or a property that raises) costs its own attr, never the stage.
  template <class Read>
  static Observation guarded(Read&& read) {
    try {
      return read();
    } catch (nb::python_error& error) {
      if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
      return unreadable();
    }
  }

  static void add(model::ObservedUnit& out, AttrId attr, Observation value) {
    if (value.state != State::kNoSlot) out.attrs.push_back({attr, std::move(value)});
  }

  Observation text_value(nb::handle object) {
    Observation o;
    if (!object.is_valid()) {
      o.state = State::kUnreadable;
      return o;
    }
    const auto t = text(object);
    o.state = !t ? State::kUnreadable : t->empty() ? State::kEmpty : State::kPresent;
    if (t) o.text = recorder_.text(*t);
    return o;
  }

  // Functions and operators never change what they print; strings (method names, get_attr paths) are short.
  Observation target_value(nb::handle target) {
    return cached(kTarget, target, [&](nb::handle v, Observation& o) { o = text_value(v); });
  }

  Observation json_value(const base::Json& json) {
    Observation o;
    o.state = State::kPresent;
    o.text = recorder_.json_value(json);
    return o;
  }

  Observation inputs_value(nb::handle node) {
    Observation o;
    const nb::object inputs = attribute(node, names().inputs);
    if (!inputs.is_valid()) {
      o.state = State::kUnreadable;
      return o;
    }
    const nb::object iterator = nb::steal(PyObject_GetIter(inputs.ptr()));
    while (iterator.is_valid()) {
      const nb::object input = nb::steal(PyIter_Next(iterator.ptr()));
      if (!input.is_valid()) break;
      o.refs.push_back(unit_of_node(session_, compile_, input, unknown_inputs_));
    }
    if (PyErr_Occurred()) {
      clear_error();
      return unreadable();
    }
    o.state = o.refs.empty() ? State::kEmpty : State::kPresent;
    return o;
  }

  // Non-tensor arguments; a node among them is {"input": its position in `inputs`}.
  Observation args_value(nb::handle node) {
    const nb::object args = attribute(node, names().args), kwargs = attribute(node, names().kwargs);
    if (!args.is_valid() || !kwargs.is_valid()) return unreadable();
    const std::uint64_t signature = base::hash64(address(kwargs), address(args));
    CachedValue& slot = compile_.values[kArgs][args.ptr()];
    if (slot.object.is_valid() && slot.signature == signature) return slot.value;
    const nb::object inputs = attribute(node, names().inputs);
    base::JsonArray positional;
    for (nb::handle item : nb::borrow<nb::tuple>(args)) positional.push_back(argument_json(item, inputs, 0));
    base::Json named = base::JsonObject{};
    for (auto [k, v] : nb::borrow<nb::dict>(kwargs)) named.set(text(k).value_or("?"), argument_json(v, inputs, 0));
    base::Json json = base::JsonObject{};
    json.set("args", std::move(positional));
    if (!named.as_object().empty()) json.set("kwargs", std::move(named));
    compile_.keep.push_back(kwargs);
    slot = {args, signature, json_value(json)};
    return slot.value;
  }

  base::Json argument_json(nb::handle value, nb::handle inputs, int depth) {
    PyObject* p = value.ptr();
    if (inputs.is_valid() && PyDict_Check(inputs.ptr()) && PyDict_Contains(inputs.ptr(), p) == 1) {
      std::int64_t i = 0;
      PyObject *k, *v;
      for (Py_ssize_t pos = 0; PyDict_Next(inputs.ptr(), &pos, &k, &v); ++i) {
        if (k == p) return base::Json(base::JsonObject{{"input", base::Json(i)}});
      }
    }
    clear_error();  // unhashable values are no nodes
    if (depth < kMaxChainDepth && (PyList_Check(p) || PyTuple_Check(p))) {
      base::JsonArray out;
      for (nb::handle item : value) out.push_back(argument_json(item, inputs, depth + 1));
      return base::Json(std::move(out));
    }
    return plain_json(value);
  }

  // dtype, shape, strides and device of the node's value; symbolic sizes as text.
  Observation type_value(nb::handle meta) {
    nb::handle value = dict_item(meta, "val");
    if (!is_valid(value)) value = dict_item(meta, "example_value");
    if (!is_valid(value)) return {};
    return cached(kType, value, [&](nb::handle v, Observation& o) { read_type(v, o); });
  }

  // What a tensor's type is made of.
  struct TensorParts {
    nb::object dtype, shape, strides, device;
    bool is_tensor() const { return dtype.is_valid() && shape.is_valid(); }
  };

  static TensorParts parts_of(nb::handle value) {
    TensorParts out{attribute(value, "dtype"), attribute(value, "shape"), {}, {}};
    if (!out.is_tensor()) return out;
    out.strides = call_method(value, "stride");
    out.device = attribute(value, "fake_device");  // of a fake tensor; `device` asks for the same the long way
    if (!is_valid(out.device)) out.device = attribute(value, "device");
    return out;
  }

  // Many values have one type: it is written out once.
  void read_type(nb::handle value, Observation& o) {
    if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
      o = json_value(type_json(value, 0));
      return;
    }
    const TensorParts parts = parts_of(value);
    std::string key(1, 't');
    const bool plain = parts.is_tensor() && add_numbers(key, parts.shape) && add_numbers(key, parts.strides);
    if (!plain) {
      o = json_value(parts.is_tensor() ? tensor_json(parts) : base::Json(python_type_name(value)));
      return;
    }
    key.append(shared_text(parts.dtype)).append(1, '\0').append(shared_text(parts.device));
    o = by_content(std::move(key), [&] { return json_value(tensor_json(parts)); });
  }

  static void add_number(std::string& key, std::uint64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  // False unless it is a tuple of plain integers.
  static bool add_numbers(std::string& key, nb::handle numbers) {
    if (!numbers.is_valid() || !PyTuple_Check(numbers.ptr())) return false;
    const Py_ssize_t size = PyTuple_GET_SIZE(numbers.ptr());
    add_number(key, static_cast<std::uint64_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* item = PyTuple_GET_ITEM(numbers.ptr(), i);
      int overflow = 0;
      if (!PyLong_CheckExact(item)) return false;
      add_number(key, static_cast<std::uint64_t>(PyLong_AsLongLongAndOverflow(item, &overflow)));
      if (overflow != 0) return false;
    }
    return true;
  }

  template <class Make>
  Observation by_content(std::string key, Make&& make) {
    const auto known = compile_.contents.find(key);
    if (known != compile_.contents.end()) return known->second;
    return compile_.contents.emplace(std::move(key), make()).first->second;
  }

  base::Json type_json(nb::handle value, int depth) {
    if (depth < 4 && (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()))) {
      base::JsonArray out;
      for (nb::handle item : value) out.push_back(type_json(item, depth + 1));
      return base::Json(std::move(out));
    }
    const TensorParts parts = parts_of(value);
    return parts.is_tensor() ? tensor_json(parts) : base::Json(python_type_name(value));
  }

  base::Json tensor_json(const TensorParts& parts) {
    base::Json out = base::JsonObject{};
    out.set("dtype", base::Json(base::replace_all(shared_text(parts.dtype), "torch.", "")));
    out.set("shape", plain_json(parts.shape));
    if (parts.strides.is_valid()) out.set("strides", plain_json(parts.strides));
    out.set("device", base::Json(shared_text(parts.device)));
    return out;
  }

  // str() of objects that never change what they print and that many values share.
  std::string shared_text(nb::handle object) {
    if (!object.is_valid()) return {};
    const Observation shown = cached(kShared, object, [&](nb::handle v, Observation& o) { o = text_value(v); });
    return std::string(recorder_.text_of(shown.text));
  }

  Observation keys_value(nb::handle meta) {
    if (!meta.is_valid() || !PyDict_Check(meta.ptr())) return unreadable();
    PyObject *k, *v;
    std::uint64_t signature = 1;
    for (Py_ssize_t pos = 0; PyDict_Next(meta.ptr(), &pos, &k, &v);) signature = base::hash64(address(k), signature);
    // Most nodes of a graph have the same keys, and those are the same objects.
    if (const auto known = compile_.key_lists.find(signature); known != compile_.key_lists.end()) return known->second;
    std::vector<std::string> keys;
    for (Py_ssize_t pos = 0; PyDict_Next(meta.ptr(), &pos, &k, &v);) {
      keys.push_back(text(k).value_or("<key>"));
      compile_.keep.push_back(nb::borrow(k));
    }
    std::sort(keys.begin(), keys.end());
    base::JsonArray json(keys.begin(), keys.end());
    Observation o = json_value(base::Json(std::move(json)));
    if (keys.empty()) o.state = State::kEmpty;
    compile_.key_lists.emplace(signature, o);
    return o;
  }

  template <class Read>
  void tracked(model::ObservedUnit& out, AttrId attr, const char* key, nb::handle meta, Read&& read) {
    const nb::handle value = dict_item(meta, key);
    if (!value.is_valid()) return;  // key absent: no slot
    if (value.is_none() || !is_populated(value)) {
      Observation o;
      o.state = State::kEmpty;
      o.python_type = recorder_.text(python_type_name(value));
      return add(out, attr, std::move(o));
    }
    add(out, attr, guarded([&] { return cached(kTracked, value, std::forward<Read>(read)); }));
  }

  template <class Read>
  Observation cached(ValueRole role, nb::handle value, Read&& read) {
    const std::uint64_t signature = signature_of(value);
    CachedValue& slot = compile_.values[role][value.ptr()];
    if (slot.object.is_valid() && slot.signature == signature) return slot.value;
    Observation o;
    o.state = State::kPresent;
    read(value, o);
    if (!has(o.python_type)) o.python_type = recorder_.text(python_type_name(value));
    // Reading may have used the cache for parts of this value: look the slot up again.
    compile_.values[role][value.ptr()] = {nb::borrow(value), signature, o};
    return o;
  }

  void keep_repr(nb::handle value, Observation& o) {
    if (const auto r = repr(value, kReprLimit)) o.repr = recorder_.text(*r);
  }

  void read_stack(nb::handle value, Observation& o) {
    const auto t = text(value);
    if (!t) {
      o.state = State::kUnreadable;
      return;
    }
    o.text = recorder_.text(*t);
    o.loc = session_.sources().chain(*t);
  }

  // Dynamo keys modules by id(), with "@n" behind it for the n-th call of one module: the id part becomes "id0",
  // "id1", ... in the order they are met in the compile.
  std::string stable_key(const std::string& key) {
    const std::string head = key.substr(0, key.find('@'));
    const bool is_id = head.size() >= 6 && head.find_first_not_of("0123456789") == std::string::npos;
    if (!is_id) return key;
    const auto [it, inserted] = compile_.object_ids.try_emplace(head, compile_.object_ids.size());
    return fmt::format("id{}{}", it->second, key.substr(head.size()));
  }

  void read_modules(nb::handle value, Observation& o) {
    if (!PyDict_Check(value.ptr())) {
      keep_repr(value, o);
      return set_json(o, plain_json(value));
    }
    const std::string content = modules_content(value);
    if (content.empty()) return write_modules(value, o);
    o = by_content(content, [&] {
      Observation read = o;
      write_modules(value, read);
      return read;
    });
  }

  // The texts and classes in it; empty where it holds anything else.
  static std::string modules_content(nb::handle modules) {
    std::string out(1, 'm');
    const auto add = [&out](PyObject* item) {
      const auto view = str_view(item);
      if (!view && !PyType_Check(item)) return false;
      add_number(out, view ? view->size() : address(item));
      if (view) out += *view;
      return true;
    };
    PyObject *k, *v;
    for (Py_ssize_t pos = 0; PyDict_Next(modules.ptr(), &pos, &k, &v);) {
      const bool pair = PyTuple_CheckExact(v) && PyTuple_GET_SIZE(v) == 2;
      if (!pair || !add(k) || !add(PyTuple_GET_ITEM(v, 0)) || !add(PyTuple_GET_ITEM(v, 1))) return {};
    }
    return out + std::string(python_type_name(modules));
  }

  void write_modules(nb::handle value, Observation& o) {
    base::JsonArray out;
    std::string shown = repr(value, kModulesReprLimit).value_or("");
    PyObject *k, *v;
    for (Py_ssize_t pos = 0; PyDict_Next(value.ptr(), &pos, &k, &v);) {
      base::Json entry = base::JsonObject{};
      const std::string key = text(k).value_or(""), stable = stable_key(key);
      if (stable != key) shown = base::replace_all(std::move(shown), key, stable);
      entry.set("key", base::Json(stable));
      const bool pair = PyTuple_Check(v) && PyTuple_GET_SIZE(v) >= 2;
      entry.set("name", base::Json(text(pair ? PyTuple_GET_ITEM(v, 0) : v).value_or("")));
      if (pair) entry.set("class", base::Json(class_text(PyTuple_GET_ITEM(v, 1))));
      out.push_back(std::move(entry));
    }
    o.repr = recorder_.text(base::cut(shown, kReprLimit));
    set_json(o, base::Json(std::move(out)));
  }

  static std::string class_text(nb::handle cls) {
    const auto qualname = text(attribute(cls, "__qualname__")), module = text(attribute(cls, "__module__"));
    if (PyType_Check(cls.ptr()) && qualname && module) return *module + "." + *qualname;
    return text(cls).value_or("");
  }

  void read_pairs(nb::handle value, Observation& o) {
    keep_repr(value, o);
    set_json(o, plain_json(value));
  }

  void read_op(nb::handle value, Observation& o) {
    keep_repr(value, o);
    o.text = recorder_.text(text(value).value_or(""));
  }

  void read_sources(nb::handle value, Observation& o) {
    set_json(o, sources_json(value, o.refs, 0));  // no repr: it is slow and prints graph ids; the JSON says more
  }

  base::Json sources_json(nb::handle list, std::vector<UnitId>& refs, int depth) {
    base::JsonArray out;
    if (depth >= kMaxChainDepth || !list.is_valid() || !(PyList_Check(list.ptr()) || PyTuple_Check(list.ptr())))
      return base::Json(std::move(out));
    for (nb::handle source : list) {
      base::Json entry = base::JsonObject{};
      const std::string name = text(attribute(source, "name")).value_or("");
      const std::int64_t graph_id = integer(attribute(source, "graph_id"), -1);
      entry.set("name", base::Json(name));
      entry.set("pass", base::Json(text(attribute(source, "pass_name")).value_or("")));
      entry.set("action", base::Json(action_text(attribute(source, "action"))));
      const auto graph = compile_.named.find(graph_id);
      entry.set("graph", base::Json(graph == compile_.named.end() ? std::string("foreign")
                                                                  : recorder_.graph_name(graph->second.graph)));
      if (graph != compile_.named.end()) {
        if (const auto unit = graph->second.by_name.find(name); unit != graph->second.by_name.end()) {
          entry.set("unit", base::Json(recorder_.unit_name(unit->second)));
          if (std::find(refs.begin(), refs.end(), unit->second) == refs.end()) refs.push_back(unit->second);
        }
      }
      const nb::object from = attribute(source, "from_node");
      if (is_populated(from)) entry.set("from", sources_json(from, refs, depth + 1));
      out.push_back(std::move(entry));
    }
    return base::Json(std::move(out));
  }

  static std::string action_text(nb::handle actions) {
    std::vector<std::string> parts;
    if (actions.is_valid() && PyList_Check(actions.ptr())) {
      for (nb::handle action : actions) parts.push_back(text(attribute(action, "value")).value_or(""));
    }
    return base::join(parts, "+");
  }

  void set_json(Observation& o, const base::Json& json) { o.text = recorder_.json_value(json); }

  Session& session_;
  CompileState& compile_;
  std::string_view unknown_inputs_;
  model::Recorder& recorder_;
  const Tables::Attrs& attr_;
};

}  // namespace

// Every node of a graph in order. Nodes are linked in a ring through the root.
std::vector<nb::object> nodes_of(nb::handle graph) {
  std::vector<nb::object> out;
  const nb::object root = attribute(graph, names().root);
  if (!root.is_valid()) return out;
  for (nb::object node = attribute(root, names().next); node.is_valid() && node.ptr() != root.ptr();
       node = attribute(node, names().next)) {
    out.push_back(node);
  }
  return out;
}

GraphId fx_graph_id(Session& session, CompileState& compile, nb::handle graph, std::string_view direction,
                    std::string_view path) {
  const auto it = compile.graphs.find(graph.ptr());
  if (it != compile.graphs.end()) return it->second;
  compile.named.erase(static_cast<std::int64_t>(address(graph)));  // an earlier graph that lived at this address
  const GraphId id = session.recorder().graph(compile.id, "fx", direction, path);
  compile.graphs.emplace(graph.ptr(), id);
  compile.places[id] = {std::string(direction), std::string(path)};
  compile.keep.push_back(nb::borrow(graph));
  return id;
}

nb::object graph_of(nb::handle module_or_graph) {
  if (!is_valid(module_or_graph)) return {};
  if (attribute(module_or_graph, names().root).is_valid()) return nb::borrow(module_or_graph);
  nb::object graph = attribute(module_or_graph, "graph");
  return graph.is_valid() && attribute(graph, names().root).is_valid() ? graph : nb::object();
}

SnapshotId snapshot_fx(Session& session, CompileState& compile, nb::handle graph, StageId stage,
                       std::string_view direction, std::string_view path) {
  const GraphId id = fx_graph_id(session, compile, graph, direction, path);
  const std::vector<nb::object> nodes = nodes_of(graph);
  std::vector<UnitId> units;
  units.reserve(nodes.size());
  for (const nb::object& node : nodes) {  // all ids first: inputs of a node may come later in ill-formed graphs
    const auto [it, inserted] = compile.units.try_emplace(node.ptr(), UnitId::kNone);
    if (inserted) {
      it->second = session.recorder().unit(id, UnitKind::kFxNode);
      compile.keep.push_back(node);
    }
    units.push_back(it->second);
  }
  NodeReader reader(session, compile);
  std::vector<model::ObservedUnit> observed;
  observed.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) observed.push_back(reader.read(nodes[i], units[i]));
  return session.recorder().snapshot(stage, id, observed);
}

model::ObservedUnit read_node(Session& session, CompileState& compile, nb::handle node, UnitId unit,
                              std::string_view why) {
  return NodeReader(session, compile, why).read(node, unit);
}

void remember_names(Session& session, CompileState& compile, nb::handle graph) {
  const GraphId id = fx_graph_id(session, compile, graph, "none", "");
  NamedGraph& named = compile.named[static_cast<std::int64_t>(address(graph))];
  named.graph = id;
  for (const nb::object& node : nodes_of(graph)) {
    const UnitId unit = unit_behind(compile, node.ptr());
    const auto name = text(attribute(node, names().name));
    if (has(unit) && name) named.by_name[*name] = unit;
  }
}

void remember_backward(CompileState& compile, nb::handle module, const std::string& path) {
  const nb::object graph = graph_of(module);
  if (!graph.is_valid()) return;
  auto& by_name = compile.backward[path];
  for (const nb::object& node : nodes_of(graph)) {
    const UnitId unit = unit_behind(compile, node.ptr());
    const auto name = text(attribute(node, names().name));
    if (has(unit) && name) by_name[*name] = unit;
  }
  const nb::object children = attribute(module, "_modules");
  if (!children.is_valid() || !PyDict_Check(children.ptr())) return;
  PyObject *k, *child;
  for (Py_ssize_t pos = 0; PyDict_Next(children.ptr(), &pos, &k, &child);) {
    const std::string name = text(k).value_or("");
    if (child != Py_None) remember_backward(compile, child, path.empty() ? name : path + "." + name);
  }
}

UnitId unit_of_node(Session& session, CompileState& compile, nb::handle node, std::string_view why) {
  const auto [it, inserted] = compile.units.try_emplace(node.ptr(), UnitId::kNone);
  if (!inserted) return it->second;
  compile.keep.push_back(nb::borrow(node));
  const nb::object graph = attribute(node, "graph");
  const GraphId id = fx_graph_id(session, compile, graph.is_valid() ? nb::handle(graph) : node, "none", "");
  const std::string name = text(attribute(node, names().name)).value_or("?");
  const UnitId unit = session.recorder().unit(id, UnitKind::kFxNode, fmt::format("{}: {}", why, name));
  compile.units[node.ptr()] = unit;
  ++compile.referred_only[std::string(why)];
  return unit;
}

std::string submodule_name(nb::handle parent, nb::handle child) {
  const nb::object modules = attribute(parent, "_modules");
  if (!modules.is_valid() || !PyDict_Check(modules.ptr())) return {};
  PyObject *k, *v;
  for (Py_ssize_t pos = 0; PyDict_Next(modules.ptr(), &pos, &k, &v);) {
    if (v == child.ptr()) return text(k).value_or("");
  }
  return {};
}

}  // namespace kerntrail::probe
