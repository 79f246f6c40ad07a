#pragma once
/// The bytes of the control block, drawn here and nowhere else. Zeroed memory is a valid start.
///
///   offset  bytes                               area
///   0       768                                 RingHeader: magic, version, sizes | stop | bell | wait | extents
///   ...     1024 * max_claimants                ClaimantWords: retire flag, statistics, sample in hand, failed start
///   ...     8 * num_extents                     owner words of the extents (owner.h)
///   ...     256 * num_slots                     SlotHead: seq, todo, the order | done, the result
///   ...     512 * num_slots                     owner words of the runs: [slot][kMaxRuns]
///   ...     8 * max_rows * num_slots            sample indices: [slot][row]; who replaces a sample writes the new one
///   ...     448 * reports_per_slot * num_slots  ReportRecord
///   ...     65536 * max_claimants               TraceRecord: [claimant][kTraceRecords], a ring; touched while tracing only
///
/// Every area starts at a multiple of 128 (two cache lines: the adjacent-line prefetcher pairs them). Untouched pages
/// cost nothing. Atomics are lock-free and hold no address. Plain members are written by one side, and read by the
/// other only after an acquire of the word that their comment names.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ring/doorbell.h"

namespace infeed {

inline constexpr int kMaxRuns = 64;
inline constexpr int kMaxClaimants = BellWords::kMaxSleepers;
inline constexpr int kMaxReportText = 400;  ///< bytes of a report's text
inline constexpr int kTraceRecords = 1024;  ///< of one claimant

struct RingConfig {
  int num_slots = 4;      ///< batches in flight + workers (each may pin one draining slot); at most 65536
  int max_rows = 1;       ///< rows of the largest batch
  int max_claimants = 1;  ///< worker threads that may ever live at once; at most kMaxClaimants
  int num_extents = 1;    ///< at most 2^24
  friend bool operator==(const RingConfig&, const RingConfig&) = default;
};

inline constexpr std::uint64_t kRingMagic = 0x676e69726465666e;  // "nfedring" in memory
inline constexpr std::uint32_t kRingVersion = 2;

struct RingHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t num_slots, max_rows, max_claimants, num_extents;
  std::uint32_t zero;
  std::uint64_t total_bytes;
  alignas(128) std::atomic<std::uint32_t> stop;
  std::atomic<std::uint32_t> tracing;                      // 1: claimants record their runs
  alignas(128) BellWords bell;                             // of the workers
  alignas(128) std::atomic<std::uint32_t> consumer_waits;  // 1: a full mask must write the eventfd
  alignas(128) std::atomic<std::int32_t> extents_used;     // all from here on were never taken: never falls
  std::atomic<std::uint32_t> extent_wanted;                // 1: a claimant gave a run back for want of an extent
};
static_assert(sizeof(RingHeader) == 768);

/// Written by its claimant, but for `leave`.
struct alignas(128) ClaimantWords {
  std::atomic<std::uint32_t> leave;
  std::atomic<std::int32_t> start_error;  // release [failed]: the text is complete
  std::uint32_t start_text_length;
  std::uint32_t zero;
  std::atomic<std::int64_t> pid, index;
  std::atomic<std::uint64_t> batch, rows, runs, read_ns, decode_ns, transform_ns, bytes_read, busy_ns, wait_ns;
  std::atomic<std::uint64_t> collate_ns;
  std::atomic<std::uint64_t> claimed_ns;  // CLOCK_MONOTONIC at which the run in hand was claimed; 0: none is
  std::atomic<std::uint64_t> traced;      // records ever written, release [traced]
  char start_text[896];
};
static_assert(sizeof(ClaimantWords) == 1024);

