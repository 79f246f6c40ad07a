#include "train/kernels/parallel.h"

namespace infeed {

void set_num_threads(int /*num_threads*/) {}

int num_threads() noexcept { return 1; }

namespace kernels {

void watch_forks() {}  // no threads to lose

void run_chunks(std::int64_t num_chunks, void (*chunk)(void* context, std::int64_t i), void* context) {
  for (std::int64_t i = 0; i < num_chunks; ++i) chunk(context, i);
}

}  // namespace kernels
}  // namespace infeed
