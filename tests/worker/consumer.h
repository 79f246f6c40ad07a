#pragma once
// The smallest consumer over a ring and a pool: arms, waits, takes, buries.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch/layout.h"
#include "memory/arena.h"
#include "ring/ring.h"
#include "worker/pool.h"
#include "worker/test_dataset.h"

namespace infeed::testing {

struct Scene {
  WorkerKind kind = WorkerKind::kInline;
  int workers = 2;
  int threads_per_worker = 1;
  int rows = 16;  ///< of a batch
  bool whole = false;
  bool stream = false;
  int num_shards = 2;
  FaultPolicy on_error = FaultPolicy::kRaise;
  Behaviour behaviour{};
  std::string init;  ///< "log" or "fail", by the way that the kind knows
  std::vector<int> cpu_affinity{};
  std::string executable = TEST_WORKER;
};

/// One batch, with the values of each row.
struct Taken {
  SlotResult result;
  std::vector<std::vector<std::int64_t>> rows;
};

class Consumer {
 public:
  explicit Consumer(const Scene& scene);
  ~Consumer();

  WorkerPool& pool() { return *pool_; }
  Ring& ring() { return ring_; }
  /// Ends the pool, as its owner's destructor would.
  void stop() { pool_.reset(); }

  /// Arms batch `number`: the indices [number * rows, (number + 1) * rows). False if no slot or extent is free.
  bool arm(std::uint64_t number);
  /// Arms a batch of a stream's shard.
  bool arm_shard(int shard, std::int64_t first_row);
  /// The oldest armed batch; nullopt if a worker could not start. Waits without limit: the test's TIMEOUT is the limit.
  std::optional<Taken> take();
  /// Arms and takes `batches` in order, two ahead.
  std::vector<Taken> run(int batches, std::uint64_t first = 0);
  /// Buries and restarts who died; appends to deaths().
  void look_after_workers();

  [[nodiscard]] const std::vector<Death>& deaths() const { return deaths_; }
  [[nodiscard]] std::string start_failure() const;
  [[nodiscard]] ClaimantStats total() const;

 private:
  bool arm(Order order);
  [[nodiscard]] std::vector<std::vector<std::int64_t>> read_rows(const SlotResult& result) const;
  void wait_a_moment();

  Scene scene_;
  TestDataset dataset_;
  TestStream stream_;
  std::unique_ptr<Collate> collate_;
  std::optional<BatchLayout> layout_;
  WorkPlan plan_{};
  int ready_fd_;
  RingConfig config_;
  Arena arena_;
  Ring ring_;
  std::unique_ptr<WorkerPool> pool_;
  std::deque<int> armed_;
  std::uint64_t next_seq_ = 1;
  std::vector<Death> deaths_;
};

/// The rows that batch `number` must have.
[[nodiscard]] std::vector<std::vector<std::int64_t>> expected_rows(const Scene& scene, std::uint64_t number);
[[nodiscard]] std::vector<std::int64_t> expected_row(const Scene& scene, std::int64_t index);

}  // namespace infeed::testing
