// Text from a capture made safe for each output: terminals, Markdown tables, Mermaid labels, DOT, CSV.
// Must not know: what is being said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kerntrail::render {

// Control and direction-changing characters become U+FFFD, line breaks and tabs a space: one line, no escape
// sequences, nothing that reorders what is around it.
std::string visible(std::string_view text);

// A Markdown code span that is safe in a table cell; an em dash for an empty text.
std::string md_code(std::string_view text);
// Code spans joined by ", "; an em dash for none.
std::string md_codes(const std::vector<std::string>& texts);
// Plain text with Markdown's and HTML's own characters escaped.
std::string md_text(std::string_view text);
// "| a | b |\n"; cells are Markdown already.
std::string md_row(const std::vector<std::string>& cells);
// Header row and the rule below it.
std::string md_header(const std::vector<std::string>& cells);

// Inside the quotes of a Mermaid label: entity codes, no HTML, at most 48 characters.
std::string mermaid_label(std::string_view text);
// Inside the quotes of a DOT string.
std::string dot_string(std::string_view text);
// One field of RFC 4180, quoted where it must be. A leading character that spreadsheets take for a formula gets a
// quote mark before it.
std::string csv_field(std::string_view text);

}  // namespace kerntrail::render
