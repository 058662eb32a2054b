// The forms in which strings enter a capture, so that what a file gives back is byte for byte what was put in:
// well-formed UTF-8, and JSON without white space that every reader of the file accepts.
// Must not know: what the strings say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kerntrail::model {

// Ill-formed UTF-8 becomes U+FFFD, one for each byte that starts no code point.
std::string repaired_utf8(std::string_view text);

// White space outside strings taken out; the rest byte for byte (numbers and escapes keep their spelling).
// The input must be well-formed JSON.
std::string without_white_space(std::string_view json);

inline constexpr std::size_t kMaxJsonDepth = 48;  // a record may be 64 deep; this leaves room for what surrounds it
std::size_t depth_of(std::string_view json);  // levels of lists and objects; 0 for a plain value

// JSON as a capture holds it: without white space. What is not JSON, has a duplicate key, a number beyond 64 bits or
// more than 48 levels is kept as a JSON string of its text: nothing is lost and the record stays readable.
std::string normal_json(std::string_view json);

// At most `limit` bytes, cut between code points; the rest is replaced by "... (N bytes cut)".
std::string shortened(std::string_view text, std::size_t limit);

}  // namespace kerntrail::model
