#include "spyre/device_memory.h"

#include <cstring>

#include "spyre/checked.h"
#include "spyre/executor.h"

namespace kerntrail::spyre {

std::size_t DeviceMemory::Hash::operator()(const Key& key) const {
  return static_cast<std::size_t>(key.page) * 0x9E3779B97F4A7C15U ^ static_cast<std::size_t>(key.space + 1);
}

const DeviceMemory::Page* DeviceMemory::find(const Key& key) const {
  if (last_page_ != nullptr && key == last_) return last_page_;
  const auto found = pages_.find(key);
  if (found == pages_.end()) return nullptr;
  last_ = key;
  last_page_ = found->second.get();
  return last_page_;
}

// A number never straddles two pages: `address` is a multiple of its size wherever a file is read, and cut down to one
// where it is not.
float DeviceMemory::read(std::int64_t space, std::int64_t address, NumberFormat format) const {
  const Page* page = find({space, floor_divide(address, kPageBytes)});
  if (page == nullptr) return 0;
  const auto at = static_cast<std::size_t>(floor_modulo(address, kPageBytes));
  if (format == NumberFormat::kHalf) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, page->data() + (at & ~std::size_t{1}), sizeof bits);
    return half_to_float(bits);
  }
  float value = 0;
  std::memcpy(&value, page->data() + (at & ~std::size_t{3}), sizeof value);
  return value;
}

void DeviceMemory::write(std::int64_t space, std::int64_t address, NumberFormat format, float value) {
  const Key key{space, floor_divide(address, kPageBytes)};
  if (find(key) == nullptr) {
    if (pages_.size() == kMaxPages) {
      overflowed_ = true;
      return;
    }
    last_page_ = pages_.emplace(key, std::make_unique<Page>()).first->second.get();
    last_page_->fill(std::byte{0});
    last_ = key;
  }
  const auto at = static_cast<std::size_t>(floor_modulo(address, kPageBytes));
  if (format == NumberFormat::kHalf) {
    const std::uint16_t bits = float_to_half(value);
    std::memcpy(last_page_->data() + (at & ~std::size_t{1}), &bits, sizeof bits);
  } else {
    std::memcpy(last_page_->data() + (at & ~std::size_t{3}), &value, sizeof value);
  }
}

}  // namespace kerntrail::spyre
