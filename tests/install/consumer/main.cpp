// A stranger's trainer: only what is installed, every kind of worker.
#include <infeed/infeed.h>

#include <cstdio>

int main() {
  infeed::SyntheticDataset dataset(
      1000, {{"image", infeed::DType::kFloat32, {3, 8, 8}}, {"index", infeed::DType::kInt64, {}}});
  for (const auto kind : {infeed::WorkerKind::kInline, infeed::WorkerKind::kThread, infeed::WorkerKind::kFork,
                          infeed::WorkerKind::kSpawn}) {
    const int workers = kind == infeed::WorkerKind::kInline ? 0 : 2;
    infeed::Loader loader(dataset, {.batch_size = 64, .shuffle = true, .num_workers = workers, .worker_kind = kind});
    long long sum = 0;
    while (auto batch = loader.next()) {
      for (std::int64_t i = 0; i < batch->size(); ++i) sum += batch->at("index").as<std::int64_t>()[i];
    }
    std::printf("%s: %lld\n", infeed::to_string(kind), sum);
    if (sum != 999 * 1000 / 2) return 1;
  }
  return 0;
}
