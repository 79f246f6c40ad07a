#pragma once
/// Fills one claimed run of rows: in place, gathered for a collate, or from a stream.

#include <memory>
#include <optional>

#include "batch/rows.h"
#include "memory/arena.h"
#include "ring/ring.h"
#include "worker/fault.h"
#include "worker/plan.h"
#include "worker/shards.h"

namespace infeed {

/// Belongs to one claimant. Exceptions of datasets, readers and collates become row reports; none leaves.
///
///                 rows lie                result set                 a row left out (raised, skipped)
///   in place      at their final place    -                          keeps its place, with old bytes
///   gathered      in private memory       rows kept, bytes used      later rows move up, in `indices` too
///   stream        either                  rows kept, end seen        later rows move up
class Filler {
 public:
  Filler(Ring& ring, const Arena& arena, const WorkPlan& plan);

  /// Fills the run; its times are added to `times` and `collate_ns`. False if the ring was stopped: the run may be incomplete and must
  /// not be published.
  [[nodiscard]] bool fill(const Claim& claim, StageTimes& times, std::uint64_t& collate_ns) noexcept;

 private:
  enum class Outcome : std::uint8_t { kRead, kSkipped, kRaised, kEnded };

  void fill_in_place(const Claim& claim);
  void fill_gathered(const Claim& claim);
  void fill_stream(const Claim& claim);
  void read_shard(const Claim& claim, OpenShard& shard);
  Outcome next_row(const Claim& claim, OpenShard& shard, int kept);

  template <typename Read>
  Outcome read_row(const Claim& claim, int row, const Read& read);
  template <typename Read>
  Outcome replace_row(const Claim& claim, int row, const Fault& fault, const Read& read);

  std::size_t collate(const Claim& claim, int& rows);
  void report(const Claim& claim, RowFault kind, int row, std::int64_t index, const Fault& fault) noexcept;
  void prefetch(const Claim& claim, int row) const noexcept;
  [[nodiscard]] SampleContext context(const Claim& claim, std::int64_t index) const noexcept;

  Ring& ring_;
  const Arena& arena_;
  const WorkPlan& plan_;
  std::optional<RowWriter> writer_;  ///< without a collate
  std::optional<RowGather> gather_;  ///< with one
  ShardCache shards_;
  StageTimes* times_ = nullptr;   ///< of the run in hand
  std::uint64_t collate_ns_ = 0;  ///< of the run in hand
};

}  // namespace infeed
