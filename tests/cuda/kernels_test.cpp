// The host twins of CUDA's kernels, beside the companion's operators. kernels_device.cpp runs the same list on a GPU.
#include <cstring>

#include "cuda/kernels_list.h"
#include "device/kernels/twins.h"

namespace infeed::device {

template <>
struct Place<Host> {
  static bool is_there() { return true; }
  static void* upload(const void* host, std::size_t bytes) { return std::memcpy(new std::byte[bytes], host, bytes); }
  static void download(void* host, const void* there, std::size_t bytes) { std::memcpy(host, there, bytes); }
  static void release(void* there) { delete[] static_cast<std::byte*>(there); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Host, KernelsTest, Host);

}  // namespace infeed::device
