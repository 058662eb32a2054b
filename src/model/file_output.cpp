#include "model/file_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

namespace kerntrail::model {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;
constexpr int kZstdLevel = 3;

std::string system_reason(int number) { return std::strerror(number); }

class PlainOutput final : public FileOutput {
 public:
  PlainOutput(int descriptor, std::string path) : FileOutput(descriptor, std::move(path)) {}
  ~PlainOutput() override { release(); }
  Expected<void> write(std::string_view bytes) override { return to_system(bytes); }
  Expected<void> seal() override { return {}; }
};

// One frame from a write to the next seal.
class ZstdOutput final : public FileOutput {
 public:
  ZstdOutput(int descriptor, std::string path)
      : FileOutput(descriptor, std::move(path)), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize()) {
    if (!context_) return;
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdOutput() override {
    release();
    ZSTD_freeCCtx(context_);
  }
  Expected<void> write(std::string_view bytes) override {
    open_ = open_ || !bytes.empty();
    return feed(bytes, ZSTD_e_continue);
  }
  Expected<void> seal() override {
    if (!open_) return {};
    open_ = false;
    return feed({}, ZSTD_e_end);
  }

 private:
  Expected<void> feed(std::string_view bytes, ZSTD_EndDirective how) {
    if (!context_) return fail(ErrorCode::kIo, "no memory for the zstd compressor");
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context_, &out, &in, how);
      if (ZSTD_isError(left)) return fail(ErrorCode::kIo, fmt::format("zstd: {}", ZSTD_getErrorName(left)));
      KERNTRAIL_CHECK(to_system({out_.data(), out.pos}));
      if (how == ZSTD_e_end ? left == 0 : in.pos == in.size) return {};
    }
  }

  ZSTD_CCtx* context_;
  std::vector<char> out_;
  bool open_ = false;
};

// One member from a write to the next seal.
class GzipOutput final : public FileOutput {
 public:
  GzipOutput(int descriptor, std::string path) : FileOutput(descriptor, std::move(path)) {
    // 16 + 15: a gzip wrapper. zlib writes no time and no name into it, so equal input gives equal bytes.
    ready_ = deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK;
  }
  ~GzipOutput() override {
    release();
    if (ready_) deflateEnd(&stream_);
  }
  Expected<void> write(std::string_view bytes) override {
    open_ = open_ || !bytes.empty();
    while (bytes.size() > kBlock) {
      KERNTRAIL_CHECK(feed(bytes.substr(0, kBlock), Z_NO_FLUSH));
      bytes.remove_prefix(kBlock);
    }
    return feed(bytes, Z_NO_FLUSH);
  }
  Expected<void> seal() override {
    if (!open_) return {};
    open_ = false;
    KERNTRAIL_CHECK(feed({}, Z_FINISH));
    if (deflateReset(&stream_) != Z_OK) return fail(ErrorCode::kIo, "zlib: the compressor can't be reset");
    return {};
  }

 private:
  Expected<void> feed(std::string_view bytes, int how) {
    if (!ready_) return fail(ErrorCode::kIo, "no memory for the gzip compressor");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    for (;;) {
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = deflate(&stream_, how);
      if (result == Z_STREAM_ERROR) return fail(ErrorCode::kIo, "zlib: the compressor's state is damaged");
      KERNTRAIL_CHECK(to_system({reinterpret_cast<const char*>(out_.data()), out_.size() - stream_.avail_out}));
      if (how == Z_FINISH ? result == Z_STREAM_END : stream_.avail_in == 0 && stream_.avail_out != 0) return {};
    }
  }

  z_stream stream_{};
  std::array<Bytef, kBlock> out_{};
  bool ready_ = false;
  bool open_ = false;
};

}  // namespace

Expected<std::unique_ptr<FileOutput>> FileOutput::open(const std::string& path, bool replace) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (replace ? O_TRUNC : O_EXCL);
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0 && errno == EEXIST) return fail(ErrorCode::kIo, "exists already; it is not overwritten", path);
  if (descriptor < 0) return fail(ErrorCode::kIo, fmt::format("can't be created: {}", system_reason(errno)), path);
  if (path.ends_with(".zst")) return std::make_unique<ZstdOutput>(descriptor, path);
  if (path.ends_with(".gz")) return std::make_unique<GzipOutput>(descriptor, path);
  return std::make_unique<PlainOutput>(descriptor, path);
}

Expected<void> FileOutput::to_system(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), INT_MAX));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::kIo, fmt::format("can't be written: {}", system_reason(errno)), path_);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Expected<void> FileOutput::close() {
  if (!is_open()) return {};
  auto sealed = seal();
  const int descriptor = std::exchange(descriptor_, -1);
  // A network file system may report a full disk only here.
  if (::close(descriptor) != 0 && errno != EINTR && sealed) {
    return fail(ErrorCode::kIo, fmt::format("can't be written: {}", system_reason(errno)), path_);
  }
  return sealed;
}

void FileOutput::abandon() { release(); }

void FileOutput::release() {
  if (is_open()) ::close(std::exchange(descriptor_, -1));
}

}  // namespace kerntrail::model
