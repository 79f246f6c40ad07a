#include "infeed/train/tensor/random.h"

#include <cmath>
#include <numbers>

#include "infeed/train/tensor/tensor.h"

namespace infeed {
namespace {

// [0, 1) in steps of 2^-24: every value is exact in float32.
float unit_float(Philox& stream) noexcept { return static_cast<float>(stream.next_u32() >> 8) * 0x1p-24f; }

}  // namespace

Generator& default_generator() noexcept {
  thread_local Generator generator;
  return generator;
}

void manual_seed(std::uint64_t seed) noexcept { default_generator().manual_seed(seed); }

Tensor Tensor::uniform(const Shape& shape, float low, float high) {
  return uniform(shape, low, high, default_generator());
}

Tensor Tensor::uniform(const Shape& shape, float low, float high, Generator& generator) {
  Tensor result = empty(shape);
  Philox stream = generator.next_stream();
  float* const values = result.data<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) values[i] = low + (high - low) * unit_float(stream);
  return result;
}

Tensor Tensor::randn(const Shape& shape) { return randn(shape, default_generator()); }

// Box-Muller: two uniforms make two normals.
Tensor Tensor::randn(const Shape& shape, Generator& generator) {
  Tensor result = empty(shape);
  Philox stream = generator.next_stream();
  float* const values = result.data<float>();
  const std::int64_t n = result.numel();
  for (std::int64_t i = 0; i < n; i += 2) {
    const float radius = std::sqrt(-2.0f * std::log(1.0f - unit_float(stream)));
    const float angle = 2.0f * std::numbers::pi_v<float> * unit_float(stream);
    values[i] = radius * std::cos(angle);
    if (i + 1 < n) values[i + 1] = radius * std::sin(angle);
  }
  return result;
}

}  // namespace infeed
