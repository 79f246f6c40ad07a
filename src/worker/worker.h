#pragma once
/// The life of one worker process, from its first own instruction to its exit code.

#include <cstdint>
#include <functional>
#include <vector>

#include "infeed/loader/options.h"
#include "memory/arena.h"
#include "ring/ring.h"
#include "worker/plan.h"

namespace infeed {

/// Who a worker is. Borrowed: `init`.
struct WorkerSeat {
  WorkerInfo info;
  int threads = 1;  ///< claimants of this process
  int spin_us = 0;
  int ready_eventfd = -1;
  int cpu = -1;  ///< -1: unbound
  const std::function<void(const WorkerInfo&)>* init = nullptr;

  [[nodiscard]] int first_claimant() const noexcept { return info.id * threads; }
};

/// Binds, initialises, starts `threads - 1` further threads and works until the ring stops, the seat is retired or the
/// parent dies. Returns the exit code (parent_guard.h). The process must be guarded already.
[[nodiscard]] int run_worker(const WorkerSeat& seat, Ring& ring, const Arena& arena, const WorkPlan& plan) noexcept;

/// Leaves `error`'s text in the ring and wakes the consumer; returns kExitStartFailed.
int report_failed_start(const WorkerSeat& seat, Ring& ring, const std::exception_ptr& error) noexcept;

/// Rings the consumer's doorbell, whether it sleeps or not.
void ring_consumer(int ready_eventfd) noexcept;

}  // namespace infeed
