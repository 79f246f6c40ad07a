#include <nvtx3/nvToolsExt.h>

#include "calls.h"

namespace infeed::cuda {

void push_range(const char* name) { nvtxRangePushA(name); }
void pop_range() { nvtxRangePop(); }

}  // namespace infeed::cuda
