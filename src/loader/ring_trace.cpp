#include "loader/ring_trace.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"

namespace infeed {

RingTrace::RingTrace(std::shared_ptr<BatchMemory> memory, int threads_per_worker)
    : memory_(std::move(memory)),
      threads_per_worker_(threads_per_worker),
      seen_(static_cast<std::size_t>(memory_->ring().config().max_claimants), 0),
      named_(seen_.size()) {}

std::shared_ptr<RingTrace> RingTrace::make(std::shared_ptr<BatchMemory> memory, int threads_per_worker) {
  auto trace = std::make_shared<RingTrace>(std::move(memory), threads_per_worker);
  Tracer::instance().add_source(trace);
  return trace;
}

RingTrace::~RingTrace() { drain(); }

void RingTrace::begin_turn() {
  const std::uint64_t now = monotonic_ns();
  Tracer& tracer = Tracer::instance();  // before the question: it ends a parent's trace
  const std::lock_guard lock(mutex_);
  if (on_ != Tracer::running()) {
    on_ = !on_;
    memory_->ring().set_tracing(on_);
    returned_ns_ = 0;
    flight_.clear();
    taken_.clear();
    named_.assign(named_.size(), {});
    if (on_) skip_old_runs();
  }
  if (!on_) return;
  if (const TraceTrack track = this_track(); track != consumer_ || returned_ns_ == 0) {
    consumer_ = track;
    const std::string name = this_thread_name();
    feeds_stager_ = name.starts_with("infeed:");
    tracer.name_track(track, name);
  }
  if (returned_ns_ != 0)
    tracer.add({.name = feeds_stager_ ? "wait for room" : "trainer",
                .category = "consumer",
                .track = consumer_,
                .begin_ns = returned_ns_,
                .end_ns = now});
  called_ns_ = now;
  inside_ = true;
}

// Those of an earlier trace.
void RingTrace::skip_old_runs() {
  for (std::size_t claimant = 0; claimant < seen_.size(); ++claimant) {
    runs_.clear();
    memory_->ring().read_trace(static_cast<int>(claimant), seen_[claimant], runs_);
  }
}

void RingTrace::end_turn() {
  const std::uint64_t now = monotonic_ns();
  const std::lock_guard lock(mutex_);
  if (!std::exchange(inside_, false)) return;
  Tracer& tracer = Tracer::instance();
  TraceEvent next{.name = "next", .category = "consumer", .track = consumer_, .begin_ns = called_ns_, .end_ns = now};
  if (!taken_.empty()) {
    next.batch = static_cast<std::int64_t>(taken_.back().number);
    next.epoch = static_cast<std::int64_t>(taken_.back().epoch);
  }
  events_.push_back(next);
  for (const InFlight& batch : taken_) {
    for (const std::uint64_t flow : batch.flows)
      events_.push_back({.name = "batch",
                         .category = "batch",
                         .kind = TraceEvent::Kind::kFlowEnd,
                         .track = consumer_,
                         .begin_ns = now,
                         .flow = flow});
  }
  tracer.add(events_);
  events_.clear();
  taken_.clear();
  returned_ns_ = now;
}

void RingTrace::note_armed(std::uint64_t seq, std::uint64_t number, std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  flight_[seq] = {.number = number, .epoch = epoch};
}

// Every run of a batch was recorded before the batch was ready.
void RingTrace::note_taken(std::uint64_t seq) {
  const std::lock_guard lock(mutex_);
  fetch();
  const auto found = flight_.find(seq);
  if (found == flight_.end()) return;  // armed before the trace began
  taken_.push_back(std::move(found->second));
  flight_.erase(found);
}

void RingTrace::add_span(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) {
  Tracer::instance().add(
      {.name = name, .category = "consumer", .track = consumer_, .begin_ns = begin_ns, .end_ns = end_ns});
}

void RingTrace::drain() noexcept {
  if (!memory_->ours()) return;
  const std::lock_guard lock(mutex_);
  if (on_ && Tracer::running()) fetch();
}

void RingTrace::fetch() {
  for (std::size_t claimant = 0; claimant < seen_.size(); ++claimant) {
    runs_.clear();
    Tracer::instance().lost(memory_->ring().read_trace(static_cast<int>(claimant), seen_[claimant], runs_));
    for (const RunTrace& run : runs_) add_run(static_cast<int>(claimant), run);
  }
  Tracer::instance().add(events_);
  events_.clear();
}

void RingTrace::add_run(int claimant, const RunTrace& run) {
  Tracer& tracer = Tracer::instance();
  const TraceTrack track{.process = static_cast<pid_t>(memory_->ring().stats(claimant).pid),
                         .thread = static_cast<pid_t>(run.thread)};
  if (TraceTrack& named = named_[static_cast<std::size_t>(claimant)]; track != named) {
    named = track;
    if (track != consumer_) tracer.name_track(track, fmt::format("infeed:w{}", claimant / threads_per_worker_));
  }
  TraceEvent event{.name = "run",
                   .category = "worker",
                   .track = track,
                   .begin_ns = run.begin_ns,
                   .end_ns = run.end_ns,
                   .rows = static_cast<std::int64_t>(run.rows),
                   .stage_ns = {run.read_ns, run.decode_ns, run.transform_ns, run.collate_ns}};
  const auto found = flight_.find(run.seq);
  if (found != flight_.end()) {
    event.batch = static_cast<std::int64_t>(found->second.number);
    event.epoch = static_cast<std::int64_t>(found->second.epoch);
    found->second.flows.push_back(tracer.new_flow());
    events_.push_back({.name = "batch",
                       .category = "batch",
                       .kind = TraceEvent::Kind::kFlowBegin,
                       .track = track,
                       .begin_ns = run.end_ns,
                       .flow = found->second.flows.back()});
  }
  events_.push_back(event);
}

}  // namespace infeed
