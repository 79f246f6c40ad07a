// infeed-worker with the datasets that the process tests use, and a worker_init that makes it mortal.

#include "infeed/dataset/synthetic.h"
#include "process/mortal.h"
#include "worker/spawned.h"
#include "worker/test_dataset.h"

int main(int argc, char** argv) {
  infeed::Registry registry = infeed::testing::test_registry();
  registry.add("synthetic", infeed::SyntheticDataset::from_params);
  registry.add_worker_init("mortal", [](int id, int num_workers, std::uint64_t seed) {
    infeed::testing::become_mortal({.id = id, .num_workers = num_workers, .seed = seed});
  });
  return infeed::spawned_worker_main(argc, argv, registry);
}
