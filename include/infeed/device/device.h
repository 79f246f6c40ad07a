#pragma once
/// An accelerator as the engine sees it: memory, page-locking, streams, events, asynchronous copies.
/// HostDevice is the CPU, SimulatedDevice a model of an accelerator; open_device() (infeed/device/open.h) also opens those
/// of plugins, as "cuda:0".

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "infeed/base/array_view.h"
#include "infeed/base/export.h"

struct infeed_kernel_api;

namespace infeed {

/// "cpu:0", "cuda:1", "simulated:0"
[[nodiscard]] INFEED_API std::string to_string(DeviceId id);

/// Numbers as in cudaMemcpyKind.
enum class CopyDirection : std::int32_t { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };

struct DeviceMemoryInfo {
  std::size_t total_bytes = 0;
  std::size_t free_bytes = 0;
};

/// A mark in a stream. Before its first record it counts as passed; a further record replaces the mark.
///
/// Threads: any. May be destroyed while its mark is pending; the stream goes on.
/// Errors: where work before the mark failed, query() and synchronize() throw DeviceError, each time they are called.
class INFEED_API DeviceEvent {
 public:
  virtual ~DeviceEvent();

  /// True once all work that stood before the mark is done.
  [[nodiscard]] virtual bool query() const = 0;
  /// Waits for the mark, at most `timeout_ms` (negative: no limit); false if it has not passed by then.
  [[nodiscard]] virtual bool synchronize(std::int64_t timeout_ms) const = 0;
  /// Waits for the mark without limit.
  void synchronize() const { static_cast<void>(synchronize(-1)); }
  /// Milliseconds of device time from the mark of `start` to this one. Both must have passed, else DeviceError.
  [[nodiscard]] virtual double elapsed_ms(const DeviceEvent& start) const = 0;
};

/// A queue of work that the device does in order. Work in different streams runs side by side.
///
/// Threads: any; calls on one stream take effect in the order in which they are made. May be destroyed with work
/// queued: the device finishes it.
/// Errors: work fails while nobody looks. The failure is thrown, as DeviceError, by the next synchronize() of the
/// stream, which clears it, and by every event recorded behind it. A stream that waits on a failed event fails too.
class INFEED_API DeviceStream {
 public:
  virtual ~DeviceStream();

  /// Queues a copy of `bytes`. Both ranges stay in use until the stream has passed the copy: neither write the source
  /// nor touch the destination before. From or to host memory that is not registered the copy is slow and
  /// synchronous: it returns when all work queued before it, and the copy, are done (and throws its failure at once).
  virtual void copy_async(void* dst, const void* src, std::size_t bytes, CopyDirection direction) = 0;
  /// Queues a fill of device memory: each of `bytes` becomes `value`.
  virtual void fill_async(void* dst, std::uint8_t value, std::size_t bytes) = 0;
  /// Puts the mark of `event` behind all work queued so far.
  virtual void record(DeviceEvent& event) = 0;
  /// Later work of this stream starts only when the mark that `event` has now is passed. Does not block the caller.
  virtual void wait(const DeviceEvent& event) = 0;
  /// Queues a host function, run in stream order by a thread of the device (CUDA: cudaLaunchHostFunc; the host device:
  /// by the caller). It must not call the device. What it throws is the stream's failure.
  virtual void launch(std::function<void()> work) = 0;
  /// True if no work is queued or running.
  [[nodiscard]] virtual bool query() const = 0;
  /// Waits for all work queued so far.
  virtual void synchronize() = 0;
  /// The driver's own handle (cudaStream_t), or the one that the device's kernels take; nullptr where there is none.
  [[nodiscard]] virtual void* native_handle() const noexcept;
};

/// What a device computes for the companion (infeed/plugin/kernel_abi.h), and the device as its kernels know it.
struct DeviceKernels {
  const infeed_kernel_api* api = nullptr;  ///< null where it only holds memory
  void* device = nullptr;
};

/// One accelerator, or the CPU.
///
/// Threads: any. Streams and events may outlive the device: their calls then throw DeviceError (the host's go on).
/// Fork: a device belongs to the process that made it. In a forked child its calls throw DeviceError and its destructor
/// does nothing.
class INFEED_API Device {
 public:
  virtual ~Device();

