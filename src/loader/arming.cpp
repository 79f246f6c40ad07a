#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "infeed/base/error.h"
#include "loader/engine.h"

namespace infeed {
namespace {

// Page tables, stacks and whatever else a batch costs beside its own pages.
constexpr std::uint64_t kMemoryMargin = 16 << 20;

constexpr std::uint64_t kRunNs = 12'000;    // a claim and its publication cost 0.1 to 0.5 us where workers contend
constexpr int kClaimantsAsked = 4;          // each is two cache lines that another core writes,
constexpr std::uint64_t kArmsPerLook = 16;  // and misses when it writes them again

}  // namespace

bool Loader::Engine::draw(Work& work) {
  const Clock::time_point begin = Clock::now();
  const bool drawn = feed_->next(work);
  const Clock::time_point end = Clock::now();
  sampler_time_ += end - begin;
  trace_->drew(monotonic_ns(begin), monotonic_ns(end));
  return drawn;
}

// Arms as many batches as the depth, the slots and the memory allow.
void Loader::Engine::top_up() {
  drain_cancelled();
  bool armed = false;
  shortage_.clear();
  memory_limit_.reset();
  while (!feed_dry_ && std::cmp_less(in_flight_.size(), depth_.load())) {
    if (!unarmed_) {
      Work work;
      if (!draw(work)) {
        feed_dry_ = true;
        break;
      }
      unarmed_ = std::move(work);
    }
    if (!arm(*unarmed_)) break;
    unarmed_.reset();
    armed = true;
  }
  if (armed) pool_->notify(memory_->ring().open_runs());
}

// After a batch was handed out: an error must not take it away again.
void Loader::Engine::top_up_quietly() noexcept {
  try {
    top_up();
  } catch (...) {
    pending_ = std::current_exception();
  }
}

bool Loader::Engine::arm(const Work& work) {
  Ring& ring = memory_->ring();
  shortage_ = shortage();
  if (!shortage_.empty()) return false;
  Order order;
  order.seq = next_seq_;
  order.epoch = epoch_;
  order.number = work.number;
  order.indices = work.indices;
  order.rows = work.rows;
  order.whole = settings_.whole;
  if (work.shard >= 0) {
    order.shard = work.shard;
    order.num_shards = static_cast<int>(stream_shards());
    order.first_row = work.begin;
    order.assigned = claimant_of_shard(work.shard);
  }
  if (!settings_.whole) {
    order.rows_per_run = rows_per_run(work.rows);
    order.extent = ring.acquire_extent();
    if (order.extent == kNoExtent) return false;
    memory_->touch(order.extent, settings_.layout->nbytes(work.rows));
  }
  const int slot = ring.arm(order);
  if (slot < 0) {
    ring.release_extent(order.extent);
    return false;
  }
  trace_->armed(next_seq_, work.number, epoch_);
  ++next_seq_;
  in_flight_.push_back({.slot = slot, .work = work});
  return true;
}

// Cheap rows are claimed by the handful, or the claims would cost more than the rows; costly ones one by one. Runs are of
// one size, and so short that it does not matter who gets the last one.
int Loader::Engine::rows_per_run(int batch_rows) noexcept {
  const int claimants = std::max(1, pool_->num_workers() * options_.threads_per_worker);
  if (next_seq_ % kArmsPerLook == 0) look_at_pace(std::min(kClaimantsAsked, claimants));
  const auto rows = static_cast<std::uint64_t>(batch_rows);
  const std::uint64_t handful = std::clamp<std::uint64_t>(kRunNs / pace_.row_ns(), 1, rows);
  const std::uint64_t runs = (rows + handful - 1) / handful;
  return static_cast<int>((rows + runs - 1) / runs);
}

void Loader::Engine::look_at_pace(int claimants) noexcept {
  ClaimantStats sum;
  for (int claimant = 0; claimant < claimants; ++claimant) {
    const ClaimantStats stats = memory_->ring().stats(claimant);
    sum.rows += stats.rows;
    sum.busy_ns += stats.busy_ns;
  }
  pace_.look(sum);
}

std::int64_t Loader::Engine::stream_shards() const noexcept {
  return options_.stream_shards > 0 ? options_.stream_shards : std::max(1, options_.num_workers);
}

// The first thread of the shard's own worker: it keeps the shard's reader open.
int Loader::Engine::claimant_of_shard(int shard) const {
  const int workers = std::max(1, pool_->num_workers());
  for (int step = 0; step < workers; ++step) {
    const int worker = (shard + step) % workers;
    if (!lost_[static_cast<std::size_t>(worker)]) return worker * options_.threads_per_worker;
  }
  return kAnyone;
}

std::uint64_t Loader::Engine::batch_estimate() const noexcept {
  return std::max(settings_.batch_bytes, largest_batch_);
}

// What stands in the way of one more batch; empty: nothing. Only the user can cure it, by dropping batches, if nothing
// is in flight.
std::string Loader::Engine::shortage() {
  const Ring& ring = memory_->ring();
  const int spare = compactor_ ? 1 : 0;  // the compactor's output
  const auto pending = in_flight_.size() + cancelled_.size() + static_cast<std::size_t>(spare);
  const auto held = static_cast<std::uint64_t>(memory_->held());
  const int unbound = settings_.whole ? static_cast<int>(in_flight_.size() + cancelled_.size()) : 0;
  if (ring.free_extents() <= unbound + spare)
    return fmt::format("all {} extents are taken: {} batches are held. Drop some of them.", ring.config().num_extents,
                       held);
  const std::uint64_t one = batch_estimate();
  const double one_mib = static_cast<double>(one) / (1 << 20);
  if (settings_.memory_limit > 0) {
    if ((held + pending + 1) * one <= settings_.memory_limit) return {};
    return fmt::format(
        "{} batches of {:.1f} MiB are held and fill the memory_limit of {:.0f} MiB. Drop some of them, or raise "
        "memory_limit.",
        held, one_mib, static_cast<double>(settings_.memory_limit) / (1 << 20));
  }
  if (one == 0 || !memory_->next_is_cold()) return {};
  if (!memory_limit_) memory_limit_ = read_memory_limit();
  // What is in flight may not have touched its memory yet: it counts as a whole.
  const std::uint64_t needed = (pending + 1) * one + kMemoryMargin;
  if (!memory_limit_->memory_left || *memory_limit_->memory_left >= needed) return {};
  return fmt::format(
      "one more batch of {:.1f} MiB does not fit: {} leaves {:.0f} MiB, and {} MiB must stay free; {} batches are "
      "held. {}.",
      one_mib, memory_limit_->memory_source, static_cast<double>(*memory_limit_->memory_left) / (1 << 20),
      kMemoryMargin >> 20, held, held > 0 ? "Drop some of them" : "Free memory, or raise that limit");
}

// Slots of a dropped epoch come home when their last run ends.
void Loader::Engine::drain_cancelled() {
  Ring& ring = memory_->ring();
  std::erase_if(cancelled_, [&](int slot) {
    if (!ring.ready(slot)) return false;
    const SlotResult result = ring.take(slot);
    if (result.extent == kNoExtent) return true;
    memory_->touch(result.extent, std::max<std::size_t>(result.nbytes, settings_.batch_bytes));
    ring.release_extent(result.extent);
    return true;
  });
}

}  // namespace infeed
