#pragma once
/// Claim, read, write, publish: the same for every kind of worker.

#include <memory>

#include "memory/arena.h"
#include "ring/ring.h"
#include "worker/plan.h"

namespace infeed {

/// One claimant. One thread.
class WorkerLoop {
 public:
  /// `ready_eventfd`: the consumer's doorbell.
  WorkerLoop(Ring& ring, const Arena& arena, const WorkPlan& plan, int claimant, int ready_eventfd);
  ~WorkerLoop();
  WorkerLoop(const WorkerLoop&) = delete;
  WorkerLoop& operator=(const WorkerLoop&) = delete;

  /// Claims a run, fills it and publishes it; false if there was none. Exceptions of the dataset become row reports.
  /// A stop of the ring is seen between two rows; the run is then left as it is.
  bool step();
  /// Steps until the ring stops or this claimant is retired, sleeping in between. `alive` is asked before each sleep,
  /// ten times a second where nothing rings: false ends the loop.
  void run(int spin_us, bool (*alive)() = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace infeed
