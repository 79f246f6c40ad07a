#include "infeed/exchange/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "exchange/state.h"
#include "exchange/task.h"
#include "infeed/base/error.h"
#include "memory/fork_watch.h"

// A task is a whole batch of the ring, assigned to its worker; its "rows" are the words of task.h.

namespace infeed {
namespace {

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Counts a message's bytes as long as it is held.
struct Loan {
  std::shared_ptr<void> memory;
  std::shared_ptr<std::atomic<std::uint64_t>> held_bytes;
  std::size_t nbytes;
  Loan(std::shared_ptr<void> owner, std::shared_ptr<std::atomic<std::uint64_t>> counter, std::size_t size)
      : memory(std::move(owner)), held_bytes(std::move(counter)), nbytes(size) {
    held_bytes->fetch_add(nbytes, std::memory_order_relaxed);
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() { held_bytes->fetch_sub(nbytes, std::memory_order_relaxed); }
};

}  // namespace

Exchange::State::State(const ExchangeOptions& given)
    : options(given), generation(process_generation()), line(std::make_shared<ExchangeLine>(given)) {
  trace_by_environment();
  trace = RingTrace::make(line->memory(), 1);
}

ExchangeLine& Exchange::State::open() const {
  if (!line) throw Error("the exchange is closed.");
  return *line;
}

const Exchange::State::Flight& Exchange::State::flight(std::uint64_t number) const {
  const auto found = flights.find(number);
  if (found == flights.end()) throw Error(fmt::format("task {} is not in flight.", number));
  return found->second;
}

void Exchange::State::check_worker(int worker) const {
  if (worker < 0 || worker >= options.num_workers)
    throw ConfigError(
        fmt::format("worker {} of {}: it must be in [0, {}).", worker, options.num_workers, options.num_workers));
}

void Exchange::State::post(std::uint64_t number, int worker) {
  Ring& ring = open().ring();
  if (worker != kAnyWorker) check_worker(worker);
  drain();
  const auto rows = static_cast<std::size_t>(ring.config().max_rows);
  if (words.size() > rows)
    throw ConfigError(
        fmt::format("task {} takes {} words of 8 bytes, the largest may take {}. Make it smaller, or "
                    "raise RLIMIT_AS (ulimit -v) where that is set.",
                    number, words.size() - 1, rows - 1));
  if (flights.contains(number)) throw ConfigError(fmt::format("task {} is in flight already.", number));
  const int slot = ring.arm({.seq = last_seq + 1,
                             .number = number,
                             .indices = words,
                             .rows = static_cast<int>(words.size()),
                             .whole = true,
                             .assigned = worker});
  if (slot < 0)
    throw Error(fmt::format("no slot is free for task {}: {} tasks are in flight, and {} cancelled ones run still.",
                            number, flights.size(), draining.size()));
  ++last_seq;
  trace->armed(last_seq, number, 0);
  flights.emplace(number, Flight{slot, worker});
  worker == kAnyWorker ? ring.ring_workers(false) : ring.ring_claimant(worker);
}

void Exchange::State::check_memory_limit(std::size_t nbytes) const {
  const std::uint64_t held = held_bytes->load(std::memory_order_relaxed);
  if (options.memory_limit == 0 || held + nbytes <= options.memory_limit) return;
  throw MemoryError(fmt::format(
      "{} batches of together {:.1f} MiB are held; one of {:.1f} MiB more would exceed the memory_limit of {:.0f} MiB. "
      "Drop some of them, or raise memory_limit.",
      line->memory()->held(), mebibytes(held), mebibytes(nbytes), mebibytes(options.memory_limit)));
}

ExchangeMessage Exchange::State::lend(int extent, std::size_t nbytes) {
  const std::shared_ptr<BatchMemory>& memory = line->memory();
  // The last extents serve the tasks in flight: what is held from here on is copied.
  const bool scarce = memory->ring().free_extents() <= options.num_slots;
  std::vector<NamedArray> bytes{
      {{}, ArrayView(memory->arena().extent(extent), DType::kUInt8, {static_cast<std::int64_t>(nbytes)})}};
  std::shared_ptr<void> owner;
  try {
    owner = scarce ? memory->copy_out(extent, bytes) : memory->lend(extent);
  } catch (...) {
    memory->ring().release_extent(extent);
    throw;
  }
  return {std::make_shared<Loan>(std::move(owner), held_bytes, nbytes), {bytes[0].array.data, nbytes}};
}

void Exchange::State::give_back(const SlotResult& result) noexcept {
  if (result.extent == kNoExtent) return;
  line->memory()->touch(result.extent, std::max<std::size_t>(result.nbytes, 1));
  line->ring().release_extent(result.extent);
}

// Slots of cancelled tasks whose worker is done with them.
void Exchange::State::drain() {
  std::erase_if(draining, [this](int slot) {
    if (!line->ring().ready(slot)) return false;
    give_back(line->ring().take(slot));
    return true;
  });
}

void Exchange::State::cancel(std::uint64_t number) {
  const auto found = flights.find(number);
  if (found == flights.end()) return;
  const int slot = found->second.slot;
  flights.erase(found);
  line->ring().cancel(slot);
  draining.push_back(slot);
  drain();
}

// Messages outlive the exchange in their extents; the memory of the others is of no more use.
void Exchange::State::trim_for_held() {
  line->memory()->serve_no_more();
  if (line->memory()->held() == 0) return;  // all of it goes with the arena
  for (int extent = 0; extent < line->arena().num_extents(); ++extent) {
    if (!line->memory()->is_warm(extent) || !line->ring().acquire_extent(extent)) continue;
    line->arena().punch(extent);
  }
}

Exchange::Exchange(const ExchangeOptions& options) : state_(std::make_unique<State>(options)) {}

Exchange::~Exchange() {
  if (process_generation() != state_->generation)
    static_cast<void>(state_.release());  // intentional: a worker may stand on it, and another thread may have its lock
  else
    close();
}

Exchange::State& Exchange::ours() const {
  if (process_generation() != state_->generation)
    throw Error("this exchange belongs to the process that made it; a forked child cannot use it.");
  return *state_;
}

ExchangeHandle Exchange::handle() const {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  static_cast<void>(state.open());
  return ExchangeHandle(state.line);
}

void Exchange::post(std::uint64_t number, int worker, std::span<const std::int64_t> indices) {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  pack_task(indices, state.words);
  state.post(number, worker);
}

void Exchange::post(std::uint64_t number, int worker, std::span<const std::byte> bytes) {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  pack_task(bytes, state.words);
  state.post(number, worker);
}

std::size_t Exchange::max_task_words() const {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  return static_cast<std::size_t>(state.open().ring().config().max_rows) - 1;
}

bool Exchange::ready(std::uint64_t number) const {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  return state.open().ring().ready(state.flight(number).slot);
}

std::optional<std::size_t> Exchange::first_ready(std::span<const std::uint64_t> numbers) const {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  return state.find_ready(numbers);
}

ExchangeMessage Exchange::take(std::uint64_t number) {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  ExchangeLine& line = state.open();
  const State::Flight flight = state.flight(number);
  if (!line.ring().ready(flight.slot)) throw Error(fmt::format("task {} is not ready: wait for it first.", number));
  const auto bounded = [&](std::size_t nbytes) { return std::min(nbytes, line.arena().extent_bytes()); };
  state.check_memory_limit(bounded(line.ring().result_bytes(flight.slot)));
  const SlotResult result = line.ring().take(flight.slot);
  state.trace->taken(result.seq);
  state.flights.erase(number);
  state.drain();
  if (result.extent == kNoExtent)
    throw WorkerError(fmt::format(
        "worker {} published task {} without memory of its own: its control block is damaged.", flight.worker, number));
  const std::size_t nbytes = bounded(result.nbytes);
  line.memory()->touch(result.extent, std::max<std::size_t>(nbytes, 1));
  if (!state.options.keep_memory) line.memory()->trim();
  return state.lend(result.extent, nbytes);
}

std::vector<std::uint64_t> Exchange::bury(int worker) {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  Ring& ring = state.open().ring();
  state.check_worker(worker);
  std::vector<std::uint64_t> unfinished;
  for (const auto& [number, flight] : state.flights)
    if (flight.worker == worker ? !ring.ready(flight.slot) : ring.holds(flight.slot, worker))
      unfinished.push_back(number);
  ring.bury(worker);
  state.drain();
  ring.ring_workers(true);  // others may have waited for its extents
  return unfinished;
}

void Exchange::retire(int worker) {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  Ring& ring = state.open().ring();
  state.check_worker(worker);
  ring.retire(worker, true);
  ring.ring_workers(true);  // the flag alone wakes nobody
}

void Exchange::recruit(int worker) {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  state.check_worker(worker);
  state.open().ring().retire(worker, false);
}

void Exchange::cancel(std::uint64_t number) {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  static_cast<void>(state.open());
  state.cancel(number);
}

void Exchange::stop() {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  state.open().ring().request_stop();
}

void Exchange::close() noexcept {
  if (process_generation() != state_->generation) return;
  const std::lock_guard lock(state_->mutex);
  if (!state_->line) return;
  state_->line->ring().request_stop();
  while (!state_->flights.empty()) state_->cancel(state_->flights.begin()->first);
  state_->trim_for_held();
  state_->trace->returned();  // the next() that closes it ends here for the trace
  state_->trace->drain();
  state_->trace.reset();
  state_->line.reset();
}

int Exchange::held() const {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  return state.open().memory()->held();
}

std::pair<std::uint64_t, std::int64_t> Exchange::sample_in_hand(int worker) const {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  ExchangeLine& line = state.open();
  state.check_worker(worker);
  const ClaimantStats now = line.ring().stats(worker);
  return {now.batch, now.index};
}

}  // namespace infeed
