#include "worker/fill.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <span>

#include "collate/run.h"
#include "ring/steps.h"
#include "worker/fault.h"

namespace infeed {
namespace {

// Small rows of a cold source: the hint four rows ahead saves a quarter of the CPU.
constexpr int kPrefetchRows = 4;
constexpr int kWholeBatch = -1;  // the row of a report that concerns no single row

}  // namespace

Filler::Filler(Ring& ring, const Arena& arena, const WorkPlan& plan) : ring_(ring), arena_(arena), plan_(plan) {
  if (plan.collate == nullptr)
    writer_.emplace(*plan.layout);
  else
    gather_.emplace(plan.stream != nullptr ? plan.stream->schema() : plan.dataset->schema());
}

bool Filler::fill(const Claim& claim, StageTimes& times, std::uint64_t& collate_ns) noexcept {
  times_ = &times;
  collate_ns_ = 0;
  try {
    if (plan_.stream != nullptr)
      fill_stream(claim);
    else if (gather_)
      fill_gathered(claim);
    else
      fill_in_place(claim);
  } catch (...) {
    report(claim, RowFault::kRaised, kWholeBatch, -1, capture_fault(std::current_exception()));
  }
  ring_.note_sample(claim.claimant, claim.number, -1);
  collate_ns += collate_ns_;
  return !ring_.stopping();
}

void Filler::fill_in_place(const Claim& claim) {
  std::byte* extent = arena_.extent(claim.extent);
  for (int row = 0; row < std::min(kPrefetchRows, claim.rows); ++row) prefetch(claim, row);
  for (int row = 0; row < claim.rows && !ring_.stopping(); ++row) {
    if (row + kPrefetchRows < claim.rows) prefetch(claim, row + kPrefetchRows);
    read_row(claim, row, [&](const SampleContext& context) {
      Row place = writer_->row(extent, claim.first_row + row, context);
      plan_.dataset->read(place);
    });
  }
}

void Filler::fill_gathered(const Claim& claim) {
  gather_->start_batch();
  int kept = 0;
  bool raised = false;
  for (int row = 0; row < std::min(kPrefetchRows, claim.rows); ++row) prefetch(claim, row);
  for (int row = 0; row < claim.rows && !ring_.stopping(); ++row) {
    if (row + kPrefetchRows < claim.rows) prefetch(claim, row + kPrefetchRows);
    const Outcome outcome = read_row(claim, row, [&](const SampleContext& context) {
      Row place = gather_->start_row(context);
      plan_.dataset->read(place);
      gather_->commit_row();
    });
    if (outcome == Outcome::kRead)
      claim.indices[static_cast<std::size_t>(kept++)] = claim.indices[static_cast<std::size_t>(row)];
    raised = raised || outcome == Outcome::kRaised;
  }
  if (raised) kept = 0;  // next() throws: nobody will look at the other rows
  const std::size_t nbytes = collate(claim, kept);
  ring_.set_result(claim, kept, nbytes, false);
}

// One attempt, and what the policy says where it fails. `read` writes the sample of the context that it gets.
template <typename Read>
Filler::Outcome Filler::read_row(const Claim& claim, int row, const Read& read) {
  const std::int64_t index = claim.indices[static_cast<std::size_t>(row)];
  ring_.note_sample(claim.claimant, claim.number, index);
  ring_step(RingStep::kMidRows);
  Fault fault;
  try {
    read(context(claim, index));
    return Outcome::kRead;
  } catch (...) {
    fault = capture_fault(std::current_exception());
  }
  if (plan_.on_error == FaultPolicy::kReplace) return replace_row(claim, row, fault, read);
  const bool skip = plan_.on_error == FaultPolicy::kSkip;
  report(claim, skip ? RowFault::kSkipped : RowFault::kRaised, claim.first_row + row, index, fault);
  return skip ? Outcome::kSkipped : Outcome::kRaised;
}

template <typename Read>
Filler::Outcome Filler::replace_row(const Claim& claim, int row, const Fault& fault, const Read& read) {
  std::int64_t& index = claim.indices[static_cast<std::size_t>(row)];
  const std::int64_t size = plan_.dataset->size();
  for (std::int64_t tried = 1; tried <= std::min<std::int64_t>(plan_.replace_tries, size - 1); ++tried) {
    const std::int64_t other = (index + tried) % size;
    ring_.note_sample(claim.claimant, claim.number, other);
    try {
      read(context(claim, other));
    } catch (...) {
      continue;
    }
    report(claim, RowFault::kReplaced, claim.first_row + row, index, fault);
    index = other;
    return Outcome::kRead;
  }
  report(claim, RowFault::kRaised, claim.first_row + row, index, fault);
  return Outcome::kRaised;
}

void Filler::fill_stream(const Claim& claim) {
  try {
    read_shard(claim, shards_.at(*plan_.stream, claim.epoch, claim.shard, claim.num_shards, claim.stream_row));
  } catch (...) {  // open or skip: asking again would fail again, so the shard ends here
    report(claim, RowFault::kRaised, kWholeBatch, claim.stream_row, capture_fault(std::current_exception()));
    ring_.set_result(claim, 0, 0, true);
  }
}

// A batch of a stream is `claim.rows` samples of its shard, those that raise included: where the next batch begins,
// which may be armed already, does not depend on what goes wrong in this one.
void Filler::read_shard(const Claim& claim, OpenShard& shard) {
  if (gather_) gather_->start_batch();
  int kept = 0;
  bool raised = false;
  for (int sample = 0; sample < claim.rows && !shard.ended && !ring_.stopping(); ++sample) {
    const Outcome outcome = next_row(claim, shard, kept);
    if (outcome == Outcome::kRead) ++kept;
    raised = raised || outcome == Outcome::kRaised;
  }
  if (raised && gather_) kept = 0;  // next() throws: nobody will look at the other rows
  const std::size_t nbytes = gather_ ? collate(claim, kept) : 0;
  ring_.set_result(claim, kept, nbytes, shard.ended);
}

Filler::Outcome Filler::next_row(const Claim& claim, OpenShard& shard, int kept) {
  const std::int64_t position = shard.position;
  ring_.note_sample(claim.claimant, claim.number, position);
  // Unique over the shards, as randomness needs it.
  const SampleContext where = context(claim, position * claim.num_shards + claim.shard);
  try {
    Row place = gather_ ? gather_->start_row(where) : writer_->row(arena_.extent(claim.extent), kept, where);
    shard.ended = !shard.reader->next(place);
    if (shard.ended) return Outcome::kEnded;
    ++shard.position;
    if (gather_) gather_->commit_row();
    return Outcome::kRead;
  } catch (...) {
    shard.position = position + 1;
    const bool raise = plan_.on_error == FaultPolicy::kRaise;  // a stream has no neighbours to replace it by
    report(claim, raise ? RowFault::kRaised : RowFault::kSkipped, kept, position,
           capture_fault(std::current_exception()));
    return raise ? Outcome::kRaised : Outcome::kSkipped;
  }
}

// Makes the batch of the rows gathered, `rows` of them (set to 0 where that fails); returns its bytes.
std::size_t Filler::collate(const Claim& claim, int& rows) {
  if (rows == 0) return 0;
  const auto begin = std::chrono::steady_clock::now();
  try {
    const std::size_t nbytes =
        collate_rows(*plan_.collate, *gather_, std::span(arena_.extent(claim.extent), arena_.extent_bytes()));
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    collate_ns_ += static_cast<std::uint64_t>(took.count());
    return nbytes;
  } catch (...) {
    rows = 0;
    report(claim, RowFault::kRaised, kWholeBatch, -1, capture_fault(std::current_exception()));
    return 0;
  }
}

void Filler::report(const Claim& claim, RowFault kind, int row, std::int64_t index, const Fault& fault) noexcept {
  ring_.add_report(claim, kind, row, index, fault.code, fault.text);
}

void Filler::prefetch(const Claim& claim, int row) const noexcept {
  plan_.dataset->prefetch(claim.indices[static_cast<std::size_t>(row)]);
}

SampleContext Filler::context(const Claim& claim, std::int64_t index) const noexcept {
  return {.seed = plan_.seed, .epoch = claim.epoch, .index = index, .times = times_};
}

}  // namespace infeed
