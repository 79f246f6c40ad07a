#include "warm_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace bench {

WarmMemory::WarmMemory(std::size_t nbytes) : data_(nullptr), nbytes_(nbytes) {
  void* memory = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(memory);
  std::memset(data_, 1, nbytes);
}

WarmMemory::~WarmMemory() { munmap(data_, nbytes_); }

}  // namespace bench
