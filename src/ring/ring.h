#pragma once
/// The ring: a table of slots in shared memory, claims by compare-and-swap, publication by a mask. See docs/ring.md.
///
/// One consumer thread at a time arms, takes, cancels and buries; claimants (worker threads of any process) claim and
/// publish. Lock-free: any claimant may die between any two steps.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ring/layout.h"

namespace infeed {

inline constexpr int kNoExtent = -1;
inline constexpr int kAnyone = -1;

/// What the consumer arms a slot with.
struct Order {
  std::uint64_t seq = 0;  ///< never used before in this ring, growing
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;                 ///< of the batch within the epoch
  std::span<const std::int64_t> indices{};  ///< map-style: one per row. Streams: empty
  int rows = 0;                             ///< rows wanted
  int shard = -1;                           ///< streams: which shard, of num_shards, from which row on
  int num_shards = 0;
  std::int64_t first_row = 0;
  bool whole = false;      ///< one run for the whole batch; else up to kMaxRuns runs
  int rows_per_run = 1;    ///< at the least; more where kMaxRuns runs would not do
  int assigned = kAnyone;  ///< whole: the only claimant that may start it
  int extent = kNoExtent;  ///< kNoExtent: the claimant binds one when it starts (whole only)
};

/// A run of rows that one claimant holds, and what it needs to fill it. Valid until publish().
struct Claim {
  int slot = 0;
  int run = 0;
  int claimant = 0;
  int first_row = 0, rows = 0;  ///< of the batch
  int extent = kNoExtent;       ///< bound by now
  std::uint64_t seq = 0, epoch = 0, number = 0;
  std::span<std::int64_t> indices{};  ///< of this run's rows; a replaced sample writes its new index here
  int shard = -1, num_shards = 0;
  std::int64_t stream_row = 0;
};

/// What a claimant reports about one row. The text is cut to fit.
enum class RowFault : std::uint8_t { kRaised = 1, kSkipped = 2, kReplaced = 3 };
struct RowReport {
  RowFault fault = RowFault::kRaised;
  int row = 0;         ///< of the batch; -1: the batch as a whole (collate, stream)
  int error_code = 0;  ///< the type of the exception (worker/fault.h)
  std::int64_t index = 0;
  int claimant = 0;
  std::string text{};
};

/// A finished slot.
struct SlotResult {
  std::uint64_t seq = 0, epoch = 0, number = 0;
  int extent = kNoExtent;  ///< kNoExtent: nothing was written (cancelled, or failed before a claimant bound one)
  int rows = 0;            ///< rows written: fewer than wanted only at a stream shard's end
  bool shard_ended = false;
  std::size_t nbytes = 0;  ///< bytes used in the extent by a gathered batch (0: laid out by the schema)
  std::vector<std::int64_t> indices{};
  std::vector<RowReport> reports{};
  int reports_lost = 0;  ///< reports that found no room
};

/// Per claimant, written by it (relaxed), read by the consumer for errors and stats.
struct ClaimantStats {
  std::int64_t pid = 0;
  std::uint64_t batch = 0;  ///< number of the batch in hand
  std::int64_t index = -1;  ///< sample in hand; -1 between samples
  std::uint64_t rows = 0, runs = 0;
  std::uint64_t read_ns = 0, decode_ns = 0, transform_ns = 0, bytes_read = 0;
  std::uint64_t busy_ns = 0, wait_ns = 0;
  std::uint64_t init_error = 0;  ///< see Ring::fail_start
  std::uint64_t collate_ns = 0;
  std::uint64_t claimed_ns = 0;  ///< CLOCK_MONOTONIC at which the run in hand was claimed; 0: none is
};

/// What a claimant records of a run while tracing. Nanoseconds of CLOCK_MONOTONIC.
struct RunTrace {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint64_t seq = 0;                                                       ///< of the batch
  std::uint64_t read_ns = 0, decode_ns = 0, transform_ns = 0, collate_ns = 0;  ///< sums over the rows
  std::uint32_t rows = 0;
  std::uint32_t thread = 0;  ///< gettid()
};

class Ring {
 public:
  /// Bytes of the control block.
  [[nodiscard]] static std::size_t bytes(const RingConfig& config);
  /// Consumer: lays the control block out in zeroed `memory` (64-byte aligned, shared).
  [[nodiscard]] static Ring format(std::byte* memory, const RingConfig& config);
  /// Worker: checks magic, version and sizes; throws ConfigError naming both. For the claimants' calls only.
  [[nodiscard]] static Ring attach(std::byte* memory, std::size_t size);

