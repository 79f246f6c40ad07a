#include "conformance/worker_conformance.h"

namespace infeed::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Fork, WorkerConformance, ::testing::Values(WorkerKind::kFork));

}  // namespace
}  // namespace infeed::testing
