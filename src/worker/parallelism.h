#pragma once
/// How many threads oneTBB may run in this process.

namespace infeed {

/// While one lives, oneTBB may run `threads` more than the machine has CPUs: workers get threads of their own, and the
/// user's parallel loops keep theirs. Limits that the user sets by tbb::global_control still hold.
class ExtraParallelism {
 public:
  explicit ExtraParallelism(int threads);
  ~ExtraParallelism();
  ExtraParallelism(const ExtraParallelism&) = delete;
  ExtraParallelism& operator=(const ExtraParallelism&) = delete;

 private:
  int threads_;
};

}  // namespace infeed
