#pragma once
/// Large private tables that are read at random: huge pages spare a TLB miss per access.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace infeed {

/// Asks the kernel for huge pages behind the whole 2 MiB blocks of [data, data + bytes). A hint: where it is refused,
/// or the range is small, nothing changes. Call it before the pages are touched.
inline void advise_huge_pages(void* data, std::size_t bytes) noexcept {
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + kHugePage - 1) & ~(kHugePage - 1);
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) & ~(kHugePage - 1);
  if (begin < end) static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}

}  // namespace infeed