  [[nodiscard]] const RingConfig& config() const noexcept { return config_; }

  // --- consumer ------------------------------------------------------------------------------------------------------
  /// Arms a free slot and returns its number; -1 if none is free. Does not ring.
  int arm(const Order& order);
  /// True once every run is done or cancelled.
  [[nodiscard]] bool ready(int slot) const noexcept;
  /// Bytes of the message in a ready whole slot, as its claimant says: bound them.
  [[nodiscard]] std::size_t result_bytes(int slot) const noexcept { return bytes_.head(slot).nbytes; }
  /// Copies what a ready slot holds, frees the slot (not the extent), returns the result.
  SlotResult take(int slot);
  /// Cancels what nobody started; the slot is drained when ready() and then must be taken. True if it is ready already.
  bool cancel(int slot);
  /// Whether `claimant` has a run of this slot in hand.
  [[nodiscard]] bool holds(int slot, int claimant) const noexcept;
  /// After `claimant` is surely dead: its unfinished runs are free again (or cancelled, if the slot drains), the extent
  /// it bound is free, its sleeper bit is cleared. Returns the runs given back. Rings nobody: call ring_workers(true)
  /// after.
  int bury(int claimant);
  /// Whole runs that were assigned to `from` and not started are assigned to `to` (kAnyone allowed). Returns how many.
  int reassign(int from, int to);
  /// Unclaimed runs over all slots: how many workers have something to do.
  [[nodiscard]] int open_runs() const noexcept;

  /// Lowest free extent, the consumer's from now on; kNoExtent if all are taken.
  int acquire_extent() noexcept;
  /// This very extent, to trim it; false if it is not free.
  [[nodiscard]] bool acquire_extent(int extent) noexcept;
  /// Any thread of the consumer's process: the extent is free again.
  void release_extent(int extent) noexcept;
  [[nodiscard]] int free_extents() const noexcept;
  [[nodiscard]] bool extent_is_free(int extent) const noexcept;

  /// Wakes `wanted` sleeping claimants (all: everyone, and the stop flag and assignments are looked at).
  /// A number is right only where any claimant can do the work: for assigned runs wake all, or ring_claimant().
  void ring_workers(bool all, int wanted = 1) noexcept;
  /// Wakes the claimant that a run was assigned to, and few others.
  void ring_claimant(int claimant) noexcept;
  /// Consumer is about to block: from now on a finishing claimant writes to `ready_eventfd`. Re-test ready() after this
  /// call.
  void begin_wait() noexcept;
  void end_wait() noexcept;

  /// Sets the stop flag and wakes every claimant.
  void request_stop() noexcept;
  [[nodiscard]] bool stopping() const noexcept;
  /// A claimant that is asked to leave finishes its run, then leaves its loop.
  void retire(int claimant, bool leave) noexcept;
  [[nodiscard]] bool retired(int claimant) const noexcept;

  [[nodiscard]] ClaimantStats stats(int claimant) const noexcept;
  /// Whether claimants record their runs from now on.
  void set_tracing(bool on) noexcept;
  /// Appends what `claimant` recorded since `seen` (records ever read), and moves that on. Returns how many were
  /// overwritten before they could be read.
  std::uint64_t read_trace(int claimant, std::uint64_t& seen, std::vector<RunTrace>& runs) const;
  /// Text that a worker left when it could not start (dataset, worker_init); empty if none.
  [[nodiscard]] std::string start_failure(int claimant) const;

