#include "transform/resample.h"

namespace infeed {

const Kernels* kernels_avx2() noexcept { return nullptr; }
const Kernels* kernels_avx512() noexcept { return nullptr; }

}  // namespace infeed
