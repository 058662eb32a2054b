#include "read/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace kerntrail::read {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;
// zstd frames may ask for a window of this many bits at most (128 MiB): what decoding may cost in memory.
constexpr int kMaxWindowLog = 27;

class DescriptorSource final : public ByteSource {
 public:
  DescriptorSource(int descriptor, bool owned, std::string path)
      : descriptor_(descriptor), owned_(owned), path_(std::move(path)) {}
  ~DescriptorSource() override {
    if (owned_) ::close(descriptor_);
  }
  Expected<std::size_t> read(char* into, std::size_t size) override {
    for (;;) {
      const ssize_t n = ::read(descriptor_, into, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return fail(ErrorCode::kIo, fmt::format("can't be read: {}", std::strerror(errno)), path_);
    }
  }

 private:
  int descriptor_;
  bool owned_;
  std::string path_;
};

class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}
  Expected<std::size_t> read(char* into, std::size_t size) override {
    const std::size_t n = std::min(size, text_.size());
    if (n != 0) std::memcpy(into, text_.data(), n);
    text_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view text_;
};

// The first bytes of a source, looked at and given back.
class Prefixed final : public ByteSource {
 public:
  Prefixed(std::string prefix, std::unique_ptr<ByteSource> rest) : prefix_(std::move(prefix)), rest_(std::move(rest)) {}
  Expected<std::size_t> read(char* into, std::size_t size) override {
    if (used_ == prefix_.size()) return rest_->read(into, size);
    const std::size_t n = std::min(size, prefix_.size() - used_);
    std::memcpy(into, prefix_.data() + used_, n);
    used_ += n;
    return n;
  }

 private:
  std::string prefix_;
  std::size_t used_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

// What both decoders share: a block of compressed input and where it stands in the file.
class Decoder : public ByteSource {
 public:
  Decoder(std::unique_ptr<ByteSource> from, std::string name)
      : from_(std::move(from)), name_(std::move(name)), block_(kBlock) {}
  std::string torn_reason() const override { return torn_; }

 protected:
  // False at the end of the input.
  Expected<bool> refill() {
    if (used_ < filled_) return true;
    offset_ += filled_;
    used_ = 0;
    KERNTRAIL_TRY(filled_, from_->read(block_.data(), block_.size()));
    return filled_ != 0;
  }
  const char* next() const { return block_.data() + used_; }
  std::size_t available() const { return filled_ - used_; }
  void consume(std::size_t n) { used_ += n; }
  std::uint64_t position() const { return offset_ + used_; }
  void stops_inside(std::string_view what) {
    torn_ = fmt::format("the {} that is open at byte {} is not finished", what, position());
  }
  tl::unexpected<Error> damaged(std::string_view format, std::string_view reason) const {
    return fail(ErrorCode::kSyntax,
                fmt::format("the {} stream is damaged near byte {}: {}", format, position(), reason), name_);
  }
  const std::string& name() const { return name_; }

