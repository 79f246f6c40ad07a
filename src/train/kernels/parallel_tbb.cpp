#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>

#include "train/kernels/parallel.h"

namespace infeed {
namespace {

// One arena a calling thread; oneDNN's loops run in it too when called inside.
thread_local int threads_wanted = 0;  // 0: as many as TBB would use

}  // namespace

void set_num_threads(int num_threads) {
  static std::unique_ptr<tbb::global_control> limit;  // TBB's own limit is one a process
  threads_wanted = std::max(1, num_threads);
  limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                static_cast<std::size_t>(threads_wanted));
}

int num_threads() noexcept { return threads_wanted > 0 ? threads_wanted : tbb::this_task_arena::max_concurrency(); }

namespace kernels {

void watch_forks() {}  // TBB's calling thread does the work that no other takes

void run_chunks(std::int64_t num_chunks, void (*chunk)(void* context, std::int64_t i), void* context) {
  tbb::parallel_for(
      std::int64_t{0}, num_chunks, [=](std::int64_t i) { chunk(context, i); }, tbb::static_partitioner());
}

}  // namespace kernels
}  // namespace infeed
