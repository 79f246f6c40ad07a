#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "base/csv.h"
#include "infeed/tuner/sweep.h"
#include "tuner/figures.h"
#include "tuner/picture.h"

namespace infeed {
namespace {

State row_state(const SweepRow& row) {
  State state;
  state.set("setting", row.setting.to_state());
  state.set("samples_per_s", row.figures.samples_per_s);
  state.set("spread", row.spread);
  state.set("runs", row.runs);
  state.set("epoch_s", row.epoch_s);
  state.set("memory_bytes", row.figures.memory_bytes);
  state.set("utilisation", row.figures.utilisation);
  state.set("transfer_share", row.figures.transfer_share);
  state.set("first_batch_ms", row.figures.first_batch_ms);
  state.set("cpu_s", row.figures.cpu_s);
  state.set("others_share", row.figures.others_share);
  state.set("sample_s", row.figures.sample_s);
  state.set("verdict", row.figures.verdict);
  state.set("refused", row.refused);
  return state;
}

std::size_t name_width(const std::vector<SweepRow>& rows) {
  std::size_t width = 12;
  for (const SweepRow& row : rows) width = std::max(width, row.setting.str().size());
  return width;
}

}  // namespace

std::string SweepReport::str() const {
  const std::size_t width = name_width(rows);
  std::string text = fmt::format("{:<{}} {:>10} {:>8} {:>8} {:>8} {:>9} {:>6} {:>6} {:>9}\n", "setting", width,
                                 "samples/s", "spread", "epoch s", "CPU us", "memory MB", "step", "copies", "first ms");
  for (const SweepRow& row : rows) {
    if (!row.refused.empty()) {
      text += fmt::format("{:<{}} refused: {}\n", row.setting.str(), width, row.refused);
      continue;
    }
    const RunFigures& f = row.figures;
    text += fmt::format("{:<{}} {:>10.0f} {:>6.1f} % {:>8.1f} {:>8.0f} {:>9.0f} {:>4.0f} % {:>4.0f} % {:>9.0f}\n",
                        row.setting.str(), width, f.samples_per_s, row.spread * 100, row.epoch_s, f.cpu_s * 1e6,
                        f.memory_bytes / 1e6, f.utilisation * 100, f.transfer_share * 100, f.first_batch_ms);
  }
  if (interrupted) text += "Stopped early: these are the runs that were done.\n";
  text += disturbance(others_share);
  text += fmt::format("\nRecommended: {}: {}\n", chosen.setting.str(), why);
  for (const RuleOfThumb& rule : rules)
    text += fmt::format("{}: {}, {:.0f} samples/s{}\n", rule.name, rule.setting.str(), rule.samples_per_s,
                        rule.measured ? "" : " by the model");
  if (fit.rate_error > 0 || fit.costs.step_s > 0) text += "\nThe model's costs, fitted to these rows:\n" + fit.str();
  return text;
}

std::string SweepReport::csv() const {
  std::string text = fmt::format(
      "{},samples_per_s,spread,epoch_s,memory_bytes,utilisation,transfer_share,first_batch_ms,cpu_s,others_share,runs,"
      "refused\n",
      kSettingColumns);
  for (const SweepRow& row : rows) {
    const RunFigures& f = row.figures;
    text +=
        fmt::format("{},{:.6g},{:.4g},{:.6g},{:.0f},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{},{}\n",
                    setting_cells(row.setting), f.samples_per_s, row.spread, row.epoch_s, f.memory_bytes, f.utilisation,
                    f.transfer_share, f.first_batch_ms, f.cpu_s, f.others_share, row.runs, csv_cell(row.refused));
  }
  return text;
}

State SweepReport::to_state() const {
  State state;
  std::vector<State> list;
  for (const SweepRow& row : rows) list.push_back(row_state(row));
  state.set("rows", list);
  state.set("chosen", row_state(chosen));
  state.set("why", why);
  state.set("rules", rule_states(rules));
  State model;
  model.set("costs", fit.costs.to_state());
  model.set("rate_error", fit.rate_error);
  model.set("memory_error", fit.memory_error);
  model.set("utilisation_error", fit.utilisation_error);
  state.set("model", model);
  state.set("others_share", others_share);
  state.set("interrupted", interrupted);
  return state;
}

std::string SweepReport::svg() const {
  RatePicture picture{.title = "A sweep over numbers of workers", .chosen = chosen.setting};
  for (const SweepRow& row : rows) {
    if (row.refused.empty())
      picture.points.push_back({row.setting, row.figures.samples_per_s, row.spread, row.figures.memory_bytes});
  }
  if (fit.costs.sample_s + fit.costs.step_s > 0) picture.model = fit.costs;
  return draw(picture);
}

}  // namespace infeed
