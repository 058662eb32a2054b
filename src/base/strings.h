// Text helpers shared by all layers.
// Must not know: any format.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kerntrail::base {

std::vector<std::string_view> split_lines(std::string_view text);  // without line ends
std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// At most `n` code points, never cutting one in half.
std::string_view cut(std::string_view text, std::size_t n);
std::string replace_all(std::string text, std::string_view from, std::string_view to);
// " at 0x7f…" as Python prints object addresses is taken out: the text must not differ from run to run.
std::string without_addresses(std::string_view text);
// "1 kernel", "2 kernels"; `plural` defaults to noun + "s".
std::string counted(std::size_t n, std::string_view noun, std::string_view plural = {});
// Last path component; the whole text where there is no slash.
std::string_view basename(std::string_view path);
bool is_valid_utf8(std::string_view text);
// The candidate nearest to `word` by edit distance, or what it is the beginning of, where it is near enough to be
// meant; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// `pattern` with "*" for any rest of any length, anywhere in it.
bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace kerntrail::base
