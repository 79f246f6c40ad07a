// What do more workers cost than they bring? W1a, two batches in flight whatever the workers, all warm: the first
// write of a page costs each worker 1 us once, and with 8 workers it takes 60 batches until each has written them all.
// Read: memory (PSS of this process and all workers, shared pages counted once) of 8 workers by that of 2; CPU a sample
// of 8 by that of 1. 1 means that a worker is free.
#include <algorithm>
#include <stdexcept>

#include "bed.h"
#include "infeed/loader/loader.h"
#include "infeed/sampler/random.h"
#include "loader_turn.h"

namespace bench {
namespace {

struct Usage {
  Series pss_mb, cpu_us;
};

void measure(const Bed& bed, const infeed::Dataset& dataset, int workers, std::uint64_t round, Usage& usage) {
  const auto samples = bed.size<std::int64_t>(1024, 64);
  infeed::LoaderOptions options;
  options.batch_size = 64;
  options.sampler =
      std::make_unique<infeed::RandomSampler>(dataset.size(), infeed::RandomSamplerOptions{.num_samples = samples});
  options.num_workers = workers;
  options.worker_kind = infeed::WorkerKind::kFork;
  options.prefetch = 2;
  infeed::Loader loader(dataset, std::move(options));
  TurnResult warm_up;
  for (int i = 0; i < bed.size(4, 1); ++i) warm_up = run_epoch(loader);
  const TurnResult turn = run_epoch(loader);
  if (warm_up.rows != static_cast<std::uint64_t>(samples) || turn.rows != warm_up.rows)
    throw std::runtime_error("samples are missing");
  if (round == 0) return;
  usage.pss_mb.push_back(static_cast<double>(loader.stats().pss_bytes) * 1e-6);
  usage.cpu_us.push_back(turn.cpu_s / static_cast<double>(turn.rows) * 1e6);
}

}  // namespace

void many_workers(const Bed& bed, Report& report) {
  const infeed::ImageFolder dataset = w1a(bed);
  Usage one, two, eight;
  const auto turn = [&](int workers, Usage& usage) {
    return [&, workers](std::uint64_t round) { return measure(bed, dataset, workers, round, usage), 0.0; };
  };
  static_cast<void>(interleave(bed.rounds, {turn(1, one), turn(2, two), turn(8, eight)}));
  report.add({.id = "E8",
              .what = "W1a, PSS of all processes, 2 fork workers",
              .unit = "MB",
              .rounds = two.pss_mb,
              .better = Better::kLower});
  report.add({.id = "E8",
              .what = "W1a, PSS of all processes, 8 workers by 2, same depth",
              .unit = "x",
              .rounds = ratio(eight.pss_mb, two.pss_mb),
              .better = Better::kLower,
              .must = 1.3,
              .aim = 1.15});
  report.add({.id = "E8",
              .what = "W1a, CPU a sample, 8 workers by 1",
              .unit = "x",
              .rounds = ratio(eight.cpu_us, one.cpu_us),
              .better = Better::kLower,
              .must = 1.1,
              .aim = 1.03});
}

}  // namespace bench
