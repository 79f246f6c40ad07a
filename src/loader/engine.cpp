#include "loader/engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "infeed/sampler/random.h"
#include "infeed/sampler/sequential.h"
#include "memory/fork_watch.h"

namespace infeed {
namespace {

constexpr int kStateVersion = 1;
constexpr int kExtents = 1024;
constexpr int kFewestExtents = 64;
constexpr int kBesideTheQueue = 3;    // extents: handed out, held until the next is, compacted
constexpr int kAnswerMs = 5000;       // a fork of a parent with many GB takes long
constexpr int kShortAnswerMs = 1000;  // a machine with more to do than processors, too
constexpr std::uint64_t kAddressSpace = std::uint64_t{256} << 30;  // of one loader, where its batches are large

// Names the thread that is in next() while it lives.
class Inside {
 public:
  explicit Inside(std::atomic<std::thread::id>& who) : who_(who) { who_ = std::this_thread::get_id(); }
  ~Inside() { who_ = std::thread::id(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::atomic<std::thread::id>& who_;
};

// next() may wait for it: no longer than it would for a batch, if that is long enough for a fork.
int answer_ms(std::int64_t timeout_ms) {
  return timeout_ms == 0 ? kAnswerMs
                         : static_cast<int>(std::clamp<std::int64_t>(timeout_ms, kShortAnswerMs, kAnswerMs));
}

int extents_for(std::uint64_t extent_bytes, int depth) {
  const auto fit = static_cast<int>(std::min<std::uint64_t>(kExtents, kAddressSpace / extent_bytes));
  return std::max({fit, kFewestExtents, 4 * depth});
}

}  // namespace

Loader::Engine::Engine(const Dataset* dataset, const Stream* stream, LoaderOptions options)
    : dataset_(dataset), stream_(stream), options_(std::move(options)) {
  const MachineLimits limits = read_machine_limits();
  begin_with_auto(limits);
  check_options(options_, stream_ != nullptr);
  const Schema& schema = dataset_ ? dataset_->schema() : stream_->schema();
  make_feed();
  settings_ = make_settings(options_, schema, stream_ != nullptr, largest_batch_rows(), limits);
  depth_ = settings_.depth;
  make_room_for_auto();
  start_workers();
  if (feed_->size() == 0)
    log(LogLevel::kWarning, fmt::format("this loader has no batches: {} samples, batch_size {}, drop_last {}.",
                                        dataset_ ? dataset_->size() : stream_->size().value_or(0),
                                        feed_->max_batch_size(), options_.drop_last));
}

// No batch has more rows than an epoch, where that is known.
std::int64_t Loader::Engine::largest_batch_rows() const {
  const std::int64_t rows = feed_->max_batch_size();
  if (stream_ || options_.batch_sampler) return rows;
  const auto epoch = options_.sampler ? options_.sampler->size() : dataset_->size();
  return epoch ? std::min(rows, std::max<std::int64_t>(1, *epoch)) : rows;
}

void Loader::Engine::make_feed() {
  if (stream_) {
    const int shards = options_.stream_shards > 0 ? options_.stream_shards : std::max(1, options_.num_workers);
    feed_ = std::make_unique<StreamFeed>(shards, options_.batch_size, options_.drop_last, stream_->size());
    return;
  }
  const std::int64_t size = dataset_->size();
  if (size < 0) throw ConfigError(fmt::format("the dataset's size() is {}.", size));
  if (options_.batch_sampler) {
    feed_ = std::make_unique<BatchFeed>(*options_.batch_sampler, size);
    return;
  }
  if (!options_.sampler && options_.shuffle)
    own_sampler_ = std::make_unique<RandomSampler>(size, RandomSamplerOptions{.seed = options_.seed});
  if (!options_.sampler && !options_.shuffle) own_sampler_ = std::make_unique<SequentialSampler>(size);
  Sampler& sampler = options_.sampler ? *options_.sampler : *own_sampler_;
  // With on_error skip the compactor cuts the batches, so it drops the last one.
  const bool drop_last = options_.drop_last && options_.on_error != OnError::kSkip;
  feed_ = std::make_unique<SamplerFeed>(sampler, size, options_.batch_size, drop_last);
}

void Loader::Engine::start_workers() {
  RingConfig ring;
  ring.num_slots = settings_.num_slots;
  ring.max_rows = settings_.max_rows;
  ring.max_claimants = settings_.max_workers * options_.threads_per_worker;
  ring.num_extents = extents_for(settings_.extent_bytes, settings_.depth);
  Arena arena = Arena::create({.control_bytes = Ring::bytes(ring),
                               .extent_bytes = settings_.extent_bytes,
                               .num_extents = ring.num_extents,
                               .min_extents = settings_.depth + kBesideTheQueue});
  ring.num_extents = arena.num_extents();
  memory_ = std::make_shared<BatchMemory>(std::move(arena), ring, settings_.depth + kBesideTheQueue);
  trace_by_environment();
  trace_ = RingTrace::make(memory_, options_.threads_per_worker);
  plan_ = {.dataset = dataset_,
           .stream = stream_,
           .collate = options_.collate.get(),
           .layout = settings_.layout ? &*settings_.layout : nullptr,
           .seed = options_.seed,
           .max_rows = settings_.max_rows,
           .on_error = fault_policy(options_.on_error),
           .any_claimant = stream_ == nullptr};
  if (options_.on_error == OnError::kSkip && settings_.layout && !stream_ && !options_.batch_sampler)
    compactor_ = std::make_unique<Compactor>(memory_, *settings_.layout, options_.drop_last);
  const PoolOptions pool{.kind = settings_.kind,
                         .num_workers = options_.num_workers,
                         .threads_per_worker = options_.threads_per_worker,
                         .spin_us = settings_.spin_us,
                         .ready_eventfd = ready_.fd(),
                         .answer_ms = answer_ms(options_.timeout_ms),
                         .worker_init = options_.worker_init,
                         .worker_init_name = options_.worker_init_name,
                         .cpu_affinity = options_.cpu_affinity,
                         .worker_executable = options_.worker_executable};
  pool_ = WorkerPool::start(pool, memory_->ring(), memory_->arena(), plan_);
  lost_.assign(static_cast<std::size_t>(settings_.max_workers), false);
  note_processes();
  recorder_.started(worker_pids_);
}

Loader::Engine::~Engine() {
  if (!memory_->ours()) {
    pool_->abandon_in_child();
    return;
  }
  closing_ = true;
  ready_.ring();
  std::unique_lock lock(mutex_, std::defer_lock);
  // A next() on another thread leaves first; one further up this very stack (the dataset called exit()) never will.
  if (inside_.load() != std::this_thread::get_id()) lock.lock();
  if (compactor_) compactor_->clear();
}

// In a forked child the locks may be held by threads that it does not have, so the question comes first.
std::unique_lock<std::mutex> Loader::Engine::lock_ours() const {
  if (!memory_->ours())
    throw ConfigError(
        "this loader belongs to the process that made it; in a forked child it is inert. Make a loader after the "
        "fork.");
  return std::unique_lock(mutex_);
}

void Loader::Engine::check_usable() const {
  if (closing_) throw WorkerError("the loader was destroyed while next() waited.");
  if (!fatal_.empty()) throw WorkerError(fatal_);
}

std::optional<Batch> Loader::Engine::next() {
  const auto lock = lock_ours();
  check_usable();
  {
    const std::lock_guard stats(stats_mutex_);
    if (consumer_ != std::this_thread::get_id()) recorder_.called_by(gettid());
    recorder_.turns().called();
  }
  consumer_ = std::this_thread::get_id();
  if (auto_workers_) auto_workers_->called(Clock::now());
  trace_->called();
  const Inside inside(inside_);
  try {
    std::optional<Batch> batch = next_turn();
    end_turn(batch.has_value());
    if (auto_workers_) adapt(batch.has_value());
    return batch;
  } catch (...) {
    end_turn(false);
    throw;
  }
}

void Loader::Engine::end_turn(bool with_batch) {
  trace_->returned();
  const std::lock_guard stats(stats_mutex_);
  recorder_.turns().sampled(std::exchange(sampler_time_, {}));
  if (with_batch && !shortage_.empty()) recorder_.short_of_memory();
  recorder_.turns().returned(with_batch);
}

std::optional<Batch> Loader::Engine::next_turn() {
  if (!in_epoch_) begin_epoch();
  std::optional<Batch> batch = next_batch();
  started_ = batch.has_value();
  if (!batch) {
    in_epoch_ = false;
    ++epoch_;
  }
  return batch;
}

void Loader::Engine::begin_epoch() {
  feed_->start_epoch(epoch_);
  delivered_ = 0;
  feed_dry_ = false;
  in_epoch_ = true;
}

void Loader::Engine::reset() {
  const auto lock = lock_ours();
  if (!in_epoch_) return;
  drop_epoch();
  ++epoch_;
}

void Loader::Engine::set_epoch(std::uint64_t epoch) {
  const auto lock = lock_ours();
  drop_epoch();
  epoch_ = epoch;
}

void Loader::Engine::drop_epoch() {
  if (compactor_) compactor_->clear();
  for (const InFlight& flight : in_flight_) {
    memory_->ring().cancel(flight.slot);
    cancelled_.push_back(flight.slot);
  }
  in_flight_.clear();
  unarmed_.reset();
  pending_ = nullptr;
  in_epoch_ = started_ = false;
  if (auto_workers_) auto_workers_->interrupted();
  drain_cancelled();
}

std::uint64_t Loader::Engine::epoch() const {
  const auto lock = lock_ours();
  return epoch_;
}

bool Loader::Engine::started() const {
  const auto lock = lock_ours();
  return started_;
}

State Loader::Engine::state_dict() const {
  const auto lock = lock_ours();
  State state;
  state.set("version", kStateVersion);
  state.set("epoch", epoch_);
  state.set("seed", options_.seed);
  state.set("batch_size", feed_->max_batch_size());
  if (dataset_) state.set("dataset_size", dataset_->size());
  state.set("in_epoch", in_epoch_);
  if (!in_epoch_) return state;
  state.set("batches", delivered_);
  State position;
  feed_->save(position);
  state.set("position", position);
  return state;
}

void Loader::Engine::load_state_dict(const State& state) {
  const auto lock = lock_ours();
  check_usable();
  const auto expect = [&](const char* key, std::int64_t ours) {
    const std::int64_t saved = state.get_int(key);
    if (saved != ours) throw StateError(fmt::format("the state's {} is {}, this loader's is {}.", key, saved, ours));
  };
  expect("version", kStateVersion);
  expect("batch_size", feed_->max_batch_size());
  if (dataset_) expect("dataset_size", dataset_->size());
  if (state.get_uint("seed") != options_.seed)
    throw StateError(fmt::format("the state's seed is {}, this loader's is {}: batches would differ.",
                                 state.get_uint("seed"), options_.seed));
  const std::uint64_t epoch = state.get_uint("epoch");
  const bool in_epoch = state.get_bool("in_epoch");
  const std::uint64_t batches = in_epoch ? state.get_uint("batches") : 0;
  const bool was_in_epoch = in_epoch_;
  State before;
  if (was_in_epoch) feed_->save(before);
  drop_epoch();
  try {
    if (in_epoch) feed_->load(state.get_state("position"));
  } catch (...) {  // the position stays as it was
    if (was_in_epoch) feed_->load(before);
    in_epoch_ = was_in_epoch;
    feed_dry_ = false;
    throw;
  }
  epoch_ = epoch;
  delivered_ = batches;
  feed_dry_ = false;
  in_epoch_ = in_epoch;
}

std::vector<ClaimantStats> Loader::Engine::counters() const {
  std::vector<ClaimantStats> now;
  const int claimants = settings_.max_workers * options_.threads_per_worker;
  for (int claimant = 0; claimant < claimants; ++claimant) now.push_back(memory_->ring().stats(claimant));
  return now;
}

LoaderStats Loader::Engine::stats() const {
  if (!memory_->ours()) (void)lock_ours();
  LoaderStats stats;
  std::vector<std::int64_t> processes;
  {
    const std::lock_guard lock(stats_mutex_);
    recorder_.fill(stats, counters(), worker_pids_, options_.threads_per_worker);
    processes = processes_;
  }
  stats.num_workers = settings_.kind == WorkerKind::kInline ? 0 : static_cast<int>(stats.workers.size());
  stats.threads_per_worker = options_.threads_per_worker;
  stats.prefetch = depth_;
  stats.usable_cpus = settings_.usable_cpus;
  stats.memory_limit = settings_.memory_limit;
  stats.pss_bytes = read_pss(processes);  // takes milliseconds: next() must not wait for it
  stats.arena_bytes = memory_->arena().committed_bytes();
  stats.batches_held = memory_->held();
  return stats;
}

void Loader::Engine::keep_memory_warm() {
  const auto lock = lock_ours();
  memory_->keep_all_warm();
}

void Loader::Engine::reset_stats() {
  const std::lock_guard lock(stats_mutex_);
  recorder_.reset(counters(), worker_pids_);
}

}  // namespace infeed
