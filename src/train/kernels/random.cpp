#include "train/kernels/random.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "train/kernels/copy.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed::kernels {
namespace {

// f writes C-contiguous elements on the host; others get a copy, devices too: one seed, the same numbers anywhere.
template <class F>
void in_c_order(const Tensor& out, F&& f) {
  if (out.is_meta()) return;
  if (out.is_contiguous() && !is_on_device(out)) return f(out);
  const Tensor plain = Tensor::empty(out.shape(), TensorOptions(out.dtype(), DeviceId{}));
  f(plain);
  copy(out, plain);
}

// Digits of the mantissa, which is how many random bits one number takes.
int digits_of(DType dtype) {
  return dtype == DType::kFloat64 ? 53 : dtype == DType::kFloat32 ? 24 : dtype == DType::kFloat16 ? 11 : 8;
}

// Draws of one dtype as double: exact for every dtype.
template <class T>
void draw_uniform(T* values, std::int64_t n, int digits, double low, double high, TorchGenerator& engine) {
  const T width = static_cast<T>(high) - static_cast<T>(low);
  const std::uint64_t mask = (std::uint64_t{1} << digits) - 1;
  const T unit = static_cast<T>(std::ldexp(1.0, -digits));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = digits == 53 ? engine.random64() : engine.random();
    values[i] = std::fma(static_cast<T>(bits & mask) * unit, width, static_cast<T>(low));  // rounded once, as PyTorch
  }
}

// Eight pairs of uniform numbers become sixteen normal ones, in place (Box and Muller).
template <class T>
void normal_block(T* values, double mean, double std) {
  for (int i = 0; i < 8; ++i) {
    const T radius = std::sqrt(T{-2} * std::log(T{1} - values[i]));
    const T angle = T{2} * std::numbers::pi_v<T> * values[i + 8];
    values[i] = radius * std::cos(angle) * static_cast<T>(std) + static_cast<T>(mean);
    values[i + 8] = radius * std::sin(angle) * static_cast<T>(std) + static_cast<T>(mean);
  }
}

template <class T>
void draw_normal(T* values, std::int64_t n, int digits, double mean, double std, TorchGenerator& engine) {
  draw_uniform(values, n, digits, 0.0, 1.0, engine);
  for (std::int64_t i = 0; i + 16 <= n; i += 16) normal_block(values + i, mean, std);
  if (n % 16 == 0) return;
  draw_uniform(values + n - 16, 16, digits, 0.0, 1.0, engine);  // the last sixteen anew
  normal_block(values + n - 16, mean, std);
}

// f(T* values, n) with T float or double; half dtypes are rounded from float.
template <class F>
void with_real(const Tensor& out, F&& f) {
  require(is_floating_point(out.dtype()), "\"uniform\" not implemented for '{}'", out.dtype());
  in_c_order(out, [&](const Tensor& plain) {
    if (plain.dtype() == DType::kFloat64) return f(plain.data<double>(), plain.numel());
    const bool exact = plain.dtype() == DType::kFloat32;
    const Tensor wide = exact ? plain : Tensor::empty(plain.shape(), TensorOptions(DType::kFloat32, DeviceId{}));
    f(wide.data<float>(), wide.numel());
    if (!exact) copy(plain, wide);
  });
}

}  // namespace

void uniform(const Tensor& out, double low, double high, Generator& generator) {
  require(low <= high, "uniform_ expects to return a [from, to) range, but found from={} > to={}", low, high);
  with_real(out, [&](auto* values, std::int64_t n) {
    draw_uniform(values, n, digits_of(out.dtype()), low, high, generator.engine());
  });
}

void normal(const Tensor& out, double mean, double std, Generator& generator) {
  require(std >= 0.0, "normal expects std >= 0.0, but found std {}", std);
  with_real(out, [&]<class T>(T* values, std::int64_t n) {
    if (n >= 16) return draw_normal(values, n, digits_of(out.dtype()), mean, std, generator.engine());
    for (std::int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(generator.normal() * std + mean);
  });
}

void integers(const Tensor& out, std::int64_t low, std::int64_t high, Generator& generator) {
  require(low < high, "random_ expects 'from' to be less than 'to', but got from={} >= to={}", low, high);
  in_c_order(out, [&](const Tensor& plain) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(plain.numel()));
    generator.engine().randint(low, high, values);
    copy(plain, Tensor::from_array(ArrayView(values.data(), DType::kInt64, plain.shape()), nullptr));
  });
}

void bernoulli(const Tensor& out, double p, Generator& generator) {
  require(p >= 0.0 && p <= 1.0, "bernoulli_ expects p to be in [0, 1], but got p={}", p);
  in_c_order(out, [&](const Tensor& plain) {
    std::vector<std::uint8_t> values(static_cast<std::size_t>(plain.numel()));
    for (std::uint8_t& value : values) value = generator.engine().uniform_double() < p ? 1 : 0;
    copy(plain, Tensor::from_array(ArrayView(values.data(), DType::kUInt8, plain.shape()), nullptr));
  });
}

}  // namespace infeed::kernels
