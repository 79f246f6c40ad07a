#include "memory/shared_mapping.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "infeed/base/error.h"

namespace infeed {

SharedMapping::SharedMapping(const Memfd& file, std::size_t bytes, bool writable) : size_(bytes) {
  void* start = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file.fd(), 0);
  if (start == MAP_FAILED)
    throw MemoryError(fmt::format("{} bytes of shared memory cannot be mapped: {}.", bytes, std::strerror(errno)));
  static_cast<void>(madvise(start, bytes, MADV_DONTDUMP));
  data_ = static_cast<std::byte*>(start);
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace infeed
