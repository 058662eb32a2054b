// The callable that stands in for a closure of a loop nest.
#include "python_text.h"
#include "witness.h"

#include <structmember.h>

namespace kerntrail::probe {
namespace {

struct Tagged {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;
  PyObject* weak;
  std::int64_t mark;
};

PyTypeObject* tagged_type = nullptr;

Tagged* as_tagged(PyObject* self) { return reinterpret_cast<Tagged*>(self); }

PyObject* call_tagged(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  const nb::object function = nb::borrow(as_tagged(self)->function);
  Witness* witness = tracing().witness.get();
  const std::int32_t source = witness != nullptr ? witness->marked(as_tagged(self)->mark) : kNothing;
  if (source == kNothing) return PyObject_Vectorcall(function.ptr(), args, count, names);
  const std::shared_ptr<Witness> held = tracing().witness;
  const std::size_t depth = held->running.size();
  Running now = depth > 0 ? held->running.back() : Running{};
  now.source = source;
  now.shared = false;
  held->running.push_back(now);
  PyObject* result = PyObject_Vectorcall(function.ptr(), args, count, names);
  if (held->running.size() > depth) held->running.resize(depth);
  return result;
}

PyObject* itself(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef methods[] = {{"__copy__", itself, METH_NOARGS, nullptr},
                         {"__deepcopy__", itself, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyObject* get_attribute(PyObject* self, PyObject* name) {
  const auto is = [&](const char* other) { return PyUnicode_CompareWithASCIIString(name, other) == 0; };
  if (is("__wrapped__")) return Py_NewRef(as_tagged(self)->function);
  if (is("__class__") || is("__copy__") || is("__deepcopy__")) return PyObject_GenericGetAttr(self, name);
  return PyObject_GetAttr(as_tagged(self)->function, name);
}

// As the functions they stand for: two loop nests of one closure are equal with a witness and without.
PyObject* compare(PyObject* a, PyObject* b, int operation) {
  PyObject* x = is_tagged(a) ? as_tagged(a)->function : a;
  PyObject* y = is_tagged(b) ? as_tagged(b)->function : b;
  return PyObject_RichCompare(x, y, operation);
}

Py_hash_t hash(PyObject* self) { return PyObject_Hash(as_tagged(self)->function); }
PyObject* represent(PyObject* self) { return PyObject_Repr(as_tagged(self)->function); }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_tagged(self)->function);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_tagged(self)->function);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (as_tagged(self)->weak != nullptr) PyObject_ClearWeakRefs(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Tagged, call), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(Tagged, weak), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                       {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                       {Py_tp_hash, reinterpret_cast<void*>(hash)},
                       {Py_tp_repr, reinterpret_cast<void*>(represent)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {"kerntrail._native.Tagged", sizeof(Tagged), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

void bind_tagged_type(nb::module_& module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw nb::python_error();
  tagged_type = reinterpret_cast<PyTypeObject*>(type);
  module.attr("Tagged") = nb::steal(type);
}

nb::object tagged(const Witness& witness, nb::handle function, std::int32_t source) {
  auto* self = reinterpret_cast<Tagged*>(PyType_GenericAlloc(tagged_type, 0));
  if (self == nullptr) throw nb::python_error();
  self->call = call_tagged;
  self->function = Py_NewRef(function.ptr());
  self->mark = witness.mark(source);
  return nb::steal(reinterpret_cast<PyObject*>(self));
}

bool is_tagged(nb::handle object) { return object.is_valid() && Py_TYPE(object.ptr()) == tagged_type; }

std::int32_t tag_of(const Witness& witness, nb::handle object) {
  return is_tagged(object) ? witness.marked(as_tagged(object.ptr())->mark) : kNothing;
}

}  // namespace kerntrail::probe
