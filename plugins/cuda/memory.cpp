#include <cstdio>

#include "calls.h"
#include "context.h"

namespace infeed::cuda {

int memory_info(void* device, std::uint64_t* total_bytes, std::uint64_t* free_bytes, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  std::size_t total = 0;
  std::size_t free = 0;
  const int code = check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", {error, size});
  *total_bytes = total;
  *free_bytes = free;
  return code;
}

int allocate(void* device, std::uint64_t bytes, void** ptr, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  const int code = check(cudaMalloc(ptr, bytes), "cudaMalloc", {error, size});
  std::size_t total = 0;
  std::size_t free = 0;
  if (code == INFEED_ERROR_MEMORY && cudaMemGetInfo(&free, &total) == cudaSuccess)
    std::snprintf(error, size, "cudaMalloc: out of memory: %llu bytes asked, %zu of %zu free.",
                  static_cast<unsigned long long>(bytes), free, total);
  return code;
}

int release(void* device, void* ptr, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaFree(ptr), "cudaFree", {error, size});
}

// Portable: page-locked for every device of the process.
int register_host(void* device, void* ptr, std::uint64_t bytes, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaHostRegister(ptr, bytes, cudaHostRegisterPortable), "cudaHostRegister", {error, size});
}

int unregister_host(void* device, void* ptr, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaHostUnregister(ptr), "cudaHostUnregister", {error, size});
}

}  // namespace infeed::cuda
