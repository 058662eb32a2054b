#include "read/line_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kerntrail::read {
namespace {

constexpr std::size_t kFirstBuffer = std::size_t{1} << 18;

}  // namespace

LineSource::LineSource(std::unique_ptr<ByteSource> from, std::string name, std::uint64_t max_bytes)
    : from_(std::move(from)), name_(std::move(name)), max_bytes_(max_bytes), buffer_(kFirstBuffer + kLinePadding) {}

// Reads more behind what is there; false at the end.
Expected<bool> LineSource::fill() {
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ + kLinePadding == buffer_.size()) buffer_.resize(std::min(end_ * 2, kMaxLine + 1) + kLinePadding);
  KERNTRAIL_TRY(const std::size_t n, from_->read(buffer_.data() + end_, buffer_.size() - kLinePadding - end_));
  end_ += n;
  bytes_ += n;
  if (bytes_ > max_bytes_)
    return fail(ErrorCode::kTooLarge, fmt::format("holds more than {} bytes", max_bytes_), name_, number_ + 1);
  return n != 0;
}

Expected<std::optional<LineView>> LineSource::next() {
  std::size_t searched = 0;
  for (;;) {
    const char* start = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    if (const void* found = size == searched ? nullptr : std::memchr(start + searched, '\n', size - searched)) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - start);
      begin_ += length + 1;
      ++number_;
      return LineView{{start, length}, true};
    }
    if (size > kMaxLine)
      return fail(ErrorCode::kTooLarge, fmt::format("a line is longer than {} MiB", kMaxLine >> 20), name_,
                  number_ + 1);
    searched = size;
    if (!at_end_) {
      KERNTRAIL_TRY(const bool more, fill());
      at_end_ = !more;
      continue;
    }
    if (size == 0) return std::nullopt;
    start = buffer_.data() + begin_;
    begin_ = end_;
    ++number_;
    return LineView{{start, size}, false};
  }
}

}  // namespace kerntrail::read
