#include "auto_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "infeed/base/log.h"
#include "infeed/device/simulated.h"
#include "machine.h"

namespace bench {
namespace {

constexpr int kStepsToFill = 8;  // what is in flight, as run_job() has it, and one for each worker

infeed::LoaderOptions options(const Pipeline& pipeline, std::uint64_t memory_budget) {
  return {.batch_size = pipeline.job.batch_size,
          .shuffle = pipeline.job.shuffle,
          .num_workers = infeed::kAutoWorkers,
          .worker_kind = pipeline.kind,
          .memory_budget = memory_budget};
}

}  // namespace

AutoRun::AutoRun(const Pipeline& pipeline, std::uint64_t memory_budget)
    : pipeline_(pipeline), loader_(*pipeline.dataset, options(pipeline, memory_budget)) {
  infeed::set_log_level(infeed::LogLevel::kInfo);
  infeed::set_log_sink(
      [this](infeed::LogLevel, std::string_view line) { changes_ += line.starts_with("num_workers=auto: ") ? 1 : 0; });
  if (pipeline.job.device.empty()) return;
  device_ = std::make_shared<infeed::SimulatedDevice>(
      infeed::SimulatedOptions{.bandwidth_bytes_per_s = pipeline.job.device_bytes_per_s});
  stager_.emplace(loader_, device_);
}

AutoRun::~AutoRun() {
  infeed::set_log_sink({});
  infeed::set_log_level(infeed::LogLevel::kWarning);
}

std::string AutoRun::setting() const {
  return fmt::format("{} workers, prefetch {}", loader_.num_workers(), loader_.stats().prefetch);
}

void AutoRun::converge(double seconds) {
  train(seconds);
  changes_of_convergence_ = changes_;
}

double AutoRun::rate(double seconds) {
  for (int i = 0; i < kStepsToFill + loader_.num_workers(); ++i) turn();
  const double begin = wall_s();
  const std::int64_t samples = train(seconds);
  const double rate = static_cast<double>(samples) / (wall_s() - begin);
  look_at_memory();
  return rate;
}

std::int64_t AutoRun::train(double seconds) {
  std::int64_t samples = 0;
  for (const double begin = wall_s(); wall_s() - begin < seconds;) samples += turn();
  return samples;
}

std::int64_t AutoRun::turn() {
  std::optional<infeed::Batch> batch = next();
  if (!batch) batch = next();  // the next epoch's first
  if (!batch) throw std::runtime_error(pipeline_.name + " gave no batch");
  if (pipeline_.job.step)
    pipeline_.job.step(*batch);
  else
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(pipeline_.job.step_ms));
  if (changes_ != changes_seen_) look_at_memory();
  changes_seen_ = changes_;
  return batch->size();
}

std::optional<infeed::Batch> AutoRun::next() {
  if (!stager_) return loader_.next();
  std::optional<infeed::StagedBatch> staged = stager_->next();
  if (!staged) return std::nullopt;
  stager_->compute_stream().synchronize();  // the step begins when the copy has passed
  return std::move(*staged).take();
}

void AutoRun::look_at_memory() { most_bytes_ = std::max(most_bytes_, static_cast<double>(loader_.stats().pss_bytes)); }

}  // namespace bench
