// Does the model hold for sweeps that others published? Two tables (tuner/published_sweeps.h): it is fitted to all rows of
// each. Read: how far off it is, row by row. Nothing is measured here.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "bed.h"
#include "infeed/tuner/fit.h"
#include "tuner/published_sweeps.h"

namespace bench {
namespace {

void compare(const std::string& name, const std::vector<infeed::MeasuredRow>& rows, Report& report) {
  const infeed::PipelineCosts costs = infeed::fit_costs(rows).costs;
  const auto line = [&](const infeed::MeasuredRow& row, const char* what, double foretold, double published) {
    if (published <= 0) return;
    report.add({.id = "S7",
                .what = fmt::format("{}, {} workers: the model's {} is off by", name, row.setting.workers, what),
                .unit = "%",
                .rounds = {std::abs(foretold / published - 1) * 100},
                .better = Better::kLower,
                .must = 10,
                .aim = 5});
  };
  for (const infeed::MeasuredRow& row : rows) {
    const infeed::Prediction foretold = infeed::predict(costs, row.setting);
    line(row, "rate", foretold.samples_per_s, row.samples_per_s);
    line(row, "memory", foretold.memory_bytes, row.memory_bytes);
    line(row, "utilisation", foretold.utilisation, row.utilisation);
  }
}

}  // namespace

void published_sweeps(const Bed& /*bed*/, Report& report) {
  compare("B1", infeed::published_classifier(), report);
  compare("B2", infeed::published_pictures(), report);
}

}  // namespace bench
