#pragma once
/// A consumer and a claimant in full, for tests that run many batches while claimants die.

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "memory/arena.h"
#include "ring/ring.h"
#include "ring/steps.h"

namespace infeed {

struct FeedOptions {
  int num_workers = 3;
  int depth = 2;
  int num_extents = 6;
  int rows = 100;
  bool whole = false;
  bool assign = false;       ///< whole: round robin instead of anyone
  double cancel_chance = 0;  ///< per batch: abandon all that is armed
  double hold_chance = 0.5;  ///< keep a batch for a while, give it back in any order
  bool overcommit = false;   ///< whole: arm more than there are extents
  unsigned seed = 1;
};

/// What a row holds: written in two halves, so that a half-written row shows.
struct Cell {
  std::uint64_t seq;
  std::int64_t index;
};
inline constexpr std::uint64_t kPoison = 0xdddddddddddddddd;

inline void write_rows(const Arena& arena, const Claim& claim) {
  auto* cells = reinterpret_cast<Cell*>(arena.extent(claim.extent)) + claim.first_row;
  for (int row = 0; row < claim.rows; ++row) {
    cells[row].seq = claim.seq;
    if (row == claim.rows / 2) ring_step(RingStep::kMidRows);
    cells[row].index = claim.indices.empty() ? 0 : claim.indices[static_cast<std::size_t>(row)];
  }
}

/// The claimant's loop.
inline void claim_until_stopped(Ring& ring, const Arena& arena, int claimant, int ready_event) {
  for (;;) {
    const auto seen = ring.bell();
    if (ring.stopping()) return;
    if (const auto claim = ring.claim(claimant)) {
      write_rows(arena, *claim);
      ring.publish(*claim, ready_event);
    } else {
      ring.wait_for_work(claimant, seen, 5, 50);
    }
  }
}

/// Arms, waits, checks every row of every batch, holds some, releases in random order. Throws on the first wrong row,
/// on a late write into memory that is free or held, and where a batch takes too long.
class Feed {
 public:
  explicit Feed(const FeedOptions& options)
      : options_(options),
        config_{.num_slots = options.depth + options.num_workers,
                .max_rows = options.rows,
                .max_claimants = options.num_workers,
                .num_extents = options.num_extents},
        arena(Arena::create({.control_bytes = Ring::bytes(config_),
                             .extent_bytes = sizeof(Cell) * static_cast<std::size_t>(options.rows),
                             .num_extents = options.num_extents,
                             .min_extents = 1})),
        ring(Ring::format(arena.control(), config_)),
        event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        random_(options.seed) {
    for (int extent = 0; extent < options.num_extents; ++extent) poison(extent);
  }
  ~Feed() { close(event); }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// `look` is called whenever the consumer looks around: deaths are seen to there.
  void run(int batches, const std::function<void()>& look) {
    while (delivered < batches) {
      arm_all();
      if (armed_.empty()) {
        make_room(look);
        continue;
      }
      if (chance(options_.cancel_chance)) {
        abandon();
        continue;
      }
      const std::ptrdiff_t next = wait_for_next(look);
      const Armed armed = armed_[static_cast<std::size_t>(next)];
      armed_.erase(armed_.begin() + next);
      accept(ring.take(armed.slot), armed);
      look();
    }
    abandon();
    while (!draining_.empty()) {
      wait_for(draining_.front(), look);
      reap();
    }
    while (!held_.empty()) give_back(0);
  }

  [[nodiscard]] bool chance(double probability) {
    return std::uniform_real_distribution<>(0, 1)(random_) < probability;
  }
  [[nodiscard]] int below(int n) { return std::uniform_int_distribution<>(0, n - 1)(random_); }

 private:
  struct Armed {
    int slot;
    std::uint64_t seq;
    std::vector<std::int64_t> indices;
  };
  struct Held {
    int extent;
    Armed armed;
  };

  FeedOptions options_;
  RingConfig config_;

 public:
  Arena arena;
  Ring ring;
  int event;
  int delivered = 0, cancelled = 0;

 private:
  [[nodiscard]] Cell* cells(int extent) const { return reinterpret_cast<Cell*>(arena.extent(extent)); }
  void poison(int extent) const {
    std::memset(arena.extent(extent), 0xdd, sizeof(Cell) * static_cast<std::size_t>(options_.rows));
  }

  void check(bool good, const char* what, std::uint64_t seq, int row) const {
    if (!good) throw std::runtime_error(fmt::format("seed {}, batch {}, row {}: {}", options_.seed, seq, row, what));
  }
  void check_rows(int extent, const Armed& armed, const char* what) const {
    for (int row = 0; row < options_.rows; ++row) {
      const Cell& cell = cells(extent)[row];
      check(cell.seq == armed.seq && cell.index == armed.indices[static_cast<std::size_t>(row)], what, armed.seq, row);
    }
  }
  void check_poison(int extent) const {
    for (int row = 0; row < options_.rows; ++row)
      check(cells(extent)[row].seq == kPoison, "written while free", 0, row);
  }

