// Where in a JSON text something stands: for messages about documents that people write by hand.
// Must not know: any particular format.
#pragma once

#include <cstdint>
#include <string_view>

namespace kerntrail::base {

struct TextPlace {
  std::uint64_t line = 0, column = 0;  // 1-based, columns in bytes; 0: not found
};

// `place` as messages spell it: "intents[2].kind". A member is found at its key, an item at its first byte; what is not
// there gives the whole document's place.
TextPlace find_json(std::string_view text, std::string_view place);

// Where a text that is no JSON stops being it, or has a key for the second time; not found where it is JSON.
TextPlace find_json_end(std::string_view text);

}  // namespace kerntrail::base
