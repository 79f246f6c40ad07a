// The program: asks a plugin for a dataset by name. Spawned workers, new processes, make it again in the same way.
// Usage: 08_plugin PATH_OF_PLUGIN
#include <infeed/dataset/registry.h>
#include <infeed/infeed.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s libsquares.so\n", argv[0]);
    return 2;
  }
  const infeed::DatasetSpec spec{"squares", infeed::State::from_json(R"({"size": 1000})"), argv[1]};
  const auto dataset = infeed::Registry::builtin().make(spec);
  infeed::Loader loader(*dataset, {.batch_size = 100, .num_workers = 2, .worker_kind = infeed::WorkerKind::kSpawn});
  std::int64_t sum = 0;
  while (const auto batch = loader.next()) {
    for (std::int64_t i = 0; i < batch->size(); ++i) sum += batch->at("square").as<std::int64_t>()[i];
  }
  std::printf("sum of squares below 1000: %lld\n", static_cast<long long>(sum));
  for (const infeed::WorkerStats& worker : loader.stats().workers) {
    std::printf("process %lld filled %llu samples\n", static_cast<long long>(worker.pid),
                static_cast<unsigned long long>(worker.samples));
  }
  return sum == 332'833'500 ? 0 : 1;
}
