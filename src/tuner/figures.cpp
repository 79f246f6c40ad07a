#include "tuner/figures.h"

#include <fmt/format.h>

namespace infeed {

std::string setting_cells(const WorkerSetting& setting) {
  return fmt::format("{},{},{},{},{}", to_string(setting.kind), setting.workers, setting.threads, setting.prefetch,
                     setting.pinned ? 1 : 0);
}

std::vector<State> rule_states(const std::vector<RuleOfThumb>& rules) {
  std::vector<State> states;
  for (const RuleOfThumb& rule : rules) {
    State state;
    state.set("rule", rule.name);
    state.set("setting", rule.setting.to_state());
    state.set("samples_per_s", rule.samples_per_s);
    state.set("measured", rule.measured);
    states.push_back(state);
  }
  return states;
}

std::string disturbance(double others_share) {
  constexpr double kNoise = 0.05;
  if (others_share <= kNoise) return {};
  return fmt::format(
      "Other programs had {:.0f} % of the processors meanwhile: the rates are too low, and rows differ by chance.\n",
      others_share * 100);
}

}  // namespace infeed
