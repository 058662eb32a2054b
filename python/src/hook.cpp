#include "hook.h"

#include <chrono>

#include "python_text.h"

namespace kerntrail::probe {
namespace {

struct Hook {
  nb::object function;  // what is called: the original, unwrapped from staticmethod / classmethod
  std::shared_ptr<HookSite> site;
};

PyTypeObject* hook_type = nullptr;

Hook* hook_of(PyObject* self) { return nb::inst_ptr<Hook>(nb::handle(self)); }

// Errors are counted as those of other hooks are; what was lost is known only to be something.
void observe_light(HookSite& site, const Observer& observer, bool fail, Call& call) {
  const auto start = std::chrono::steady_clock::now();
  try {
    if (fail) throw std::runtime_error("made to fail by a test");
    observer(call);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    site.guard(site, [&] { throw std::runtime_error(what); });
  }
  if (PyErr_Occurred()) clear_error();
  if (site.clock) {
    const auto spent = std::chrono::steady_clock::now() - start;
    const auto ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
    *site.clock += ns;
    site.spent_ns += ns;
  }
}

void observe(HookSite& site, const Observer& observer, bool fail, Call& call) {
  if (!observer && !fail) return;
  if (site.light) return observe_light(site, observer, fail, call);
  site.guard(site, [&] {
    if (fail) throw std::runtime_error("made to fail by a test");
    observer(call);
  });
}

// Saves the original's exception while the observer looks, and puts it back with its traceback.
PyObject* after_raise(HookSite& site, Call& call) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  call.raised = true;
  call.error = std::string(python_type_name(value)) + ": " + text(value).value_or("");
  observe(site, site.after, site.fail_after, call);
  PyErr_Restore(type, value, trace);
  return nullptr;
}

PyObject* hook_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Hook* hook = hook_of(self);
  const nb::object function = hook->function;             // the hook may be taken away during the call
  const std::shared_ptr<HookSite> site = hook->site;
  if (!site->active) return PyObject_Call(function.ptr(), args, kwargs);
  ++site->record.fired;
  Call call{args, kwargs, {}, false, {}, {}, 0, site.get()};
  observe(*site, site->before, site->fail_before, call);
  PyObject* result = PyObject_Call(function.ptr(), args, kwargs);
  if (!result) return after_raise(*site, call);
  call.result = result;
  observe(*site, site->after, site->fail_after, call);
  return result;
}

PyObject* hook_get(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyObject* hook_getattro(PyObject* self, PyObject* name) {
  const auto is = [&](const char* other) { return PyUnicode_CompareWithASCIIString(name, other) == 0; };
  if (is("__wrapped__")) return Py_NewRef(hook_of(self)->function.ptr());
  if (!is("__class__")) {
    if (PyObject* found = PyObject_GetAttr(hook_of(self)->function.ptr(), name)) return found;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
    PyErr_Clear();
  }
  return PyObject_GenericGetAttr(self, name);
}

int hook_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(hook_of(self)->function.ptr());
  return 0;
}

int hook_clear(PyObject* self) {
  hook_of(self)->function.reset();
  return 0;
}

PyType_Slot hook_slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(hook_call)},         {Py_tp_descr_get, reinterpret_cast<void*>(hook_get)},
    {Py_tp_getattro, reinterpret_cast<void*>(hook_getattro)}, {Py_tp_traverse, reinterpret_cast<void*>(hook_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(hook_clear)},       {0, nullptr}};

nb::object raw_attribute(HookSite& site) {
  const nb::object dict = attribute(site.owner, "__dict__");
  if (!dict.is_valid()) return {};
  PyObject* raw = PyObject_GetItem(dict.ptr(), nb::str(site.name.c_str()).ptr());
  if (!raw) clear_error();
  return nb::steal(raw);
}

bool set_attribute(HookSite& site, nb::handle value) {
  if (PyObject_SetAttrString(site.owner.ptr(), site.name.c_str(), value.ptr()) == 0) return true;
  clear_error();
  return false;
}

}  // namespace

nb::handle Call::arg(std::size_t i, const char* name) const { return argument(args, kwargs, i, name); }

void bind_hook_type(nb::module_& module) {
  const nb::object type = nb::class_<Hook>(module, "Hook", nb::type_slots(hook_slots));
  hook_type = reinterpret_cast<PyTypeObject*>(type.ptr());
}

bool install(const std::shared_ptr<HookSite>& site) {
  const nb::object raw = raw_attribute(*site);
  if (!raw.is_valid()) {
    site->record.detail = "not found";
    return false;
  }
  const bool is_static = Py_TYPE(raw.ptr()) == &PyStaticMethod_Type;
  const bool is_class = Py_TYPE(raw.ptr()) == &PyClassMethod_Type;
  nb::object function = is_static || is_class ? attribute(raw, "__func__") : raw;
  if (!PyCallable_Check(function.ptr())) {
    site->record.detail = "is not callable";
    return false;
  }
  nb::object hook = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(hook_type)));
  new (nb::inst_ptr<Hook>(hook)) Hook{function, site};
  nb::inst_mark_ready(hook);
  if (is_static) hook = nb::steal(PyStaticMethod_New(hook.ptr()));
  if (is_class) hook = nb::steal(PyClassMethod_New(hook.ptr()));
  site->original = raw;
  site->callable = hook;
  site->active = true;
  if (set_attribute(*site, hook)) return true;
  site->active = false;
  site->record.detail = "the attribute can't be set";
  return false;
}

bool uninstall(HookSite& site) {
  site.active = false;
  if (!site.callable.is_valid()) return true;
  const bool on_top = raw_attribute(site).ptr() == site.callable.ptr();
  const bool restored =
      on_top && set_attribute(site, site.original) && raw_attribute(site).ptr() == site.original.ptr();
  site.callable.reset();
  site.original.reset();
  site.owner.reset();
  return restored;
}

}  // namespace kerntrail::probe
