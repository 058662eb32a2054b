// A byte source as lines, without copying them, each followed by readable padding for the JSON parser.
// Must not know: records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/byte_source.h"

namespace kerntrail::read {

inline constexpr std::size_t kMaxLine = std::size_t{64} << 20;
inline constexpr std::size_t kLinePadding = 64;

struct LineView {
  std::string_view text;  // without its line end; valid until the next call
  bool finished = true;   // a line end follows; false only for the last line of a torn file
};

class LineSource {
 public:
  // `max_bytes`: what all lines together may hold, decompressed.
  LineSource(std::unique_ptr<ByteSource> from, std::string name, std::uint64_t max_bytes);

  // The next line, or nothing at the end. kTooLarge for a line over kMaxLine or a file over the limit.
  Expected<std::optional<LineView>> next();
  std::uint64_t number() const { return number_; }  // 1-based, of the last line given out
  std::uint64_t bytes() const { return bytes_; }    // decompressed, so far
  std::string torn_reason() const { return from_->torn_reason(); }

 private:
  Expected<bool> fill();

  std::unique_ptr<ByteSource> from_;
  std::string name_;
  std::uint64_t max_bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what is read and not yet given out
  bool at_end_ = false;
  std::uint64_t number_ = 0, bytes_ = 0;
};

}  // namespace kerntrail::read
