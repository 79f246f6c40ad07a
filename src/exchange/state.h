#pragma once
/// The consumer's own memory.

#include <poll.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "exchange/line.h"
#include "loader/cpu_times.h"
#include "loader/ring_trace.h"
#include "loader/turn_clock.h"

namespace infeed {

/// Threads: all but `generation` under `mutex`.
struct Exchange::State {
  struct Flight {
    int slot = 0;
    int worker = 0;
  };

  explicit State(const ExchangeOptions& given);

  [[nodiscard]] ExchangeLine& open() const;  ///< throws Error once closed
  [[nodiscard]] const Flight& flight(std::uint64_t number) const;
  void check_worker(int worker) const;
  void post(std::uint64_t number, int worker);  ///< what pack_task() left in `words`
  void check_memory_limit(std::size_t nbytes) const;
  [[nodiscard]] ExchangeMessage lend(int extent, std::size_t nbytes);
  void give_back(const SlotResult& result) noexcept;
  void drain();
  void cancel(std::uint64_t number);
  void trim_for_held();
  void fill_turns(LoaderStats& stats) const;  ///< stats.cpp

  // waiting.cpp
  [[nodiscard]] std::optional<std::size_t> find_ready(std::span<const std::uint64_t> numbers) const;
  [[nodiscard]] std::optional<std::size_t> spin_for_ready(std::span<const std::uint64_t> numbers) const;

  mutable std::mutex mutex;
  const ExchangeOptions options;
  const std::uint64_t generation;  ///< process_generation() of the maker
  std::shared_ptr<ExchangeLine> line;
  std::shared_ptr<RingTrace> trace;
  std::shared_ptr<std::atomic<std::uint64_t>> held_bytes = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::uint64_t last_seq = 0;
  std::unordered_map<std::uint64_t, Flight> flights;  ///< by task number
  std::vector<int> draining;                          ///< slots of cancelled tasks that a worker has in hand
  std::vector<std::int64_t> words;                    ///< of post(), kept for its memory
  bool waiting = false;                               ///< the last wait() found nothing
  std::uint64_t waits = 0, wait_ns = 0;
  TurnClock turns;
  std::uint64_t batches = 0, samples = 0;  ///< of turns that ended with one
  pid_t trainer = 0;                       ///< the first thread that began a turn
  CpuTimes trainer_base;                   ///< as they were then
};

}  // namespace infeed
