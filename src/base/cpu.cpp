#include "base/cpu.h"

#include <fmt/format.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <cstdlib>
#include <iterator>

#include "infeed/base/error.h"

namespace infeed {

std::string_view to_string(CpuLevel level) noexcept {
  switch (level) {
    case CpuLevel::kAVX512: return "avx512";
    case CpuLevel::kAVX2: return "avx2";
    case CpuLevel::kNEON: return "neon";
    case CpuLevel::kPortable: break;
  }
  return "portable";
}

#ifdef __x86_64__
// Not by __builtin_cpu_supports: Clang 14's does not know this one.
static bool has_f16c() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

CpuLevel best_cpu_level() noexcept {
  if (!__builtin_cpu_supports("avx2") || !has_f16c()) return CpuLevel::kPortable;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vnni");
  return has_avx512 ? CpuLevel::kAVX512 : CpuLevel::kAVX2;
}
static constexpr CpuLevel kBuilt[] = {CpuLevel::kPortable, CpuLevel::kAVX2, CpuLevel::kAVX512};
#elif defined(__aarch64__)
CpuLevel best_cpu_level() noexcept { return CpuLevel::kNEON; }

static constexpr CpuLevel kBuilt[] = {CpuLevel::kPortable, CpuLevel::kNEON};
#else
CpuLevel best_cpu_level() noexcept { return CpuLevel::kPortable; }

static constexpr CpuLevel kBuilt[] = {CpuLevel::kPortable};
#endif

std::span<const CpuLevel> cpu_levels() noexcept {
  const CpuLevel best = best_cpu_level();
  std::size_t count = 1;
  while (count < std::size(kBuilt) && kBuilt[count] <= best) ++count;
  return std::span(kBuilt).first(count);
}

CpuLevel parse_cpu_level(std::string_view value) {
  const CpuLevel best = best_cpu_level();
  if (value.empty()) return best;
  for (const CpuLevel level : cpu_levels())
    if (value == to_string(level)) return level;
  for (const CpuLevel level : {CpuLevel::kNEON, CpuLevel::kAVX2, CpuLevel::kAVX512}) {
    if (value != to_string(level)) continue;
    throw ConfigError(fmt::format("INFEED_CPU={} asks for more than this processor has ({}). Lower it or unset it.",
                                  value, to_string(best)));
  }
  throw ConfigError(
      fmt::format("INFEED_CPU={} is none of portable, neon, avx2, avx512. Use one of them or unset it.", value));
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const char* value = std::getenv("INFEED_CPU");
    return parse_cpu_level(value == nullptr ? "" : value);
  }();
  return level;
}

}  // namespace infeed
