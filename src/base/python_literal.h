// Python expressions that hold data (literals, containers, calls of constructors) as JSON values: what generated code
// embeds. Nothing is evaluated.
// Must not know: any particular format.
#pragma once

#include <string_view>

#include "base/json.h"
#include "kerntrail/expected.h"

namespace kerntrail::base {

// The key under which a call holds the name of what it calls.
inline constexpr std::string_view kCallee = "()";

// The whole text must be one expression. Strings (prefixes, triple quotes, escapes, concatenation), numbers, None,
// True and False, lists, tuples and sets (arrays), dicts (keys that are no string by their text), and calls: an object
// with kCallee, then the arguments by name, those without a name by place ("0", "1", ...). A name is its text. Any
// other expression (an operator, a subscript, a comprehension) is its source text. Integers outside int64 are their
// digits as text. kSyntax with line and column; limits: depth 200.
Expected<Json> parse_python_literal(std::string_view text, std::string_view path = {});

}  // namespace kerntrail::base
