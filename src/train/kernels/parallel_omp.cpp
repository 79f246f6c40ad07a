#include <omp.h>
#include <pthread.h>

#include <algorithm>

#include "train/kernels/parallel.h"

namespace infeed {
namespace {

// A fork takes along OpenMP's record of its threads, and none of them: the thread that forked would wait for them
// forever. It computes alone from then on; threads that the child starts get workers of their own.
thread_local bool orphaned = false;

void compute_alone() {
  orphaned = true;
  omp_set_num_threads(1);
}

}  // namespace

void set_num_threads(int num_threads) { omp_set_num_threads(orphaned ? 1 : std::max(1, num_threads)); }

int num_threads() noexcept { return omp_in_parallel() != 0 ? 1 : omp_get_max_threads(); }

namespace kernels {

void watch_forks() { [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, compute_alone); }

void run_chunks(std::int64_t num_chunks, void (*chunk)(void* context, std::int64_t i), void* context) {
  watch_forks();
  const auto threads = static_cast<int>(std::min<std::int64_t>(num_threads(), num_chunks));
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t i = 0; i < num_chunks; ++i) chunk(context, i);
}

}  // namespace kernels
}  // namespace infeed
