// Bytes -> a new file, plain or compressed by its ending (.zst, .gz), in pieces that stay readable on their own: what
// was sealed survives the death of the process.
// Must not know: what the bytes are.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kerntrail/expected.h"

namespace kerntrail::model {

class FileOutput {
 public:
  // Creates `path`; kIo if it exists already (`replace` false) or can't be written.
  static Expected<std::unique_ptr<FileOutput>> open(const std::string& path, bool replace);
  virtual ~FileOutput() = default;
  FileOutput(const FileOutput&) = delete;
  FileOutput& operator=(const FileOutput&) = delete;

  virtual Expected<void> write(std::string_view bytes) = 0;
  // Ends the open frame or member, if any, and hands everything to the system.
  virtual Expected<void> seal() = 0;
  // seal() and close. Nothing may be written afterwards.
  Expected<void> close();
  // Closes the descriptor and writes nothing: for a forked child, which shares the file with its parent.
  void abandon();

 protected:
  explicit FileOutput(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  Expected<void> to_system(std::string_view bytes);
  void release();
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace kerntrail::model