struct alignas(128) SlotHead {
  // Lines 0 and 1: where to find work, and the order. Plain members are written at arm before [armed], read by holders
  // of a claim.
  std::atomic<std::uint64_t> seq;       // of the batch in it; 0: free. Stored last at arm, release [armed]
  std::atomic<std::uint64_t> todo;      // hint: runs worth trying
  std::atomic<std::uint64_t> draining;  // == seq: cancelled
  std::atomic<std::int32_t> assigned;   // hint: the claimant that may start it, or -1
  std::atomic<std::int32_t> extent;     // armed with, or bound by a claimant; -1: none yet
  std::uint64_t full;                   // the mask of all runs
  std::uint64_t number;
  std::int32_t rows, rows_per_run;
  std::uint32_t whole, has_indices;
  std::uint64_t epoch;
  std::int64_t stream_row;
  std::int32_t shard, num_shards;
  // Line 2, which the consumer watches: what claimants write. Plain members before [written], read at take.
  alignas(128) std::atomic<std::uint64_t> done;  // truth: runs written or cancelled, seq_cst [written]
  std::uint64_t nbytes;
  std::int32_t rows_written;
  std::uint32_t shard_ended;
  std::atomic<std::uint32_t> num_reports;  // places taken, also beyond the room
};
static_assert(sizeof(SlotHead) == 256);

struct alignas(64) ReportRecord {
  std::atomic<std::uint64_t> seq;  // of the batch it belongs to, release [reported]; any other value: void
  std::int64_t index;
  std::int32_t row, run, error_code, claimant;
  std::uint32_t fault, text_length;
  char text[kMaxReportText];
  char zero[8];
};
static_assert(sizeof(ReportRecord) == 448);

/// The words of a RunTrace (ring.h). Words, so that one that is read while it is overwritten is only wrong, and dropped.
struct alignas(64) TraceRecord {
  std::atomic<std::uint64_t> words[8];
};
static_assert(sizeof(TraceRecord) == 64);

/// Where each area starts. Throws ConfigError for sizes out of range, so that nothing here can overflow.
struct RingLayout {
  std::size_t claimants = 0, extents = 0, heads = 0, owners = 0, indices = 0, reports = 0, traces = 0, total = 0;
  int max_rows = 0;
  int reports_per_slot = 0;
  [[nodiscard]] static RingLayout of(const RingConfig& config);
};

/// Typed access to the areas. Indices are the caller's to bound.
class RingBytes {
 public:
  RingBytes(std::byte* memory, const RingConfig& config) : memory_(memory), layout_(RingLayout::of(config)) {}

  [[nodiscard]] RingHeader& header() const noexcept { return *at<RingHeader>(0, 0); }
  [[nodiscard]] ClaimantWords& claimant(int id) const noexcept { return *at<ClaimantWords>(layout_.claimants, id); }
  [[nodiscard]] std::atomic<std::uint64_t>& extent(int index) const noexcept {
    return *at<std::atomic<std::uint64_t>>(layout_.extents, index);
  }
  [[nodiscard]] SlotHead& head(int slot) const noexcept { return *at<SlotHead>(layout_.heads, slot); }
  [[nodiscard]] std::atomic<std::uint64_t>& owner(int slot, int run) const noexcept {
    return *at<std::atomic<std::uint64_t>>(layout_.owners, std::int64_t{slot} * kMaxRuns + run);
  }
  [[nodiscard]] std::int64_t* indices(int slot) const noexcept {
    return at<std::int64_t>(layout_.indices, std::int64_t{slot} * layout_.max_rows);
  }
  [[nodiscard]] ReportRecord& report(int slot, int place) const noexcept {
    return *at<ReportRecord>(layout_.reports, std::int64_t{slot} * layout_.reports_per_slot + place);
  }
  [[nodiscard]] TraceRecord& trace(int claimant, std::uint64_t number) const noexcept {
    return *at<TraceRecord>(layout_.traces,
                            std::int64_t{claimant} * kTraceRecords + static_cast<std::int64_t>(number % kTraceRecords));
  }
  [[nodiscard]] int reports_per_slot() const noexcept { return layout_.reports_per_slot; }

 private:
  template <typename T>
  [[nodiscard]] T* at(std::size_t area, std::int64_t index) const noexcept {
    return reinterpret_cast<T*>(memory_ + area) + index;
  }
  std::byte* memory_;
  RingLayout layout_;
};

}  // namespace infeed
