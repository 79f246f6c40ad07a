#include "transform/cpu.h"

#include <fmt/format.h>

#include <cstdlib>

#include "infeed/base/error.h"
#include "transform/resample.h"

namespace infeed {

std::string_view to_string(CpuLevel level) noexcept {
  switch (level) {
    case CpuLevel::kAVX512: return "avx512";
    case CpuLevel::kAVX2: return "avx2";
    case CpuLevel::kPortable: break;
  }
  return "portable";
}

CpuLevel best_cpu_level() noexcept {
  if (kernels_avx512() != nullptr) return CpuLevel::kAVX512;
  if (kernels_avx2() != nullptr) return CpuLevel::kAVX2;
  return CpuLevel::kPortable;
}

CpuLevel parse_cpu_level(std::string_view value) {
  const CpuLevel best = best_cpu_level();
  if (value.empty()) return best;
  for (const CpuLevel level : {CpuLevel::kPortable, CpuLevel::kAVX2, CpuLevel::kAVX512}) {
    if (value != to_string(level)) continue;
    if (level <= best) return level;
    throw ConfigError(fmt::format("INFEED_CPU={} asks for more than this processor has ({}). Lower it or unset it.",
                                  value, to_string(best)));
  }
  throw ConfigError(
      fmt::format("INFEED_CPU={} is none of portable, avx2, avx512. Use one of them or unset it.", value));
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const char* value = std::getenv("INFEED_CPU");
    return parse_cpu_level(value == nullptr ? "" : value);
  }();
  return level;
}

}  // namespace infeed
