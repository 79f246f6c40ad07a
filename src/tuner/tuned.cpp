#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/csv.h"
#include "infeed/tuner/tune.h"
#include "tuner/figures.h"
#include "tuner/picture.h"

// What a search found: as text, CSV, JSON and a picture.

namespace infeed {
namespace {

State trial_state(const Trial& trial) {
  State state;
  state.set("setting", trial.setting.to_state());
  state.set("samples_per_s", trial.samples_per_s);
  state.set("runs", trial.runs);
  state.set("spread", trial.spread);
  state.set("memory_bytes", trial.memory_bytes);
  state.set("utilisation", trial.utilisation);
  state.set("others_share", trial.others_share);
  state.set("refused", trial.refused);
  return state;
}

std::string spread_text(const Trial& trial) {
  return trial.runs == 1 ? "one run" : fmt::format("{:.1f} %", trial.spread * 100);
}

double mean_of_others(const std::vector<Trial>& trials) {
  double sum = 0;
  for (const Trial& trial : trials) sum += trial.others_share / static_cast<double>(trials.size());
  return sum;
}

}  // namespace

std::string Tuned::str() const {
  std::string text = fmt::format("{}: {}\n\n{:<40} {:>10} {:>7} {:>9} {:>5}\n", chosen.setting.str(), why, "trial",
                                 "samples/s", "spread", "memory MB", "step");
  for (const Trial& trial : trials) {
    if (!trial.refused.empty()) {
      text += fmt::format("{:<40} refused: {}\n", trial.setting.str(), trial.refused);
      continue;
    }
    text += fmt::format("{:<40} {:>10.0f} {:>7} {:>9.0f} {:>3.0f} %\n", trial.setting.str(), trial.samples_per_s,
                        spread_text(trial), trial.memory_bytes / 1e6, trial.utilisation * 100);
  }
  for (const RuleOfThumb& rule : rules) {
    text += fmt::format("rule {:<35} {:>10.0f} {}\n", fmt::format("{}: {}", rule.name, rule.setting.str()),
                        rule.samples_per_s, rule.measured ? "measured" : "by the model");
  }
  if (interrupted) text += "Stopped early: these are the trials that were done.\n";
  return text + disturbance(mean_of_others(trials));
}

std::string Tuned::csv() const {
  std::string text =
      fmt::format("{},samples_per_s,runs,spread,memory_bytes,utilisation,others_share,refused\n", kSettingColumns);
  for (const Trial& trial : trials)
    text += fmt::format("{},{:.6g},{},{:.4g},{:.0f},{:.4g},{:.4g},{}\n", setting_cells(trial.setting),
                        trial.samples_per_s, trial.runs, trial.spread, trial.memory_bytes, trial.utilisation,
                        trial.others_share, csv_cell(trial.refused));
  return text;
}

State Tuned::to_state() const {
  State state;
  state.set("chosen", trial_state(chosen));
  state.set("fastest", trial_state(fastest));
  state.set("why", why);
  std::vector<State> rows;
  for (const Trial& trial : trials) rows.push_back(trial_state(trial));
  state.set("trials", rows);
  state.set("rules", rule_states(rules));
  state.set("interrupted", interrupted);
  return state;
}

std::string Tuned::svg() const {
  RatePicture picture{.title = "A search for the number of workers", .chosen = chosen.setting};
  for (const Trial& trial : trials) {
    if (trial.refused.empty())
      picture.points.push_back({trial.setting, trial.samples_per_s, trial.spread, trial.memory_bytes});
  }
  return draw(picture);
}

}  // namespace infeed
