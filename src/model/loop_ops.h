// What operations of loop bodies do, by the names of their handlers; the words that a witness uses.
// Must not know: who asked for an operation.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kerntrail::model {

// compute: a value is calculated. move: none is, the same value goes on under a name or into another place. index:
// where something lies. compiler_made: an operation that no lowering asked for.
enum class Does : std::uint8_t { kCompute, kMove, kLoad, kStore, kConstant, kIndex, kControl, kCompilerMade };

std::string_view does_name(Does does);
std::optional<Does> does_from_name(std::string_view name);
// Operations that are not in the table calculate.
Does does_of_op(std::string_view op);

}  // namespace kerntrail::model
