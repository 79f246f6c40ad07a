// How much sooner is the first batch where all workers fill it together? Rows of 0.9 ms, one in ten ten times slower,
// batch 64. Read: time to the first batch with a worker a batch (whole), by that with all workers on it (cooperative).
#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <stdexcept>

#include "bed.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "machine.h"

namespace bench {
namespace {

double first_batch_s(const infeed::Dataset& dataset, infeed::Filling filling, int workers) {
  infeed::LoaderOptions options;
  options.batch_size = 64;
  options.num_workers = workers;
  options.worker_kind = infeed::WorkerKind::kFork;
  options.filling = filling;
  const double before = wall_s();
  infeed::Loader loader(dataset, std::move(options));
  const std::optional<infeed::Batch> batch = loader.next();
  const double seconds = wall_s() - before;
  const std::vector<std::int64_t>& indices = batch->indices();
  if (std::accumulate(indices.begin(), indices.end(), std::int64_t{0}) != 63 * 64 / 2)
    throw std::runtime_error("the first batch is another");
  return seconds;
}

void compare(const Bed& bed, int workers, double must, double aim, Report& report) {
  const infeed::SyntheticDataset dataset(64 * 16, {{.name = "x", .dtype = infeed::DType::kInt64, .shape = {}}},
                                         {.cost_us = bed.size(900, 20), .slow_every = 10, .slow_factor = 10});
  const std::vector<Series> seconds = interleave(
      bed.rounds, {[&](std::uint64_t) { return first_batch_s(dataset, infeed::Filling::kCooperative, workers); },
                   [&](std::uint64_t) { return first_batch_s(dataset, infeed::Filling::kWhole, workers); }});
  report.add({.id = "E12",
              .what = fmt::format("slow rows, {} workers, first batch, cooperative", workers),
              .unit = "ms",
              .rounds = scaled(seconds[0], 1e3),
              .better = Better::kLower});
  report.add({.id = "E12",
              .what = fmt::format("slow rows, {} workers, first batch, whole by cooperative", workers),
              .unit = "x",
              .rounds = ratio(seconds[1], seconds[0]),
              .must = must,
              .aim = aim});
}

}  // namespace

void slow_rows(const Bed& bed, Report& report) {
  compare(bed, 2, 1.8, 2.0, report);
  compare(bed, 4, 2.8, 3.5, report);
}

}  // namespace bench
