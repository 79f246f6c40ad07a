#include "conformance/worker_conformance.h"

namespace infeed::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Inline, WorkerConformance, ::testing::Values(WorkerKind::kInline));

}  // namespace
}  // namespace infeed::testing
