#pragma once
/// From the loader to a device: batches are copied while the one before is computed on.
///
///   infeed::Loader loader(dataset, {.batch_size = 64, .num_workers = 4});
///   infeed::Stager stager(loader, device, {.compute_stream = stream});
///   while (auto staged = stager.next()) step(staged->at("image"), staged->at("label"));  // queued on `stream`

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infeed/base/array_view.h"
#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/batch/batch.h"
#include "infeed/device/device.h"
#include "infeed/loader/loader.h"

namespace infeed {

struct StagerOptions {
  static constexpr int kMostInFlight = 64;
  /// Batches copied, or being copied, ahead of next(). Default 2. Each costs one batch of device memory, and an extent
  /// of host memory until its copy has passed. 1 to kMostInFlight.
  int in_flight = 2;
  /// Where the batches are used; borrowed, must outlive the stager. Default null: the stager's own compute_stream().
  DeviceStream* compute_stream = nullptr;
  /// StagedBatches that may be held at a time; next() throws MemoryError beyond. Default 0: what the device's memory
  /// allows. Each costs one batch of device memory.
  int max_held = 0;
  /// Where the device is the CPU, batches are handed out as they lie in the loader's memory. Default true. False copies
  /// them, as for any other device.
  bool zero_copy = true;
  /// Page-locks the extents that are copied from. Default true. False: copies are slow, and hold up the staging thread.
  bool register_memory = true;
  /// Extents that are page-locked at a time; the one unused longest gives way. Default 64. More than in_flight.
  int max_registrations = 64;
};

/// A batch on the device.
///
/// Order: its arrays are ready for work that is queued on the compute stream after next(); the host must not read them
/// before an event behind that. Drop it when the work that uses it is queued: the memory is written again only after
/// the compute stream has passed what stands in it at the next() that follows.
/// Memory: held batches keep their device memory, also after the stager's end. Threads: a value; may be dropped on any.
class INFEED_API StagedBatch {
 public:
  explicit StagedBatch(Batch batch) : batch_(std::move(batch)) {}

  /// Samples in the batch.
  [[nodiscard]] std::int64_t size() const noexcept { return batch_.size(); }
  /// Array of that name, with the id of its device; throws IndexError naming the known ones.
  [[nodiscard]] BatchArray at(std::string_view name) const { return batch_.at(name); }
  [[nodiscard]] bool contains(std::string_view name) const noexcept { return batch_.contains(name); }
  [[nodiscard]] const std::vector<NamedArray>& arrays() const noexcept { return batch_.arrays(); }  ///< as Batch's
  /// On the host: dataset index of each sample.
  [[nodiscard]] const std::vector<std::int64_t>& indices() const noexcept { return batch_.indices(); }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return batch_.epoch(); }
  /// Position within the epoch, from 0.
  [[nodiscard]] std::uint64_t number() const noexcept { return batch_.number(); }
  /// Keeps the memory alive: hand a copy to whatever outlives the batch (a Tensor, a DLPack capsule).
  [[nodiscard]] const std::shared_ptr<void>& owner() const noexcept { return batch_.owner(); }
  /// The same as a plain Batch, whose rules for memory are these here.
  [[nodiscard]] Batch take() && { return std::move(batch_); }
  /// Gives the hold on the memory up; the arrays are gone.
  void release() noexcept { batch_.release(); }

 private:
  Batch batch_;
};

/// Two threads of its own: one takes batches from the loader and queues their copies on a copy stream, one gives each
/// host batch back when its copy has passed. With an inline loader samples are read on the first of them.
///
/// Determinism: the loader's batches, in its order. Threads: one at a time for next() and what changes the stager;
/// stats() from any. Leave the loader's own next(), reset(), set_epoch() and load_state_dict() alone meanwhile.
/// Errors: the loader's surface in order, and the batches after them come. A failed copy is a DeviceError at every
/// next() once it is noticed, until reset(), set_epoch() or load_state_dict() begin afresh; a batch that was handed out
/// before fails the compute stream: synchronize that, and load the state saved before the batch. A device without room
/// for another batch is a MemoryError; drop batches and call again, nothing is lost.
/// Death: the destructor waits for the batch that the loader is filling (the loader's timeout_ms bounds that) and for
/// work queued on the device that uses staged memory. Fork: in a child that the user forks the stager is inert.
class INFEED_API Stager {
 public:
  /// `loader` is borrowed and must outlive the stager. Throws ConfigError, DeviceError. Nothing is read before next().
  Stager(Loader& loader, std::shared_ptr<Device> device, StagerOptions options = {});
  ~Stager();
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;

  /// Next batch of this epoch; nullopt once at its end: the call after begins the next epoch. The compute stream waits
  /// for the copy; the host waits only where no copy was queued yet.
  [[nodiscard]] std::optional<StagedBatch> next();

  /// Drops the rest of this epoch, and what was staged of it; next() begins the following one.
  void reset();
  /// The next epoch to begin is `epoch`; drops the rest of the current one.
  void set_epoch(std::uint64_t epoch);
  /// Epoch of the batches that next() gives now (or would begin).
  [[nodiscard]] std::uint64_t epoch() const;

  /// The loader's state as of the last batch that this next() gave: what is staged ahead does not count.
  [[nodiscard]] State state_dict() const;
  /// The next batch is the one after the saved position; also takes a Loader's state. Throws as the loader's.
  void load_state_dict(const State& state);

  /// The stream that the batches are ordered for: the one given, or the stager's own.
  [[nodiscard]] DeviceStream& compute_stream() const noexcept;

  /// Copies, waits and page locks since construction or reset_stats(). From any thread.
  [[nodiscard]] StagerStats stats() const;
  void reset_stats();

 private:
  class Line;
  std::shared_ptr<Line> line_;  ///< shared with the batches in the user's hands
};

}  // namespace infeed
