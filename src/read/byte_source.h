// Bytes of a file, of standard input or of memory, in blocks; gzip and zstd are recognised by content and undone on
// the way. Several members or frames in a row read as one stream.
// Must not know: lines, records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kerntrail/expected.h"

namespace kerntrail::read {

class ByteSource {
 public:
  // `path` "-" is standard input. kIo where it can't be opened.
  static Expected<std::unique_ptr<ByteSource>> open(const std::string& path);
  // The text must outlive the source; `name` stands in messages.
  static std::unique_ptr<ByteSource> of_text(std::string_view text, const std::string& name);
  virtual ~ByteSource() = default;

  // Up to `size` bytes (size > 0); 0 = the end. kSyntax for a damaged compressed stream, kIo for the system's errors.
  virtual Expected<std::size_t> read(char* into, std::size_t size) = 0;
  // After the end: why the compressed stream is not whole (it stops inside a frame or member); empty where it is.
  virtual std::string torn_reason() const { return {}; }
};

}  // namespace kerntrail::read