  /// As many batches as depth, slots and extents allow.
  void arm_all() {
    while (static_cast<int>(armed_.size()) < options_.depth) {
      Order order{.seq = seq_ + 1, .rows = options_.rows, .whole = options_.whole};
      if (!options_.whole && (order.extent = ring.acquire_extent()) == kNoExtent) break;
      if (!options_.whole) check_poison(order.extent);
      if (options_.whole && !options_.overcommit &&
          ring.free_extents() <= static_cast<int>(armed_.size() + draining_.size()))
        break;
      if (options_.assign) order.assigned = static_cast<int>(seq_ % static_cast<std::uint64_t>(options_.num_workers));
      std::vector<std::int64_t> indices(static_cast<std::size_t>(options_.rows));
      std::iota(indices.begin(), indices.end(), static_cast<std::int64_t>(seq_) * 1000);
      order.indices = indices;
      const int slot = ring.arm(order);
      if (slot < 0) {
        ring.release_extent(order.extent);
        break;
      }
      armed_.push_back({slot, ++seq_, std::move(indices)});
      options_.whole ? ring.ring_workers(true) : ring.ring_workers(false, ring.open_runs());
    }
  }

  /// Nothing could be armed: slots drain, or the extents are held.
  void make_room(const std::function<void()>& look) {
    if (!held_.empty()) give_back(0);
    if (!draining_.empty()) wait_for(draining_.front(), look);
    reap();
  }

  /// Place in armed_ of the batch to deliver. In order; where extents are overcommitted any that is ready, since later
  /// batches may have bound all extents before the oldest found one.
  std::ptrdiff_t wait_for_next(const std::function<void()>& look) {
    const auto last = options_.overcommit ? armed_.end() : armed_.begin() + 1;
    auto next = armed_.end();
    wait_until(
        [&] {
          next = std::find_if(armed_.begin(), last, [this](const Armed& armed) { return ring.ready(armed.slot); });
          return next != last;
        },
        look);
    return next - armed_.begin();
  }

  void wait_for(int slot, const std::function<void()>& look) {
    wait_until([&] { return ring.ready(slot); }, look);
  }

  void wait_until(const std::function<bool()>& ready, const std::function<void()>& look) {
    const auto start = std::chrono::steady_clock::now();
    while (!ready()) {
      ring.begin_wait();
      pollfd entry{event, POLLIN, 0};
      if (!ready()) poll(&entry, 1, 2);
      ring.end_wait();
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = read(event, &count, sizeof count);
      look();
      if (options_.overcommit && !held_.empty()) give_back(below(static_cast<int>(held_.size())));
      check(std::chrono::steady_clock::now() - start < std::chrono::seconds(30), "never became ready", seq_, -1);
    }
  }

  void accept(const SlotResult& result, const Armed& armed) {
    check(result.seq == armed.seq && result.indices == armed.indices && result.rows == options_.rows, "another batch",
          armed.seq, -1);
    check(result.extent != kNoExtent, "without extent", armed.seq, -1);
    check_rows(result.extent, armed, "wrong when delivered");
    ++delivered;
    held_.push_back({result.extent, armed});
    const int most = std::max(0, options_.num_extents - options_.depth - options_.num_workers / 2);
    while (!held_.empty() && (static_cast<int>(held_.size()) > most || !chance(options_.hold_chance))) {
      give_back(below(static_cast<int>(held_.size())));
    }
    reap();
  }

  void give_back(int place) {
    const Held held = held_[static_cast<std::size_t>(place)];
    held_.erase(held_.begin() + place);
    check_rows(held.extent, held.armed, "changed while held");
    poison(held.extent);
    ring.release_extent(held.extent);
  }

  void abandon() {
    for (const Armed& armed : armed_) {
      ring.cancel(armed.slot);
      draining_.push_back(armed.slot);
      ++cancelled;
    }
    armed_.clear();
    reap();
  }

  /// Slots that have drained are free again, and so are their extents.
  void reap() {
    for (std::size_t i = 0; i < draining_.size();) {
      if (!ring.ready(draining_[i])) {
        ++i;
        continue;
      }
      const int extent = ring.take(draining_[i]).extent;
      if (extent != kNoExtent) poison(extent);
      ring.release_extent(extent);
      draining_.erase(draining_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  std::mt19937 random_;
  std::deque<Armed> armed_;
  std::vector<int> draining_;
  std::deque<Held> held_;
  std::uint64_t seq_ = 0;
};

}  // namespace infeed
