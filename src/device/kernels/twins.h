#pragma once
/// The twins as a table, for devices whose memory is the host's.

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/kernels/all.h"
#include "device/kernels/convolution.h"
#include "device/kernels/host.h"
#include "device/kernels/matmul.h"
#include "device/kernels/table.h"

namespace infeed::device {

/// One kernel to be queued.
struct Twin {
  std::function<void()> run;
  std::vector<const void*> reads, writes;  ///< where each tensor begins
};

/// Writes `text` where the caller of a table's function looks for it, cut to fit; returns `code`.
inline int fail(const infeed_queue& queue, int code, std::string_view text) noexcept {
  if (queue.error_bytes == 0) return code;
  const std::size_t length = std::min<std::size_t>(text.size(), queue.error_bytes - 1);
  std::memcpy(queue.error, text.data(), length);
  queue.error[length] = '\0';
  return code;
}

/// Addresses of arguments as the host knows them, and what a twin reads and writes.
template <class Queue>
class Arguments {
 public:
  explicit Arguments(Twin& twin) : twin_(twin) {}

  template <class T>
  T operator()(T value) {
    return value;
  }
  template <class T>
  T* operator()(T* there) {
    void* const at = const_cast<void*>(seen(there, !std::is_const_v<T>));
    return static_cast<T*>(at);
  }
  infeed_loop operator()(infeed_loop loop) {
    for (int k = 0; k < 4; ++k) loop.operand[k].data = const_cast<void*>(seen(loop.operand[k].data, k == 0));
    return loop;
  }

 private:
  const void* seen(const void* there, bool is_written) {
    if (there == nullptr) return nullptr;
    const void* here = Queue::on_host(there);
    (is_written ? twin_.writes : twin_.reads).push_back(here);
    return here;
  }
  Twin& twin_;
};

/// Entries that give a Twin to Queue::launch(queue, twin), which throws; Queue::on_host(address) finds its memory.
template <class Queue>
struct Twins {
  template <class Where, auto kernel>
  struct Entry;
  template <class Where, class... Args, void (*kernel)(const Where&, Args...)>
  struct Entry<Where, kernel> {
    static int call(const infeed_queue* queue, Args... args) {
      try {
        Twin twin;
        Arguments<Queue> here(twin);
        twin.run = [given = std::tuple<Args...>{here(args)...}] {
          std::apply([](const Args&... each) { kernel(Where{}, each...); }, given);
        };
        Queue::launch(*queue, std::move(twin));
        return INFEED_OK;
      } catch (const std::bad_alloc&) {
        return fail(*queue, INFEED_ERROR_MEMORY, "no memory to queue a kernel");
      } catch (const std::exception& error) {
        return fail(*queue, INFEED_ERROR_DEVICE, error.what());
      }
    }
  };
  static constexpr infeed_kernel_api kTable = table_of<Host, Entry>();
};

}  // namespace infeed::device
