#pragma once
/// What stands behind a Loader: the engine, or the engine and a way to a device. The calls are the Loader's.

#include <cstdint>
#include <optional>

#include "infeed/loader/loader.h"

namespace infeed {

class Loader::Source {
 public:
  virtual ~Source() = default;
  virtual std::optional<Batch> next() = 0;
  virtual void reset() = 0;
  virtual void set_epoch(std::uint64_t epoch) = 0;
  [[nodiscard]] virtual std::uint64_t epoch() const = 0;
  [[nodiscard]] virtual std::optional<std::int64_t> size() const = 0;
  [[nodiscard]] virtual State state_dict() const = 0;
  virtual void load_state_dict(const State& state) = 0;
  virtual void set_num_workers(int num_workers) = 0;
  [[nodiscard]] virtual int num_workers() const = 0;
  virtual void keep_memory_warm() = 0;
  [[nodiscard]] virtual LoaderStats stats() const = 0;
  virtual void reset_stats() = 0;
  /// True once a batch of the running epoch was handed out (since it began or was loaded).
  [[nodiscard]] virtual bool started() const = 0;
  /// Null where batches stay on the host.
  [[nodiscard]] virtual Stager* stager() noexcept { return nullptr; }

  /// As the options say. One of dataset and stream is given. Throws ConfigError, MemoryError, DeviceError.
  [[nodiscard]] static std::unique_ptr<Source> make(const Dataset* dataset, const Stream* stream,
                                                    LoaderOptions options);
};

}  // namespace infeed
