// Does the copy of the next batch hide behind the step? Batches of 1 MiB to a simulated device whose link and step take set
// times, one worker thread, two batches ahead.
// Read: time a step by the longer of copy and step; 1 means that the shorter one costs nothing. It is wall time between the
// ends of two steps. The last line is the price of memory that was not page-locked: on the model's link a copy takes three
// times as long, as pageable copies do on a machine, and nothing is copied meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <vector>

#include "bed.h"
#include "infeed/dataset/tensor_dataset.h"
#include "infeed/device/simulated.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/stager.h"
#include "machine.h"

namespace bench {
namespace {

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kRowBytes = 128 << 10;
constexpr double kBatchBytes = static_cast<double>(kBatch * kRowBytes);
constexpr double kLatencyS = 10e-6;
constexpr int kWarmSteps = 4;  // until batches wait for steps, not steps for batches

struct Case {
  double copy_ms;
  double step_ms;
  [[nodiscard]] double longer_s() const { return std::max(copy_ms, step_ms) * 1e-3; }
};

/// Wall seconds a step.
double steps(const infeed::Dataset& dataset, const Case& times, int count, bool register_memory) {
  infeed::Loader loader(dataset, {.batch_size = kBatch, .num_workers = 1, .prefetch = 3});
  const auto device = std::make_shared<infeed::SimulatedDevice>(infeed::SimulatedOptions{
      .bandwidth_bytes_per_s = kBatchBytes / (times.copy_ms * 1e-3 - kLatencyS), .latency_us = kLatencyS * 1e6});
  infeed::Stager stager(loader, device, {.register_memory = register_memory});
  std::promise<double> begin, end;
  for (int i = 0; i < count + kWarmSteps;) {
    const auto batch = stager.next();
    if (!batch) continue;  // the next epoch
    device->compute(stager.compute_stream(), {.duration_us = times.step_ms * 1e3});
    ++i;
    if (i == kWarmSteps) stager.compute_stream().launch([&begin] { begin.set_value(wall_s()); });
  }
  stager.compute_stream().launch([&end] { end.set_value(wall_s()); });
  stager.compute_stream().synchronize();
  return (end.get_future().get() - begin.get_future().get()) / count;
}

}  // namespace

void staging(const Bed& bed, Report& report) {
  const int count = bed.size(150, 5);
  std::vector<std::byte> memory(static_cast<std::size_t>(kRows * kRowBytes), std::byte{7});
  const infeed::TensorDataset dataset(
      {{"x", infeed::ArrayView(memory.data(), infeed::DType::kUInt8, infeed::Shape({kRows, kRowBytes}))}});
  const std::vector<Case> cases = {
      {.copy_ms = 10, .step_ms = 5}, {.copy_ms = 10, .step_ms = 10}, {.copy_ms = 5, .step_ms = 10}};
  std::vector<Turn> turns;
  for (const Case& each : cases)
    turns.emplace_back([&, each](std::uint64_t) { return steps(dataset, each, count, true) / each.longer_s(); });
  turns.emplace_back([&](std::uint64_t) { return steps(dataset, cases[1], count, false) / cases[1].longer_s(); });
  const std::vector<Series> shares = interleave(bed.rounds, turns);
  for (std::size_t i = 0; i < cases.size(); ++i)
    report.add({.id = "E13",
                .what = fmt::format("staging, copy {:.0f} ms, step {:.0f} ms: a step by the longer of the two",
                                    cases[i].copy_ms, cases[i].step_ms),
                .unit = "x",
                .rounds = shares[i],
                .better = Better::kLower,
                .must = 1.02,
                .aim = 1.01});
  report.add({.id = "E13",
              .what = "the same, 10 and 10 ms, memory that is not page-locked",
              .unit = "x",
              .rounds = shares.back(),
              .better = Better::kLower});
}

}  // namespace bench
