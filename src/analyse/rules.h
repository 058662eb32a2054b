// What each word of the analyses means: reasons, qualities, fates, and the rules for passes over IR. docs/rules.md is
// made of this table.
// Must not know: output formats.
#pragma once

#include <span>
#include <string_view>

namespace kerntrail::analyse {

struct Rule {
  std::string_view axis;     // "reason", "quality", "fate", "observer"
  std::string_view id;       // as in results: "dropped", "collapsed", "a"
  std::string_view meaning;  // one sentence
  std::string_view example;
  std::string_view action;   // what to do about it
};

// By axis, in the order of the enumerators.
std::span<const Rule> rules();
// The sentence of a word; empty for one that the axis does not have.
std::string_view meaning_of(std::string_view axis, std::string_view id);

struct Axis {
  std::string_view id, title, meaning;
};
std::span<const Axis> rule_axes();

}  // namespace kerntrail::analyse
