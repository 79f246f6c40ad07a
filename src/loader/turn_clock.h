#pragma once
/// Where the consumer's time goes, turn by turn: next() waits, draws and hands over; between two calls the trainer works.

#include <array>
#include <chrono>
#include <cstdint>

#include "infeed/loader/stats.h"

namespace infeed {

/// Threads: one at a time, or under the owner's lock.
class TurnClock {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  /// next() begins. An end of the turn before that was never told counts as this moment.
  void called(Clock::time_point now = Clock::now()) noexcept;
  /// next() begins to wait for data; it is told again as waited(). Outside of a turn nothing counts.
  void wait_began(Clock::time_point now = Clock::now()) noexcept { waiting_since_ = now; }
  void waited(Duration time) noexcept;
  void sampled(Duration time) noexcept;
  /// next() ends, with a batch or without one.
  void returned(bool with_batch, Clock::time_point now = Clock::now()) noexcept;
  /// Counts anew. The next call begins.
  void reset() noexcept { *this = TurnClock(); }

  /// The times of `stats`, and how uneven they were. A wait that is going on counts up to `now`.
  void fill(LoaderStats& stats, Clock::time_point now = Clock::now()) const noexcept;

 private:
  /// Turns by the power of two of the nanoseconds that they lost.
  struct Bin {
    std::uint64_t turns = 0;
    double lost_s = 0;
  };
  [[nodiscard]] double share_of_worst_tenth() const noexcept;

  bool started_ = false;
  bool inside_ = false;
  Clock::time_point first_{};          ///< call
  Clock::time_point last_{};           ///< call or return
  Clock::time_point waiting_since_{};  ///< zero: not waiting
  Duration inside_time_{}, trainer_time_{}, waited_{}, sampled_{};
  Duration lost_now_{};  ///< of this turn: waited and sampled
  Duration longest_{};
  std::uint64_t waits_ = 0;
  bool waited_now_ = false;
  std::array<Bin, 64> bins_{};
};

}  // namespace infeed
