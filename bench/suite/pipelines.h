#pragma once
/// Five training jobs, each bound by something else: what the tuner is judged by.

#include <memory>
#include <string>
#include <vector>

#include "bed.h"
#include "infeed/dataset/dataset.h"
#include "infeed/tuner/sweep.h"

namespace bench {

struct Pipeline {
  std::string name;
  std::shared_ptr<const infeed::Dataset> dataset;
  infeed::WorkerKind kind = infeed::WorkerKind::kThread;
  infeed::JobOptions job;
  int most_workers = 6;           ///< of the sweep: more cannot help
  std::vector<int> depths = {0};  ///< of the sweep; 0: the loader's default
  infeed::KnownCosts known = {};  ///< what the model is told
  int budget_workers = 0;         ///< memory is for so many workers; 0: for as many as one likes
};

/// W1a, and a step on a device that takes no time to speak of.
[[nodiscard]] Pipeline decode_bound(const Bed& bed);
/// Reads that sleep for 3 ms, as those from a network do.
[[nodiscard]] Pipeline read_bound(const Bed& bed);
/// The same, but each worker keeps 32 MB, and there is memory for five.
[[nodiscard]] Pipeline read_bound_in_little_memory(const Bed& bed);
/// Batches of 1 MiB over a link of 200 MB/s.
[[nodiscard]] Pipeline transfer_bound(const Bed& bed);
/// A step that keeps two processors busy for longer than a batch takes a worker.
[[nodiscard]] Pipeline trainer_bound(const Bed& bed);
/// One row in a hundred takes as long as 200 others.
[[nodiscard]] Pipeline bursty(const Bed& bed);

}  // namespace bench
