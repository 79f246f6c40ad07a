#pragma once
/// The consumer's side of a loader: arms slots from the feed, takes ready ones, hands batches out, looks after the
/// workers.

#include <poll.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "infeed/loader/loader.h"
#include "loader/auto_workers.h"
#include "loader/batch_memory.h"
#include "loader/compactor.h"
#include "loader/event_fd.h"
#include "loader/feed.h"
#include "loader/pace.h"
#include "loader/recorder.h"
#include "loader/ring_trace.h"
#include "loader/settings.h"
#include "loader/source.h"
#include "memory/limits.h"
#include "worker/pool.h"

namespace infeed {

/// Threads: every public call but size(), stats() and reset_stats() takes mutex_, and next() holds it while it waits.
/// stats() and reset_stats() take stats_mutex_; size() asks the feed and takes none.
class Loader::Engine final : public Loader::Source {
 public:
  Engine(const Dataset* dataset, const Stream* stream, LoaderOptions options);
  ~Engine() override;

  std::optional<Batch> next() override;
  void reset() override;
  void set_epoch(std::uint64_t epoch) override;
  [[nodiscard]] std::uint64_t epoch() const override;
  [[nodiscard]] std::optional<std::int64_t> size() const override { return feed_->size(); }
  [[nodiscard]] State state_dict() const override;
  void load_state_dict(const State& state) override;
  void set_num_workers(int num_workers) override;
  [[nodiscard]] int num_workers() const override;
  [[nodiscard]] LoaderStats stats() const override;
  void reset_stats() override;
  void keep_memory_warm() override;
  [[nodiscard]] bool started() const override;

 private:
  using Clock = std::chrono::steady_clock;

  struct InFlight {
    int slot = 0;
    Work work;
  };

  // engine.cpp: making, epochs, state
  void make_feed();
  [[nodiscard]] std::int64_t largest_batch_rows() const;
  void start_workers();
  [[nodiscard]] std::unique_lock<std::mutex> lock_ours() const;
  void check_usable() const;
  void begin_epoch();
  void drop_epoch();
  [[nodiscard]] std::vector<ClaimantStats> counters() const;

  // worker_count.cpp
  void begin_with_auto(const MachineLimits& limits);
  void make_room_for_auto();
  void resize(int num_workers);
  void adapt(bool with_batch);
  [[nodiscard]] AutoWorkers::Memory memory_for_workers() const;
  void note_processes();

  // arming.cpp: from the feed to the slots
  void top_up();
  void top_up_quietly() noexcept;
  [[nodiscard]] bool draw(Work& work);
  [[nodiscard]] bool arm(const Work& work);
  [[nodiscard]] int rows_per_run(int batch_rows) noexcept;
  void look_at_pace(int claimants) noexcept;
  [[nodiscard]] std::string shortage();
  [[nodiscard]] std::uint64_t batch_estimate() const noexcept;
  [[nodiscard]] int claimant_of_shard(int shard) const;
  [[nodiscard]] std::int64_t stream_shards() const noexcept;
  void drain_cancelled();

  // delivery.cpp: from the slots to the user
  std::optional<Batch> next_turn();
  void end_turn(bool with_batch);
  std::optional<Batch> next_batch();
  std::optional<SourceBatch> next_source();
  Batch hand_out(SourceBatch source);
  static void number_stream_rows(SourceBatch& source);
  void give_up(const SourceBatch& source);
  void look_at_reports(SourceBatch& source);
  void close_gaps(SourceBatch& source) const;
  [[nodiscard]] std::string describe_sample(std::int64_t index) const noexcept;

  // waiting.cpp: until a slot is ready, or something is wrong
  [[nodiscard]] std::size_t wait_for_ready();
  void wait_for_a_drained_slot();
  [[nodiscard]] std::optional<Clock::time_point> deadline() const;
  [[nodiscard]] std::optional<std::size_t> find_ready() const;
  [[nodiscard]] bool spin_for_ready() const;
  void block(std::optional<Clock::time_point> deadline);
  void look_up(bool interrupted);
  void bury_the_dead();
  [[nodiscard]] std::string bury(const Death& death);
  [[nodiscard]] std::string bury_claims(const Death& death);
  void restart(int worker_id, const std::string& what);
  [[nodiscard]] std::string give_up(const Death& death, const std::string& what);
  void check_starts();
  void check_attached(std::chrono::milliseconds slept);
  [[noreturn]] void throw_timeout() const;

  mutable std::mutex mutex_;        ///< all below but what stats_mutex_ guards
  mutable std::mutex stats_mutex_;  ///< recorder_, processes_
  const Dataset* dataset_;
  const Stream* stream_;
  LoaderOptions options_;
  std::unique_ptr<Sampler> own_sampler_;
  std::unique_ptr<Feed> feed_;
  Settings settings_;
  WorkPlan plan_;
  EventFd ready_;
  std::shared_ptr<BatchMemory> memory_;
  std::shared_ptr<RingTrace> trace_;  ///< before pool_: fetches what its workers did last
  std::unique_ptr<WorkerPool> pool_;
  std::atomic<int> depth_{2};                ///< batches in flight; stats() reads it from any thread
  std::optional<AutoWorkers> auto_workers_;  ///< num_workers is to follow the need
  Recorder recorder_;
  std::vector<std::int64_t> processes_;  ///< the loader's own and the workers'
  std::vector<std::int64_t> worker_pids_;
  std::thread::id consumer_{};             ///< the last one in next()
  std::atomic<std::thread::id> inside_{};  ///< the thread in next(), if any
  std::atomic<bool> closing_{false};       ///< the destructor waits for a next() on another thread to leave
  std::unique_ptr<Compactor> compactor_;   ///< on_error skip, where batches stay full

  std::uint64_t epoch_ = 0;
  bool in_epoch_ = false;
  bool started_ = false;
  bool feed_dry_ = false;  ///< the feed has no more to arm, for now
  std::uint64_t next_seq_ = 1;
  std::uint64_t delivered_ = 0;              ///< batches of this epoch with the user
  std::deque<InFlight> in_flight_;           ///< in the order of arming
  std::vector<int> cancelled_;               ///< slots that drain
  Clock::duration sampler_time_{};           ///< of this call of next()
  std::optional<Work> unarmed_;              ///< drawn from the feed, but no slot or memory was free
  std::string shortage_;                     ///< why unarmed_ could not be armed, where it is for want of memory
  std::optional<MemoryLimit> memory_limit_;  ///< as top_up() found it; what it has armed since is in flight
  std::vector<pollfd> polled_;               ///< of block(), kept for its memory
  Clock::time_point looked_up_;              ///< when on_wait was called last
  Pace pace_;
  std::exception_ptr pending_;               ///< met while arming ahead; the next call throws it
  std::uint64_t largest_batch_ = 0;          ///< bytes, of gathered batches so far
  std::chrono::milliseconds unattached_{0};  ///< slept while a spawned worker had not attached
  int restarts_used_ = 0;
  std::vector<bool> lost_;  ///< workers that died and were not replaced
  std::string fatal_;       ///< why no batch can come any more
};

}  // namespace infeed
