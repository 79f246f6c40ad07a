#pragma once
/// An extent for tests: zeroed, aligned memory of exactly the size asked, so that ASan sees a step beyond it.

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace infeed::testing {

class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size)
      : size_(size), bytes_(static_cast<std::byte*>(::operator new[](size, std::align_val_t{128}))) {
    std::memset(bytes_.get(), 0, size);
  }
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept { ::operator delete[](p, std::align_val_t{128}); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte[], Free> bytes_;
};

}  // namespace infeed::testing