  [[nodiscard]] virtual DeviceId id() const noexcept = 0;
  /// As the vendor names it, for people.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual DeviceMemoryInfo memory_info() const = 0;

  /// Uninitialised device memory, aligned to 256 bytes; nullptr for 0 bytes. Throws MemoryError where memory does not
  /// suffice (a caching allocator may give back what it holds and try again).
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  /// Gives back what allocate() returned, after work that uses it. nullptr is nothing; any other pointer throws
  /// DeviceError.
  virtual void free(void* ptr) = 0;

  /// Page-locks [ptr, ptr + bytes), so that copies need no staging and do not block. Commits the range and costs time
  /// (CUDA: about 0.1 ms/MiB): for memory that lives long, and only for the prefix that is used.
  /// The same range again is counted, and needs as many unregister_host(); a range that overlaps another is a
  /// DeviceError that names both, and one that shares a page with another may be. A copy profits only if one
  /// registration holds all of its host range.
  virtual void register_host(void* ptr, std::size_t bytes) = 0;
  /// Undoes one register_host() of the range that starts at `ptr`, after copies that use it. DeviceError if unknown.
  virtual void unregister_host(void* ptr) = 0;
  /// True if one registration holds all of the range.
  [[nodiscard]] virtual bool is_registered(const void* ptr, std::size_t bytes) const = 0;

  [[nodiscard]] virtual std::unique_ptr<DeviceStream> create_stream() = 0;
  /// The driver's own stream (CUDA: a cudaStream_t; null is the default stream), for work that others queue there.
  /// Borrowed: it must outlive what is returned, which leaves it as it is. Throws DeviceError where there are none.
  [[nodiscard]] virtual std::unique_ptr<DeviceStream> borrow_stream(void* native_handle);
  [[nodiscard]] virtual std::unique_ptr<DeviceEvent> create_event() = 0;
  /// Puts the mark of `event` behind all work queued so far in all streams of this device, whoever made them: a
  /// framework's, and side streams that nobody told of, too.
  virtual void record_all(DeviceEvent& event) = 0;
  /// Waits for all work queued so far in all streams. A stream's failure stays with the stream; throws DeviceError
  /// where the device itself is lost.
  virtual void synchronize() = 0;

  /// Work for streams of this device, which name themselves by native_handle().
  [[nodiscard]] virtual DeviceKernels kernels() const;

  /// Names what this thread does until pop_range(), for the vendor's profiler (CUDA: NVTX). Nothing where there is none.
  virtual void push_range(const char* name) noexcept;
  virtual void pop_range() noexcept;
};

/// Names what this thread does while it lives, for the vendor's profiler.
class DeviceRange {
 public:
  DeviceRange(Device& device, const char* name) noexcept : device_(device) { device_.push_range(name); }
  ~DeviceRange() { device_.pop_range(); }
  DeviceRange(const DeviceRange&) = delete;
  DeviceRange& operator=(const DeviceRange&) = delete;

 private:
  Device& device_;
};

/// Owner of device memory. Moves, does not copy.
class INFEED_API DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Allocates from `device`; throws as Device::allocate.
  DeviceBuffer(std::shared_ptr<Device> device, std::size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer() { reset(); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_; }
  /// Frees the memory now.
  void reset() noexcept;

 private:
  void swap(DeviceBuffer& other) noexcept;
  std::shared_ptr<Device> device_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Owner of one page-locked range; the memory itself belongs to somebody else and must live longer. Moves, does not
/// copy.
class INFEED_API HostRegistration {
 public:
  HostRegistration() = default;
  /// Registers with `device`; throws as Device::register_host.
  HostRegistration(std::shared_ptr<Device> device, void* ptr, std::size_t bytes);
  HostRegistration(HostRegistration&& other) noexcept { swap(other); }
  HostRegistration& operator=(HostRegistration&& other) noexcept;
  ~HostRegistration() { reset(); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_; }
  /// Unregisters now.
  void reset() noexcept;

 private:
  void swap(HostRegistration& other) noexcept;
  std::shared_ptr<Device> device_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace infeed
