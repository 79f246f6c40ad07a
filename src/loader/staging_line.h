#pragma once
/// The line between loader and device: two threads, one lock, no device wait under it.
///
///   feeder    loader.next() ─▶ page-lock ─▶ copy stream: wait(consumed) copy… record(copied) ─▶ ready_, copying_
///   finisher  copying_: copied passed ─▶ the host batch is dropped: its extent is free
///   consumer  ready_ ─▶ compute stream: wait(copied) ─▶ user ─▶ dropped_ ─▶ at the next call record(consumed) ─▶ free_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "infeed/loader/stager.h"
#include "loader/registrations.h"

namespace infeed {

/// Outlives its Stager as long as the user holds batches; close() ends what moves in it.
class Stager::Line : public std::enable_shared_from_this<Line> {
 public:
  Line(Loader& loader, std::shared_ptr<Device> device, const StagerOptions& options);
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  /// Ends the threads, waits for the device, gives all memory back but that of held batches.
  void close() noexcept;

  std::optional<StagedBatch> next();
  /// The same, into the trace that runs.
  std::optional<StagedBatch> traced_next();
  /// Calls `change` on the loader while nothing is staged or read ahead.
  void change(const std::function<void(Loader&)>& change);
  [[nodiscard]] State state_dict() const;
  [[nodiscard]] DeviceStream& compute_stream() const noexcept { return *compute_; }
  [[nodiscard]] StagerStats stats() const;
  void reset_stats();
  /// False in a process that was forked from the one that made this.
  [[nodiscard]] bool ours() const noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  struct Usage {
    std::atomic<int> slots{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  /// Device memory of one batch.
  struct Slot {
    DeviceBuffer memory;
    std::unique_ptr<DeviceEvent> consumed;  ///< the compute stream is past the batch that lay here before
    Usage& usage;

    explicit Slot(Usage& counts) : usage(counts) { ++usage.slots; }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() {
      clear();
      --usage.slots;
    }
    void clear() noexcept {
      usage.bytes -= memory.size_bytes();
      memory.reset();
    }
    /// Nothing may use the old memory. Throws as Device::allocate.
    void resize(const std::shared_ptr<Device>& device, std::size_t bytes) {
      clear();
      memory = DeviceBuffer(device, bytes);
      usage.bytes += bytes;
    }
  };
  struct Lease;
  /// What came of one loader.next(): a batch, an error, or (neither) the end of the epoch.
  struct Outcome {
    std::optional<Batch> batch;
    std::shared_ptr<Lease> lease;         ///< of a staged batch
    std::shared_ptr<DeviceEvent> copied;  ///< null where nothing is copied
    std::exception_ptr error;
    std::shared_ptr<const State> position;  ///< of the loader, right after
  };
  struct Copying {
    Batch host;
    std::shared_ptr<DeviceEvent> started;
    std::shared_ptr<DeviceEvent> copied;
    std::uint64_t bytes = 0;
  };
  struct Counters {
    std::uint64_t batches = 0;
    std::uint64_t bytes = 0;
    double copy_s = 0;
    Clock::duration waited{};
    std::optional<Clock::time_point> first_next;
    Clock::time_point last_next{};
  };

  // staging_line.cpp: the consumer's side
  void check_ours() const;
  void start_threads();
  void wait_for_outcome(std::unique_lock<std::mutex>& lock);
  void hand_to_compute(const Outcome& outcome);
  void retire_dropped();
  void settle(std::unique_lock<std::mutex>& lock);
  void clear_failure();
  void take_back(std::unique_ptr<Slot> slot, bool was_lent) noexcept;
  void discard(Slot& slot) noexcept;
  void memory_came_free() noexcept {
    shortage_ = nullptr;
    ++frees_;
  }

  // staging_threads.cpp: feeder and finisher
  void feed() noexcept;
  [[nodiscard]] bool may_feed() const noexcept;
  void feed_one();
  [[nodiscard]] std::optional<Outcome> draw();
  [[nodiscard]] bool stage(Outcome& drawn);
  void queue_copies(Outcome& drawn, const std::shared_ptr<Lease>& lease);
  [[nodiscard]] bool wants_slot() const noexcept;
  [[nodiscard]] std::unique_ptr<Slot> take_slot(std::size_t bytes);
  [[nodiscard]] std::unique_ptr<Slot> take_free_slot();
  void fit(Slot& slot, std::size_t bytes);
  std::size_t free_idle_slots(std::size_t keep) noexcept;
  void run_short(const std::string& why);
  void fail(const Batch& batch, const std::string& why);
  void finish() noexcept;
  void trace_copy(double copy_ms, std::uint64_t batch);

  Loader& loader_;
  const std::shared_ptr<Device> device_;
  const StagerOptions options_;
  const std::uint64_t home_;  ///< process_generation() of the maker
  const bool copies_;         ///< false: batches are handed out as they lie on the host
  std::unique_ptr<DeviceStream> copy_;
  std::unique_ptr<DeviceStream> own_compute_;
  DeviceStream* compute_;
  Registrations registrations_;
  Usage usage_;
  std::thread feeder_;
  std::thread finisher_;

  // The feeder's alone.
  std::optional<Outcome> drawn_;                 ///< taken from the loader, but no device memory was free
  std::shared_ptr<const State> drawn_position_;  ///< of the loader's latest outcome in this epoch
  std::size_t largest_ = 0;                      ///< bytes of a device buffer
  bool full_ = false;                            ///< the device has no room for as many slots as are wanted
  std::uint64_t frees_seen_ = 0;                 ///< frees_ when the feeder last set out

  mutable std::mutex mutex_;                    ///< all below
  std::condition_variable room_;                ///< for the feeder: it may have something to do
  std::condition_variable queued_;              ///< for the finisher: a copy was queued
  std::condition_variable news_;                ///< for the consumer: something was staged, dropped, copied or failed
  std::deque<Outcome> ready_;                   ///< in order of delivery
  std::deque<Copying> copying_;                 ///< in the order of the copy stream
  std::vector<std::unique_ptr<Slot>> free_;     ///< the one free longest first
  std::vector<std::unique_ptr<Slot>> dropped_;  ///< by the user, since the last call
  std::shared_ptr<const State> position_;       ///< of what was delivered; null: the loader's own
  std::exception_ptr shortage_;                 ///< why the feeder found no memory; cleared when some came free
  std::uint64_t frees_ = 0;                     ///< times that memory came free
  std::exception_ptr failed_;                   ///< a copy or a device call; until settle()
  int held_ = 0;                                ///< batches in the user's hands
  bool beginning_ = true;                       ///< nothing of the epoch was drawn yet
  bool running_ = false;                        ///< between the first next() of an epoch and its end
  bool stalled_ = false;                        ///< an error or the end waits in ready_
  bool feeding_ = false;                        ///< the feeder is at work, without the lock
  bool paused_ = false;
  bool stop_feeder_ = false;
  bool stop_finisher_ = false;
  bool closed_ = false;
  Counters counters_;
  std::uint64_t returned_ns_ = 0;  ///< of traced_next(), by which only the consumer's thread goes
};

/// Owner of a staged batch: its end gives the device memory, or the host batch, back.
struct Stager::Line::Lease {
  std::shared_ptr<Line> line;
  std::unique_ptr<Slot> slot;  ///< null where nothing is copied
  Batch host;                  ///< then this
  bool lent = false;           ///< to the user; else it never left ready_
  Lease(std::shared_ptr<Line> owner, std::unique_ptr<Slot> memory, Batch batch)
      : line(std::move(owner)), slot(std::move(memory)), host(std::move(batch)) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    host.release();
    line->take_back(std::move(slot), lent);
  }
};

}  // namespace infeed
