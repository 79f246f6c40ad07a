// infeed-worker with the datasets of these tests.

#include "worker/spawned.h"
#include "worker/test_dataset.h"

int main(int argc, char** argv) { return infeed::spawned_worker_main(argc, argv, infeed::testing::test_registry()); }
