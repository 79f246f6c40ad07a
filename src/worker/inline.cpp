#include "worker/inline.h"

#include <exception>

#include "worker/worker.h"

namespace infeed {

InlinePool::InlinePool(const PoolOptions& options, Ring& ring, const Arena& arena, const WorkPlan& plan) {
  const WorkerSeat seat{.info = {.id = 0, .num_workers = 1, .seed = plan.seed}, .ready_eventfd = options.ready_eventfd};
  try {
    if (options.worker_init) options.worker_init(seat.info);
    loop_ = std::make_unique<WorkerLoop>(ring, arena, plan, 0, options.ready_eventfd);
  } catch (...) {
    report_failed_start(seat, ring, std::current_exception());
  }
}

}  // namespace infeed
