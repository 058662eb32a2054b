// The memory that a bundle's files address: HBM by byte, and a scratchpad a core. Pages come to be when they are
// written.
// Must not know: files, OpSpecs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace kerntrail::spyre {

enum class NumberFormat : std::uint8_t { kHalf, kSingle };

class DeviceMemory {
 public:
  static constexpr std::int64_t kHbm = -1;  // else the number of a core: its scratchpad

  // 0 where nothing was written. A 16-bit number is held as IEEE binary16, as the host executor holds it.
  float read(std::int64_t space, std::int64_t address, NumberFormat format) const;
  void write(std::int64_t space, std::int64_t address, NumberFormat format, float value);
  // More was written than is held (4 GiB); what came after is lost.
  bool overflowed() const { return overflowed_; }

 private:
  static constexpr std::int64_t kPageBytes = 1 << 16;
  static constexpr std::size_t kMaxPages = 1 << 16;
  using Page = std::array<std::byte, kPageBytes>;
  struct Key {
    std::int64_t space = 0, page = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  const Page* find(const Key& key) const;

  std::unordered_map<Key, std::unique_ptr<Page>, Hash> pages_;
  mutable Key last_{};
  mutable Page* last_page_ = nullptr;
  bool overflowed_ = false;
};

}  // namespace kerntrail::spyre
