// A dataset of your own: say what a sample is, and write one. Here noisy sine waves, whose frequency is the label.
#include <infeed/infeed.h>

#include <cmath>
#include <cstdio>

class Waves final : public infeed::Dataset {
 public:
  std::int64_t size() const override { return 10'000; }
  const infeed::Schema& schema() const override { return schema_; }

  // Called by many workers at once, so it is const; writes straight into the batch.
  void read(infeed::Row& row) const override {
    const std::int64_t frequency = 1 + row.index() % 8;
    infeed::Philox random = row.context().rng();  // the same numbers whichever worker draws them
    const double phase = random.uniform(0, 6.28);
    auto* wave = row.at("wave").as<float>();
    for (int i = 0; i < kLength; ++i) {
      const double t = 6.28 * i / kLength;
      wave[i] = static_cast<float>(std::sin(static_cast<double>(frequency) * t + phase) + random.uniform(-0.1, 0.1));
    }
    *row.at("frequency").as<std::int64_t>() = frequency;
  }

 private:
  static constexpr int kLength = 128;
  infeed::Schema schema_{{"wave", infeed::DType::kFloat32, {kLength}}, {"frequency", infeed::DType::kInt64, {}}};
};

// A number that depends on every value of an epoch.
double checksum(infeed::Loader& loader) {
  double sum = 0, weight = 0;
  for (const infeed::Batch& batch : loader) {
    const infeed::ArrayView& wave = batch.at("wave");
    for (std::int64_t i = 0; i < wave.numel(); ++i) sum += (weight += 1e-6) * static_cast<double>(wave.as<float>()[i]);
  }
  return sum;
}

int main() {
  const Waves dataset;
  infeed::Loader alone(dataset, {.batch_size = 100, .shuffle = true});
  infeed::Loader helped(
      dataset, {.batch_size = 100, .shuffle = true, .num_workers = 3, .worker_kind = infeed::WorkerKind::kFork});
  const double a = checksum(alone), b = checksum(helped);
  std::printf("without workers: %.6f, with three processes: %.6f\n", a, b);
  return a == b ? 0 : 1;
}
