#pragma once
/// Private memory whose pages are there: what a loop without a loader writes into.

#include <cstddef>
#include <cstdint>

namespace bench {

/// Anonymous pages, touched. The kernel's default page size: as far as this memory gets huge pages, so does a
/// trainer's.
class WarmMemory {
 public:
  explicit WarmMemory(std::size_t nbytes);
  ~WarmMemory();
  WarmMemory(const WarmMemory&) = delete;
  WarmMemory& operator=(const WarmMemory&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 private:
  std::byte* data_;
  std::size_t nbytes_;
};

/// Sum of the first byte of every 4 KiB of a row: what a consumer does at the least, and what tells that the row is
/// right.
[[nodiscard]] inline std::uint64_t touch(const std::byte* row, std::size_t nbytes) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < nbytes; at += 4096) sum += static_cast<std::uint64_t>(row[at]);
  return sum;
}

}  // namespace bench