  // --- claimants -----------------------------------------------------------------------------------------------------
  /// Claims a run of the oldest batch that has work; nullopt if there is none.
  [[nodiscard]] std::optional<Claim> claim(int claimant) noexcept;
  /// Notes the sample in hand, for errors.
  void note_sample(int claimant, std::uint64_t number, std::int64_t index) noexcept;
  void add_report(const Claim& claim, RowFault fault, int row, std::int64_t index, int error_code,
                  std::string_view text) noexcept;
  /// Whole runs: what the collate or the stream came to.
  void set_result(const Claim& claim, int rows, std::size_t nbytes, bool shard_ended) noexcept;
  /// The rows are written (an sfence first where non-temporal stores were used). Rings the consumer if the batch is
  /// full; `ready_eventfd` is written only if the consumer sleeps.
  void publish(const Claim& claim, int ready_eventfd) noexcept;
  /// Value of the workers' bell: read it before claim(), pass it to wait_for_work().
  [[nodiscard]] std::uint32_t bell() const noexcept;
  /// Claimants that sleep, or were rung and do not run yet.
  [[nodiscard]] int sleepers() const noexcept;
  /// Sleeps until the bell is no longer `seen` or `timeout_ms` passed; spins up to `spin_us` first.
  void wait_for_work(int claimant, std::uint32_t seen, int spin_us, int timeout_ms) noexcept;
  void add_stats(int claimant, const ClaimantStats& delta) noexcept;  ///< adds the counters, sets pid
  void note_claim(int claimant, std::uint64_t claimed_ns) noexcept;   ///< 0: nothing is in hand
  [[nodiscard]] bool tracing() const noexcept;
  void trace_run(int claimant, const RunTrace& run) noexcept;
  void fail_start(int claimant, int error_code, std::string_view text) noexcept;
  [[nodiscard]] int start_error_code(int claimant) const noexcept;

 private:
  /// What the consumer ordered, in its own memory: a worker cannot forge it.
  struct Armed {
    std::uint64_t seq = 0;  ///< 0: the slot is free
    std::uint64_t full = 0, epoch = 0, number = 0;
    int rows = 0, rows_per_run = 0, num_runs = 0;
    int extent = kNoExtent, assigned = kAnyone;
    bool whole = false, draining = false;
    std::vector<std::int64_t> indices{};  ///< as ordered; empty for streams
  };
  struct OpenSlot {
    int slot;
    std::uint64_t seq;
  };

  Ring(std::byte* memory, const RingConfig& config);

  // consumer.cpp
  void check_order(const Order& order) const;
  void write_order(SlotHead& head, const Order& order, const Armed& armed) noexcept;
  void cancel_unstarted_runs(int slot) noexcept;
  [[nodiscard]] int take_extent(int slot) noexcept;
  // bury.cpp
  [[nodiscard]] bool holds_run(int slot, int run, int claimant) const noexcept;
  int bury_in(int slot, int claimant) noexcept;
  void give_back_dead_run(int slot, int run) noexcept;
  void restore_indices(int slot, int run) noexcept;
  void free_extents_of(int slot) noexcept;
  // extents.cpp
  [[nodiscard]] int bind_lowest_extent(std::uint64_t word) noexcept;
  // claimant.cpp
  [[nodiscard]] std::optional<OpenSlot> oldest_open_slot(int claimant, std::uint64_t after) const noexcept;
  [[nodiscard]] std::optional<Claim> claim_in(const OpenSlot& open, int claimant) noexcept;
  [[nodiscard]] bool start_run(const OpenSlot& open, int run, int claimant) noexcept;
  [[nodiscard]] bool bind_extent(const OpenSlot& open) noexcept;
  void return_run(const OpenSlot& open, int run, int claimant) noexcept;
  [[nodiscard]] Claim describe(const OpenSlot& open, int run, int claimant) const noexcept;
  // reports.cpp
  void collect_reports(int slot, SlotResult& result) const;
  void void_reports(int slot, int run) noexcept;

  std::byte* memory_ = nullptr;
  RingConfig config_;
  RingBytes bytes_;
  std::vector<Armed> armed_;    ///< consumer only
  std::uint64_t last_seq_ = 0;  ///< consumer only
};

}  // namespace infeed
