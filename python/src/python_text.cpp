#include "python_text.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "base/strings.h"

namespace kerntrail::probe {
namespace {

constexpr std::int64_t kExactInDouble = std::int64_t{1} << 53;

nb::object take(PyObject* result, bool* raised) {
  if (raised) *raised = false;
  if (!result) {
    if (raised) *raised = PyErr_ExceptionMatches(PyExc_AttributeError) == 0;
    clear_error();
  }
  return nb::steal(result);
}

// The text of a sympy Integer, which sizes of buffers are: printing one the long way takes some thirty microseconds.
std::optional<std::string> symbolic_integer(nb::handle o) {
  const std::string_view type = python_type_name(o);
  if (type != "Integer" && type != "One" && type != "Zero") return std::nullopt;
  const nb::object module = attribute(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(o.ptr()))), "__module__");
  if (str_view(module) != "sympy.core.numbers") return std::nullopt;
  const nb::object value = attribute(o, "p");
  if (!value.is_valid() || !PyLong_CheckExact(value.ptr())) return std::nullopt;
  return text(value);
}

base::Json json_of(nb::handle o, int depth, int limit) {
  if (!is_valid(o)) return {};
  PyObject* p = o.ptr();
  if (PyBool_Check(p)) return base::Json(p == Py_True);
  if (PyLong_CheckExact(p)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(p, &overflow);
    if (overflow == 0 && v < kExactInDouble && v > -kExactInDouble) return base::Json(static_cast<std::int64_t>(v));
    return base::Json(text(o).value_or("<int>"));
  }
  if (PyFloat_CheckExact(p)) {
    const double v = PyFloat_AS_DOUBLE(p);
    return std::isfinite(v) ? base::Json(v) : base::Json(repr(o, 32).value_or("nan"));
  }
  if (depth >= limit) return base::Json("...");
  if (PyList_Check(p) || PyTuple_Check(p) || PyAnySet_Check(p)) {
    base::JsonArray out;
    const nb::object iterator = nb::steal(PyObject_GetIter(p));
    if (!iterator.is_valid()) clear_error();
    while (iterator.is_valid()) {
      const nb::object item = nb::steal(PyIter_Next(iterator.ptr()));
      if (!item.is_valid()) break;
      out.push_back(json_of(item, depth + 1, limit));
    }
    if (PyErr_Occurred()) {
      clear_error();
      return base::Json("<unreadable>");
    }
    // Built-in sets come in hash order, which differs from run to run.
    if (PyAnySet_Check(p))
      std::sort(out.begin(), out.end(), [](const base::Json& a, const base::Json& b) { return a.dump() < b.dump(); });
    return base::Json(std::move(out));
  }
  if (PyDict_Check(p)) {
    base::Json out = base::JsonObject{};
    PyObject *k, *v;
    for (Py_ssize_t pos = 0; PyDict_Next(p, &pos, &k, &v);)
      out.set(text(k).value_or("<key>"), json_of(v, depth + 1, limit));
    return out;
  }
  if (auto integer = symbolic_integer(o)) return base::Json(std::move(*integer));
  return base::Json(text(o).value_or("<unreadable>"));
}

}  // namespace

void clear_error() {
  const bool interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
  PyErr_Clear();
  if (interrupted) PyErr_SetInterrupt();
}

PyObject* interned(const char* name) {
  struct Known {
    std::string text;
    PyObject* object;
  };
  // By address first: nearly all names are literals. Never destroyed: at exit the interpreter goes first.
  static auto& known = *new std::unordered_map<const char*, Known>;
  Known& at = known[name];
  if (at.object == nullptr || at.text != name) {
    Py_XDECREF(at.object);
    at = {name, PyUnicode_InternFromString(name)};
  }
  return at.object;
}

nb::object attribute(nb::handle object, const char* name, bool* raised) {
  if (!object.is_valid()) return {};
  return take(PyObject_GetAttr(object.ptr(), interned(name)), raised);
}

