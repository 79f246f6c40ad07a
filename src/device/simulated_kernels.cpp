#include "device/simulated_kernels.h"

#include "device/kernels/twins.h"
#include "device/simulated_core.h"

namespace infeed {
namespace {

struct SimulatedQueue {
  static void* on_host(const void* there) noexcept { return SimulatedCore::host_address(there); }
  static void launch(const infeed_queue& queue, device::Twin twin) {
    const auto first_bytes = [](const std::vector<const void*>& tensors) {
      std::vector<ByteRange> ranges;
      for (const void* tensor : tensors) ranges.emplace_back(static_cast<const std::byte*>(tensor), 1);
      return ranges;
    };
    static_cast<SimulatedCore*>(queue.device)
        ->compute(*static_cast<SimQueue*>(queue.stream),
                  {.run = std::move(twin.run), .reads = first_bytes(twin.reads), .writes = first_bytes(twin.writes)});
  }
};

}  // namespace

const infeed_kernel_api& simulated_kernels() noexcept { return device::Twins<SimulatedQueue>::kTable; }

}  // namespace infeed
