// Reading Python objects without ever raising: attributes, texts, JSON forms. Every function clears the error it meets.
// Must not know: torch, the capture.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace kerntrail::probe {

namespace nb = nanobind;

// getattr, or an invalid object where there is none or the read raised. `raised` tells a failing property from a
// missing attribute (AttributeError).
nb::object attribute(nb::handle object, const char* name, bool* raised = nullptr);
nb::object attribute(nb::handle object, PyObject* name);  // the same for a str that the caller keeps
nb::object call_method(nb::handle object, const char* name, bool* raised = nullptr);
// The member of a dict (not a copy), or an invalid handle.
nb::handle dict_item(nb::handle dict, const char* key);
// Positional argument i, else keyword `name`, else an invalid handle.
nb::handle argument(nb::handle args, nb::handle kwargs, std::size_t i, const char* name);

// Clears the current error. Ctrl-C that arrived inside an observer is the program's: it is raised again there.
void clear_error();

bool is_valid(nb::handle object);  // valid and not None
// str(object) in UTF-8, object addresses taken out; nullopt when str() raised.
std::optional<std::string> text(nb::handle object);
// Same for a str object without copying; only for exact str.
std::optional<std::string_view> str_view(nb::handle object);
// repr(object) without addresses, at most `limit` code points.
std::optional<std::string> repr(nb::handle object, std::size_t limit);
std::string_view python_type_name(nb::handle object);  // type(object).__name__
// None and empty list, tuple, set, dict, str hold nothing; 0 is content.
bool is_populated(nb::handle object);
std::int64_t integer(nb::handle object, std::int64_t otherwise);

// Plain data (None, bool, int, float, str, list, tuple, dict, set; others by text()) as JSON. Integers beyond 2^53
// become decimal strings, floats that JSON can't hold their repr, built-in sets are sorted. Deeper values become "...".
base::Json plain_json(nb::handle object, int depth_limit = 16);

}  // namespace kerntrail::probe
