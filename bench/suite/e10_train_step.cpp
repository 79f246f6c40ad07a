// One training step of the demo's CNN, ours by LibTorch's (channels_last): see train_step_bench.cpp, which runs here as
// a program of its own, so that this one loads no LibTorch. No line where LibTorch is not there.
#include <stdexcept>

#include "bed.h"
#include "command.h"

namespace bench {

#ifdef BENCH_TRAIN_STEP
void train_step(const Bed& bed, Report& report) {
  const std::string command = std::string(BENCH_TRAIN_STEP) + bed.size(" 4 2", " 1 2");
  Series ratios, ours_ms;
  for (int round = 0; round < bed.rounds; ++round) {
    const std::string text = output_of(command);
    const auto value = number_behind(text, "ratio of medians:");
    const auto ours = number_before(text.substr(0, text.find('\n')), " ms a step");
    if (!value || !ours) throw std::runtime_error("train_step_bench printed no ratio:\n" + text);
    ratios.push_back(*value);
    ours_ms.push_back(*ours);
  }
  report.add({.id = "E10",
              .what = "training step of the demo's CNN, 2 threads",
              .unit = "ms",
              .rounds = ours_ms,
              .better = Better::kLower});
  report.add({.id = "E10",
              .what = "the same by LibTorch's (channels_last)",
              .unit = "x",
              .rounds = ratios,
              .better = Better::kLower,
              .must = 1.0,
              .aim = 0.75});
}
#else
void train_step(const Bed&, Report&) {}
#endif

}  // namespace bench
