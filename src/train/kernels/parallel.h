#pragma once
/// One way to use several threads, on the runtime that oneDNN uses: two runtimes in one process fight for the cores.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "infeed/train/parallel.h"

namespace infeed::kernels {

/// Elements below which a loop is not worth a second thread: a parallel region costs about 1 us.
inline constexpr std::int64_t kGrain = 32768;

/// Called before anything runs in parallel, oneDNN included: the child of a later fork computes on the thread that
/// forked, where the runtime would wait for threads that the child does not have.
void watch_forks();

/// Calls `chunk(context, i)` for each i in [0, num_chunks), on several threads. The build picks parallel_omp.cpp,
/// parallel_tbb.cpp or parallel_serial.cpp. `chunk` must not throw.
void run_chunks(std::int64_t num_chunks, void (*chunk)(void* context, std::int64_t i), void* context);

/// Calls `body(i)` for each i in [0, n), on several threads if n > 1.
template <class Body>
void parallel_chunks(std::int64_t n, Body&& body) {
  if (n <= 1) {
    if (n == 1) body(0);
    return;
  }
  using Plain = std::remove_reference_t<Body>;
  void* const context = const_cast<void*>(static_cast<const void*>(std::addressof(body)));
  run_chunks(
      n, [](void* self, std::int64_t i) { (*static_cast<Plain*>(self))(i); }, context);
}

/// Calls `body(first, last)` on pieces of [0, n), none much smaller than `grain`.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t grain, Body&& body) {
  const std::int64_t pieces = std::min<std::int64_t>(num_threads(), n / grain);
  if (pieces <= 1) {
    if (n > 0) body(0, n);
    return;
  }
  parallel_chunks(pieces, [&](std::int64_t i) { body(n * i / pieces, n * (i + 1) / pieces); });
}

}  // namespace infeed::kernels
