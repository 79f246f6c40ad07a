#include "sweep.h"

#include <fmt/format.h>
#include <malloc.h>

#include "console.h"
#include "infeed/train/tensor/allocator.h"
#include "model.h"
#include "stop.h"
#include "train.h"

namespace demo {
namespace {

using infeed::WorkerKind;

constexpr int kModelWidth = 16;    // half of the trained one's: a lighter step makes feeding matter
constexpr int kWarmUpBatches = 4;  // then prefetch, caches and every worker's pages are warm

// What earlier runs left in the heap; a fork would share it, then copy it.
void forget_earlier_runs() {
  infeed::host_allocator().empty_cache();
  malloc_trim(0);
}

}  // namespace

infeed::SweepReport sweep(const SweepOptions& options) {
  const infeed::ImageFolder dataset = open_training_set(options.data + "/train");
  Trainer trainer({.classes = static_cast<int>(dataset.classes().size()), .width = kModelWidth, .seed = options.seed});
  infeed::SweepOptions sweep{.kinds = {WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn},
                             .workers = options.workers,
                             .repetitions = options.repetitions,
                             .job = {.batch_size = kBatchSize,
                                     .seed = options.seed,
                                     .seconds = options.run_seconds,
                                     .warm_up_batches = kWarmUpBatches}};
  sweep.workers.insert(sweep.workers.begin(), 0);
  sweep.job.step = [&trainer](const infeed::Batch& batch) {
    stop_if_asked();
    trainer.step(batch);
  };
  ProgressLine progress;
  sweep.on_progress = [&progress](int run, int runs, const infeed::WorkerSetting& setting) {
    forget_earlier_runs();
    progress.update(fmt::format("run {} of {}: {} ...", run, runs, setting.str()));
  };
  return infeed::sweep(dataset, sweep);
}

}  // namespace demo