 private:
  std::unique_ptr<ByteSource> from_;
  std::string name_;
  std::vector<char> block_;
  std::size_t filled_ = 0, used_ = 0;
  std::uint64_t offset_ = 0;
  std::string torn_;
};

class ZstdSource final : public Decoder {
 public:
  ZstdSource(std::unique_ptr<ByteSource> from, std::string name)
      : Decoder(std::move(from), std::move(name)), context_(ZSTD_createDCtx()) {
    if (context_) ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ~ZstdSource() override { ZSTD_freeDCtx(context_); }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  Expected<std::size_t> read(char* into, std::size_t size) override {
    if (!context_) return fail(ErrorCode::kTooLarge, "no memory for the zstd decoder", name());
    for (;;) {
      KERNTRAIL_TRY(const bool more, refill());
      ZSTD_inBuffer in{next(), available(), 0};
      ZSTD_outBuffer out{into, size, 0};
      const std::size_t hint = ZSTD_decompressStream(context_, &out, &in);
      consume(in.pos);
      if (ZSTD_isError(hint)) {
        if (!more) {
          stops_inside("zstd frame");
          return std::size_t{0};
        }
        return damaged("zstd", ZSTD_getErrorName(hint));
      }
      // After a frame the next call asks for the head of another one: no frame is open until a byte of it is seen.
      if (in.pos != 0 || out.pos != 0) open_ = hint != 0;
      if (out.pos != 0) return out.pos;
      if (!more) {
        if (open_) stops_inside("zstd frame");
        return std::size_t{0};
      }
    }
  }

 private:
  ZSTD_DCtx* context_;
  bool open_ = false;
};

class GzipSource final : public Decoder {
 public:
  GzipSource(std::unique_ptr<ByteSource> from, std::string name) : Decoder(std::move(from), std::move(name)) {
    ready_ = inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK;
  }
  ~GzipSource() override {
    if (ready_) inflateEnd(&stream_);
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  Expected<std::size_t> read(char* into, std::size_t size) override {
    if (!ready_) return fail(ErrorCode::kTooLarge, "no memory for the gzip decoder", name());
    const auto room = static_cast<uInt>(std::min<std::size_t>(size, kBlock * 16));
    for (;;) {
      KERNTRAIL_TRY(const bool more, refill());
      if (!more && !open_) return std::size_t{0};
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next()));
      stream_.avail_in = static_cast<uInt>(available());
      stream_.next_out = reinterpret_cast<Bytef*>(into);
      stream_.avail_out = room;
      open_ = true;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      consume(available() - stream_.avail_in);
      if (result == Z_STREAM_END) {
        open_ = false;
        if (inflateReset(&stream_) != Z_OK) return damaged("gzip", "the decoder can't be reset");
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return damaged("gzip", stream_.msg ? stream_.msg : "data error");
      }
      if (stream_.avail_out != room) return std::size_t{room - stream_.avail_out};
      if (!more) {
        stops_inside("gzip member");
        return std::size_t{0};
      }
    }
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
  bool open_ = false;
};

bool is_gzip(std::string_view head) { return head.starts_with("\x1F\x8B"); }

bool is_zstd(std::string_view head) {
  if (head.starts_with("\x28\xB5\x2F\xFD")) return true;
  return head.size() >= 4 && (static_cast<unsigned char>(head[0]) & 0xF0U) == 0x50U &&
         head.substr(1, 3) == "\x2A\x4D\x18";  // skippable
}

Expected<std::unique_ptr<ByteSource>> decoded(std::unique_ptr<ByteSource> from, const std::string& name) {
  std::string head(4, '\0');
  std::size_t size = 0;
  while (size < head.size()) {
    KERNTRAIL_TRY(const std::size_t n, from->read(head.data() + size, head.size() - size));
    if (n == 0) break;
    size += n;
  }
  head.resize(size);
  const bool gzip = is_gzip(head), zstd = is_zstd(head);
  std::unique_ptr<ByteSource> whole = std::make_unique<Prefixed>(std::move(head), std::move(from));
  if (gzip) return std::make_unique<GzipSource>(std::move(whole), name);
  if (zstd) return std::make_unique<ZstdSource>(std::move(whole), name);
  return whole;
}

}  // namespace

Expected<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path) {
  if (path == "-") return decoded(std::make_unique<DescriptorSource>(STDIN_FILENO, false, path), path);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(ErrorCode::kIo, fmt::format("can't be opened: {}", std::strerror(errno)), path);
  return decoded(std::make_unique<DescriptorSource>(descriptor, true, path), path);
}

std::unique_ptr<ByteSource> ByteSource::of_text(std::string_view text, const std::string& name) {
  auto source = decoded(std::make_unique<TextSource>(text), name);
  // Looking at the head of a text in memory can't fail.
  return source ? std::move(*source) : std::make_unique<TextSource>(std::string_view());
}

}  // namespace kerntrail::read
