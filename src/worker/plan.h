#pragma once
/// What a worker fills batches with.

#include <cstddef>
#include <cstdint>

#include "batch/layout.h"
#include "infeed/collate/collate.h"
#include "infeed/dataset/dataset.h"

namespace infeed {

enum class FaultPolicy : std::uint8_t { kRaise, kSkip, kReplace };

/// Borrowed pointers; everything outlives the workers.
struct WorkPlan {
  const Dataset* dataset = nullptr;  ///< exactly one of dataset and stream
  const Stream* stream = nullptr;
  const Collate* collate = nullptr;     ///< null: fixed schema, rows written in place
  const BatchLayout* layout = nullptr;  ///< of the in-place batch; null with a collate
  std::uint64_t seed = 0;
  int max_rows = 1;
  FaultPolicy on_error = FaultPolicy::kRaise;
  int replace_tries = 16;  ///< following indices that kReplace tries
  /// No run is ever assigned to one claimant (Order::assigned): to wake as many as there are runs is then enough.
  bool any_claimant = false;
};

}  // namespace infeed
