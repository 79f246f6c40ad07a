#include "device/kernels/table.h"

#include <cstdio>
#include <exception>
#include <new>

#include "../context.h"
#include "../kernels.h"

namespace infeed::cuda {
namespace {

int fail(const infeed_queue& queue, int code, const char* text) noexcept {
  std::snprintf(queue.error, queue.error_bytes, "%s", text);
  return code;
}

template <class Where, auto kernel>
struct Entry;
template <class Where, class... Args, void (*kernel)(const Where&, Args...)>
struct Entry<Where, kernel> {
  static int call(const infeed_queue* queue, Args... args) {
    const Current current(queue->device);
    if (!current.is_set()) return current.lost({queue->error, queue->error_bytes});
    try {
      kernel(Where{queue->stream}, args...);
      return INFEED_OK;
    } catch (const std::bad_alloc& error) {
      return fail(*queue, INFEED_ERROR_MEMORY, error.what());
    } catch (const std::exception& error) {
      return fail(*queue, INFEED_ERROR_DEVICE, error.what());
    }
  }
};

}  // namespace

const infeed_kernel_api* kernels() noexcept {
  static constexpr infeed_kernel_api kTable = device::table_of<device::Stream, Entry>();
  return &kTable;
}

}  // namespace infeed::cuda
