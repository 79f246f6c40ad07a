#include "calls.h"

namespace infeed::cuda {

void push_range(const char*) {}
void pop_range() {}

}  // namespace infeed::cuda
