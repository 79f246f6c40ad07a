#include <omp.h>

#include <algorithm>

#include "train/kernels/parallel.h"

namespace infeed {

void set_num_threads(int num_threads) { omp_set_num_threads(std::max(1, num_threads)); }

int num_threads() noexcept { return omp_in_parallel() != 0 ? 1 : omp_get_max_threads(); }

namespace kernels {

void run_chunks(std::int64_t num_chunks, void (*chunk)(void* context, std::int64_t i), void* context) {
  const auto threads = static_cast<int>(std::min<std::int64_t>(num_threads(), num_chunks));
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t i = 0; i < num_chunks; ++i) chunk(context, i);
}

}  // namespace kernels
}  // namespace infeed
