#include "worker/worker.h"

#include <unistd.h>

#include <exception>
#include <thread>

#include "worker/fault.h"
#include "worker/loop.h"
#include "worker/parent_guard.h"
#include "worker/process.h"

namespace infeed {
namespace {

void prepare(const WorkerSeat& seat) {
  name_this_thread(worker_name(seat.info.id));
  if (seat.cpu >= 0) bind_this_thread(seat.cpu);
  if (seat.init != nullptr && *seat.init) (*seat.init)(seat.info);
}

void work(const WorkerSeat& seat, int thread, Ring& ring, const Arena& arena, const WorkPlan& plan) {
  WorkerLoop loop(ring, arena, plan, seat.first_claimant() + thread, seat.ready_eventfd);
  loop.run(seat.spin_us, parent_alive);
}

}  // namespace

int run_worker(const WorkerSeat& seat, Ring& ring, const Arena& arena, const WorkPlan& plan) noexcept {
  try {
    prepare(seat);
    // A thread that cannot be started, or a loop that throws, ends the process: its claims are then buried.
    std::vector<std::thread> others;
    for (int thread = 1; thread < seat.threads; ++thread)
      others.emplace_back([&, thread] { work(seat, thread, ring, arena, plan); });
    work(seat, 0, ring, arena, plan);
    for (std::thread& other : others) other.join();
  } catch (...) {
    ::_exit(report_failed_start(seat, ring, std::current_exception()));
  }
  return parent_alive() ? kExitLeft : kExitOrphaned;
}

int report_failed_start(const WorkerSeat& seat, Ring& ring, const std::exception_ptr& error) noexcept {
  const Fault fault = capture_fault(error);
  ring.fail_start(seat.first_claimant(), fault.code, fault.text);
  ring_consumer(seat.ready_eventfd);
  return kExitStartFailed;
}

void ring_consumer(int ready_eventfd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(ready_eventfd, &one, sizeof one);
}

}  // namespace infeed
