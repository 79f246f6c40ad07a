#include "infeed/train/tensor/random.h"

#include <array>
#include <cmath>
#include <numbers>

#include "infeed/train/tensor/tensor.h"
#include "train/kernels/convert.h"
#include "train/kernels/random.h"

namespace infeed {

double Generator::normal() {
  if (next_normal_) {
    const double value = *next_normal_;
    next_normal_.reset();
    return value;
  }
  const double u1 = engine_.uniform_double();
  const double u2 = engine_.uniform_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double angle = 2.0 * std::numbers::pi * u1;
  next_normal_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

Generator& default_generator() noexcept {
  static Generator generator;
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

Tensor Tensor::uniform(const Shape& shape, double low, double high) {
  return uniform(shape, low, high, default_generator());
}

Tensor Tensor::uniform(const Shape& shape, double low, double high, Generator& generator) {
  Tensor result = empty(shape);
  kernels::uniform(result, low, high, generator);
  return result;
}

Tensor Tensor::randn(const Shape& shape, const TensorOptions& options) {
  return randn(shape, default_generator(), options);
}

Tensor Tensor::randn(const Shape& shape, Generator& generator, const TensorOptions& options) {
  Tensor result = empty(shape, options);
  kernels::normal(result, 0.0, 1.0, generator);
  return result;
}

}  // namespace infeed
