#pragma once
/// A model of an accelerator in host memory: bandwidth, latency, memory size and faults can be set.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "infeed/device/device.h"

namespace infeed {

class SimulatedCore;

/// Failures to inject. Counts start at 1; 0 injects nothing.
struct SimulatedFaults {
  std::uint64_t fail_copy = 0;          ///< the n-th copy moves nothing and fails
  std::uint64_t fail_allocation = 0;    ///< the n-th allocate() throws MemoryError
  std::uint64_t fail_registration = 0;  ///< the n-th register_host() throws DeviceError
  /// A failed copy loses the device, as an illegal access does on real hardware: what is queued is dropped, and every
  /// further call throws. Default false: only the stream fails.
  bool sticky = false;
};

struct SimulatedOptions {
  std::int32_t index = 0;  ///< in the device's id
  /// Each way between host and device, bytes per second. Default 12 GB/s, a PCIe 3.0 link. 0: as fast as memcpy.
  double bandwidth_bytes_per_s = 12e9;
  /// Within the device. Default 0: as fast as memcpy.
  double device_bandwidth_bytes_per_s = 0;
  /// Before each copy. Default 10 µs.
  double latency_us = 10;
  /// Device memory. Default 4 GiB. Committed only as it is used.
  std::size_t memory_bytes = std::size_t{4} << 30;
  /// How many times longer a copy takes from or to host memory that is not registered. Default 3.
  double unregistered_factor = 3;
  /// Most host memory that may be registered at a time, bytes. Default 0: no limit.
  std::size_t registered_limit_bytes = 0;
  /// Throw DeviceError where work is queued that conflicts with work of another stream still pending, unless an event
  /// orders the two; and where memory is freed or unregistered while in use. Default false. Costs a look at all
  /// pending work per call.
  bool check_races = false;
  /// Addresses that only the device can follow: code of the host that does faults, as on a GPU's memory (x86-64). Default
  /// false. With it, what SimulatedWork runs cannot touch device memory either.
  bool hidden_memory = false;
  SimulatedFaults faults{};
};

/// Work for the compute engine of a SimulatedDevice.
struct SimulatedWork {
  double duration_us = 0;       ///< at least; longer if run() takes longer
  std::function<void()> run{};  ///< may be empty; may read and write device memory; must not call the device
  std::vector<std::span<const std::byte>> reads{};   ///< for check_races
  std::vector<std::span<const std::byte>> writes{};  ///< for check_races
};

/// Accelerator with one copy engine per direction and one compute engine, each a thread ("infeed:dma0" host to device,
/// "infeed:dma1" device to host, "infeed:comp0"), started at first use.
///
/// Time: a copy takes latency + bytes / bandwidth of wall time on its engine, and moves real bytes meanwhile, half of
/// them at the start and half at the end: a source that is overwritten too early shows in the result. Where memcpy is
/// slower than the bandwidth set, memcpy's time holds. Copies from unregistered memory are longer and block the caller.
/// Death: buffers and registrations wait for the work that uses them; then the destructor drops what is queued (waiters
/// get DeviceError), waits for a function that is running, and joins the threads. Threads, fork, errors: as Device
/// says.
class INFEED_API SimulatedDevice final : public Device {
 public:
  /// Throws ConfigError on values that make no sense.
  explicit SimulatedDevice(const SimulatedOptions& options = {});
  ~SimulatedDevice() override;
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  [[nodiscard]] DeviceId id() const noexcept override;
  [[nodiscard]] std::string name() const override { return "simulated accelerator"; }
  [[nodiscard]] DeviceMemoryInfo memory_info() const override;

  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void free(void* ptr) override;
  void register_host(void* ptr, std::size_t bytes) override;
  void unregister_host(void* ptr) override;
  [[nodiscard]] bool is_registered(const void* ptr, std::size_t bytes) const override;

  [[nodiscard]] std::unique_ptr<DeviceStream> create_stream() override;
  [[nodiscard]] std::unique_ptr<DeviceEvent> create_event() override;
  void record_all(DeviceEvent& event) override;
  void synchronize() override;
  /// On the compute engine; for check_races a kernel uses the first byte of each tensor.
  [[nodiscard]] DeviceKernels kernels() const override;

  /// Queues work for the compute engine: a training step's stand-in. `stream` must be this device's.
  void compute(DeviceStream& stream, SimulatedWork work);
  /// Throws DeviceError if pending work reads or writes the range (for `write`: a read conflicts too). For tests of
  /// code that reuses memory.
  void check_host_access(std::span<const std::byte> range, bool write) const;
  /// Seconds that the engine of `direction` (kDeviceToDevice: compute) was busy so far, in the model's time.
  [[nodiscard]] double busy_seconds(CopyDirection direction) const;

 private:
  std::shared_ptr<SimulatedCore> core_;
};

}  // namespace infeed
