#pragma once
/// What kernels by CUDA's libraries share.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace infeed::device {

/// Sizes that a library takes as int. `what` begins the text of what is thrown.
inline void check_sizes(const char* what, std::initializer_list<std::int64_t> sizes) {
  if (std::max(sizes) > std::numeric_limits<int>::max())
    throw std::runtime_error(std::string(what) + ": the library counts rows and columns in 31 bits");
}

/// A library's handles, one a device; of one thread at a time, and milliseconds to make: hold it thread_local.
template <class Handle, auto destroy>
class LibraryHandles {
 public:
  /// That of the current device; create() makes the first.
  template <class Create>
  Handle get(const char* what, const Create& create) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) throw std::runtime_error(std::string(what) + ": no device is current");
    Owned& handle = handles_[device];
    if (!handle) handle.reset(create());
    return handle.get();
  }

 private:
  struct Closer {
    void operator()(Handle handle) const { destroy(handle); }
  };
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Closer>;
  std::map<int, Owned> handles_;
};

}  // namespace infeed::device
