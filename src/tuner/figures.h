#pragma once
/// What sweeps and searches print in common.

#include <string>
#include <vector>

#include "infeed/base/state.h"
#include "infeed/tuner/tune.h"

namespace infeed {

inline constexpr const char* kSettingColumns = "worker_kind,num_workers,threads_per_worker,prefetch,pinned";

/// Under kSettingColumns.
[[nodiscard]] std::string setting_cells(const WorkerSetting& setting);
[[nodiscard]] std::vector<State> rule_states(const std::vector<RuleOfThumb>& rules);
/// A line that says what other programs had of the processors; empty where that was noise.
[[nodiscard]] std::string disturbance(double others_share);

}  // namespace infeed
