#include "graph_watch.h"

#include <structmember.h>

#include <algorithm>
#include <unordered_map>

#include "python_text.h"

namespace kerntrail::probe {
namespace {

struct Names {
  PyObject* root = PyUnicode_InternFromString("_root");
  PyObject* next = PyUnicode_InternFromString("_next");
  PyObject* target = PyUnicode_InternFromString("target");
  PyObject* meta = PyUnicode_InternFromString("meta");
  std::array<PyObject*, kWatchedKeys.size()> keys{};
  Names() {
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = PyUnicode_InternFromString(kWatchedKeys[i]);
  }
};

const Names& names() {
  static const Names n;
  return n;
}

// A slot of torch's node type. Nodes are visited a hundred times a compile: where the slot is a plain member of a C
// struct, as in torch 2.13, it is read in place; elsewhere as any attribute.
class Slot {
 public:
  // Invalid where the attribute can't be read.
  nb::object get(PyObject* object, PyObject* name) {
    PyTypeObject* type = Py_TYPE(object);
    if (type != type_) learn(type, name);
    if (offset_ >= 0) {
      PyObject* value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset_);
      if (value != nullptr) return nb::borrow(value);
    }
    return attribute(object, name);
  }

 private:
  void learn(PyTypeObject* type, PyObject* name) {
    type_ = type;
    offset_ = -1;
    PyObject* found = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name);
    if (found == nullptr) return clear_error();
    if (Py_TYPE(found) == &PyMemberDescr_Type) {
      const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(found)->d_member;
      if (member->type == T_OBJECT_EX || member->type == T_OBJECT) offset_ = member->offset;
    }
    Py_DECREF(found);
  }

  PyTypeObject* type_ = nullptr;
  Py_ssize_t offset_ = -1;
};

struct Slots {
  Slot root, next, target, meta;
};

Slots& slots() {
  static Slots s;  // under the interpreter's lock
  return s;
}

Py_ssize_t size_of(PyObject* value) {
  if (value == nullptr) return -1;
  if (PyDict_Check(value)) return PyDict_GET_SIZE(value);
  if (PyList_Check(value)) return PyList_GET_SIZE(value);
  return 0;
}

// Python up to 3.11 gives every state of every dict a number of its own. Later ones have none: 0.
std::uint64_t version_of([[maybe_unused]] PyObject* dict) {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  return 0;
#endif
}

}  // namespace

// Whether anything differs from what was seen; what is new is kept.
bool GraphWatch::refresh(Seen& seen, GraphChanges* changes) {
  bool meta_changed = false;
  const nb::object meta = slots().meta.get(seen.node.ptr(), names().meta);
  const bool is_dict = meta.is_valid() && PyDict_Check(meta.ptr());
  const std::uint64_t version = is_dict ? version_of(meta.ptr()) : 0;
  const bool same_dict = version != 0 && version == seen.meta_version;  // the same objects under the same keys
  seen.meta_version = version;
  for (std::size_t i = 0; i < kWatchedKeys.size(); ++i) {
    PyObject* value = same_dict ? seen.meta[i].object.ptr()
                      : is_dict ? PyDict_GetItemWithError(meta.ptr(), names().keys[i])
                                : nullptr;
    if (value == nullptr && PyErr_Occurred()) clear_error();
    Value& known = seen.meta[i];
    const Py_ssize_t size = size_of(value);
    if (known.object.ptr() == value && known.size == size) continue;
    meta_changed = true;
    known = {value == nullptr ? nb::object() : nb::borrow(value), size};
  }
  const nb::object target = slots().target.get(seen.node.ptr(), names().target);
  const bool retargeted = target.ptr() != seen.target.ptr();
  // Methods and paths are texts: an equal one is no other target.
  bool other = retargeted;
  if (retargeted && target.is_valid() && seen.target.is_valid() && PyUnicode_CheckExact(target.ptr()) &&
      PyUnicode_CheckExact(seen.target.ptr()))
    other = PyUnicode_Compare(target.ptr(), seen.target.ptr()) != 0;
  if (retargeted) seen.target = target;
  if (changes != nullptr && meta_changed) changes->changed.push_back(seen.node);
  if (changes != nullptr && other) changes->retargeted.push_back(seen.node);
  return meta_changed || other;
}

GraphChanges GraphWatch::update(nb::handle graph) {
  GraphChanges out;
  const nb::object root = slots().root.get(graph.ptr(), names().root);
  if (!root.is_valid()) return out;
  // While nodes stand where they stood, they are compared in place; from the first difference on by identity.
  std::size_t place = 0;
  nb::object node = slots().next.get(root.ptr(), names().next);
  for (; place < nodes_.size() && node.is_valid() && node.ptr() == nodes_[place].node.ptr(); ++place) {
    refresh(nodes_[place], &out);
    node = slots().next.get(node.ptr(), names().next);
  }
  if (place == nodes_.size() && (!node.is_valid() || node.ptr() == root.ptr())) return out;
  std::vector<Seen> rest(std::make_move_iterator(nodes_.begin() + static_cast<std::ptrdiff_t>(place)),
                         std::make_move_iterator(nodes_.end()));
  nodes_.resize(place);
  std::unordered_map<PyObject*, std::size_t> where;
  where.reserve(rest.size());
  for (std::size_t i = 0; i < rest.size(); ++i) where.emplace(rest[i].node.ptr(), i);
  std::vector<bool> taken(rest.size(), false);
  for (; node.is_valid() && node.ptr() != root.ptr(); node = slots().next.get(node.ptr(), names().next)) {
    const auto known = where.find(node.ptr());
    if (known != where.end() && !taken[known->second]) {
      taken[known->second] = true;
      nodes_.push_back(std::move(rest[known->second]));
      refresh(nodes_.back(), &out);
    } else {
      Seen fresh;
      fresh.node = node;
      fresh.target = slots().target.get(node.ptr(), names().target);
      refresh(fresh, nullptr);
      nodes_.push_back(std::move(fresh));
      out.created.push_back(node);
    }
  }
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (!taken[i]) out.erased.push_back(rest[i].node);
  }
  return out;
}

}  // namespace kerntrail::probe
