#include "pipelines.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "infeed/dataset/synthetic.h"
#include "machine.h"

namespace bench {
namespace {

constexpr std::int64_t kRows = 100'000;

infeed::Schema bytes(std::int64_t count) { return infeed::Schema({{"x", infeed::DType::kUInt8, {count}}}); }

std::shared_ptr<const infeed::Dataset> synthetic(std::int64_t row_bytes, const infeed::SyntheticOptions& options) {
  return std::make_shared<infeed::SyntheticDataset>(kRows, bytes(row_bytes), options);
}

infeed::JobOptions job(const Bed& bed, std::int64_t batch_size, double step_ms) {
  return {.batch_size = batch_size, .step_ms = step_ms, .seconds = bed.size(0.5, 0.02)};
}

/// Samples of another data set, read by processes that each keep a table.
class Tabled final : public infeed::Dataset {
 public:
  Tabled(std::shared_ptr<const infeed::Dataset> samples, std::size_t table_bytes)
      : samples_(std::move(samples)), table_bytes_(table_bytes) {}

  [[nodiscard]] std::int64_t size() const override { return samples_->size(); }
  [[nodiscard]] const infeed::Schema& schema() const override { return samples_->schema(); }
  void read(infeed::Row& row) const override {
    if (owner_ != getpid()) {  // not what a fork has inherited
      table_ = std::vector<char>(table_bytes_, 1);
      owner_ = getpid();
    }
    samples_->read(row);
  }

 private:
  std::shared_ptr<const infeed::Dataset> samples_;
  std::size_t table_bytes_;
  mutable std::vector<char> table_;
  mutable pid_t owner_ = 0;
};

void spin(double seconds) {
  const double begin = thread_cpu_s();
  while (thread_cpu_s() - begin < seconds) {
  }
}

/// A step of two threads; it ends with the later one.
void step_of_two_threads(infeed::Batch& /*batch*/) {
  constexpr double kStepS = 8e-3;
  const std::jthread other([] { spin(kStepS); });
  spin(kStepS);
}

}  // namespace

Pipeline decode_bound(const Bed& bed) {
  return {.name = "decode-bound",
          .dataset = std::shared_ptr<const infeed::Dataset>(new infeed::ImageFolder(w1a(bed))),
          .kind = infeed::WorkerKind::kFork,
          .job = job(bed, 32, 1)};
}

Pipeline read_bound(const Bed& bed) {
  return {.name = "read-bound",
          .dataset = synthetic(256, {.wait_us = 3000}),
          .kind = infeed::WorkerKind::kFork,
          .job = job(bed, 16, 6),
          .most_workers = 12};
}

Pipeline read_bound_in_little_memory(const Bed& bed) {
  constexpr std::size_t kTable = 32'000'000;
  Pipeline pipeline = read_bound(bed);
  pipeline.name += ", memory for 5";
  pipeline.dataset = std::make_shared<Tabled>(pipeline.dataset, kTable);
  pipeline.most_workers = 8;
  pipeline.budget_workers = bed.size(5, 0);
  return pipeline;
}

Pipeline transfer_bound(const Bed& bed) {
  Pipeline pipeline{.name = "transfer-bound", .dataset = synthetic(64 << 10, {.cost_us = 400}), .job = job(bed, 16, 1)};
  pipeline.job.device = "simulated";
  pipeline.job.device_bytes_per_s = 200e6;
  return pipeline;
}

Pipeline trainer_bound(const Bed& bed) {
  Pipeline pipeline{.name = "trainer-bound", .dataset = synthetic(1024, {.cost_us = 100}), .job = job(bed, 16, 0)};
  pipeline.job.step = step_of_two_threads;
  pipeline.known.trainer_cpus = 2;
  return pipeline;
}

Pipeline bursty(const Bed& bed) {
  return {.name = "bursty",
          .dataset = synthetic(64 << 10, {.cost_us = 100, .slow_every = 100, .slow_factor = 200}),
          .job = job(bed, 16, 6),
          .depths = {2, 16}};
}

}  // namespace bench