nb::object attribute(nb::handle object, PyObject* name) {
  if (!object.is_valid()) return {};
  return take(PyObject_GetAttr(object.ptr(), name), nullptr);
}

nb::object call_method(nb::handle object, const char* name, bool* raised) {
  const nb::object method = attribute(object, name, raised);
  if (!method.is_valid()) return {};
  PyObject* result = PyObject_CallNoArgs(method.ptr());
  if (!result) {  // whatever a call raises, an AttributeError from inside it included, is a failed read
    clear_error();
    if (raised) *raised = true;
  }
  return nb::steal(result);
}

nb::handle dict_item(nb::handle dict, const char* key) {
  if (!dict.is_valid() || !PyDict_Check(dict.ptr())) return {};
  PyObject* found = PyDict_GetItemWithError(dict.ptr(), interned(key));
  if (found == nullptr && PyErr_Occurred()) clear_error();
  return found;
}

nb::handle argument(nb::handle args, nb::handle kwargs, std::size_t i, const char* name) {
  if (args.is_valid() && static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr())) > i) {
    return PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i));
  }
  return dict_item(kwargs, name);
}

bool is_valid(nb::handle object) { return object.is_valid() && !object.is_none(); }

std::optional<std::string_view> str_view(nb::handle object) {
  if (!object.is_valid() || !PyUnicode_Check(object.ptr())) return std::nullopt;
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (!data) {  // lone surrogates have no UTF-8 form
    clear_error();
    return std::nullopt;
  }
  return std::string_view(data, static_cast<std::size_t>(size));
}

std::optional<std::string> text(nb::handle object) {
  if (!object.is_valid()) return std::nullopt;
  if (const auto view = str_view(object)) return std::string(*view);
  const nb::object s = nb::steal(PyObject_Str(object.ptr()));
  if (!s.is_valid()) {
    clear_error();
    return std::nullopt;
  }
  if (const auto view = str_view(s)) return base::without_addresses(*view);
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(s.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) {
    clear_error();
    return std::nullopt;
  }
  return std::string(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
}

std::optional<std::string> repr(nb::handle object, std::size_t limit) {
  if (!object.is_valid()) return std::nullopt;
  const nb::object r = nb::steal(PyObject_Repr(object.ptr()));
  if (!r.is_valid()) {
    clear_error();
    return std::nullopt;
  }
  const auto view = str_view(r);
  if (!view) return std::nullopt;
  const std::string clean = base::without_addresses(*view);
  return std::string(base::cut(clean, limit));
}

std::string_view python_type_name(nb::handle object) {
  if (!object.is_valid()) return "";
  const std::string_view full = Py_TYPE(object.ptr())->tp_name;  // static types carry their module: "torch._C.Node"
  const std::size_t dot = full.rfind('.');
  return dot == std::string_view::npos ? full : full.substr(dot + 1);
}

bool is_populated(nb::handle object) {
  if (!is_valid(object)) return false;
  PyObject* p = object.ptr();
  if (PyUnicode_Check(p)) return PyUnicode_GET_LENGTH(p) != 0;
  if (PyDict_Check(p)) return PyDict_GET_SIZE(p) != 0;
  if (PyList_Check(p)) return PyList_GET_SIZE(p) != 0;
  if (PyTuple_Check(p)) return PyTuple_GET_SIZE(p) != 0;
  // OrderedSet and its like are sets to a reader, though no built-in set.
  if (PyAnySet_Check(p) || python_type_name(object) == "OrderedSet") {
    const Py_ssize_t n = PyObject_Size(p);
    if (n < 0) clear_error();
    return n != 0;
  }
  return true;
}

std::int64_t integer(nb::handle object, std::int64_t otherwise) {
  if (!is_valid(object)) return otherwise;
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) {
    clear_error();
    return otherwise;
  }
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  return overflow != 0 ? otherwise : v;
}

base::Json plain_json(nb::handle object, int depth_limit) { return json_of(object, 0, depth_limit); }

}  // namespace kerntrail::probe
