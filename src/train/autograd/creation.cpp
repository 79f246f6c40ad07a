#include "infeed/train/autograd/creation.h"

#include <cmath>
#include <vector>

#include "infeed/train/autograd/in_place.h"
#include "train/kernels/copy.h"
#include "train/kernels/random.h"
#include "train/tensor/check.h"

namespace infeed {
namespace {

Tensor finished(Tensor x, const TensorOptions& options) {
  if (options.requires_grad) x.set_requires_grad();
  return x;
}

Generator& chosen(Generator* generator) { return generator == nullptr ? default_generator() : *generator; }

TensorOptions plain(const TensorOptions& options) {
  return {options.dtype.value_or(default_dtype()), options.device.value_or(default_device())};
}

Tensor from_doubles(const std::vector<double>& values, const TensorOptions& options) {
  const auto count = static_cast<std::int64_t>(values.size());
  Tensor out = Tensor::empty({count}, plain(options));
  kernels::copy(out, Tensor::from_values(std::span<const double>(values), {count}));
  return finished(out, options);
}

}  // namespace

Tensor empty_like(const Tensor& x, const TensorOptions& options) {
  const bool same_device = !options.device || *options.device == x.device();
  Tensor out = same_device
                   ? Tensor::empty_like(x, options.dtype)
                   : Tensor::empty(x.shape(), TensorOptions(options.dtype.value_or(x.dtype()), *options.device));
  return finished(out, options);
}
Tensor full_like(const Tensor& x, const Scalar& value, const TensorOptions& options) {
  TensorOptions unrecorded = options;
  unrecorded.requires_grad = false;
  Tensor out = empty_like(x, unrecorded);
  kernels::fill(out, value);
  return finished(out, options);
}
Tensor zeros_like(const Tensor& x, const TensorOptions& options) { return full_like(x, 0, options); }
Tensor ones_like(const Tensor& x, const TensorOptions& options) { return full_like(x, 1, options); }

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& given) {
  const bool real = start.is_float() || end.is_float() || step.is_float();
  TensorOptions options = given;
  if (!options.dtype) options.dtype = real ? default_dtype() : DType::kInt64;
  const double by = step.to_double();
  require(by != 0.0, "step must be nonzero");
  require(std::isfinite(start.to_double()) && std::isfinite(end.to_double()), "unsupported range: {} -> {}",
          start.to_double(), end.to_double());
  require((by > 0.0) == (end.to_double() >= start.to_double()) || start.to_double() == end.to_double(),
          "upper bound and lower bound inconsistent with step sign");
  const auto count = static_cast<std::int64_t>(std::ceil((end.to_double() - start.to_double()) / by));
  if (real) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      values[static_cast<std::size_t>(i)] = start.to_double() + static_cast<double>(i) * by;
    return from_doubles(values, options);
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = start.to_int() + i * step.to_int();
  Tensor out = Tensor::empty({count}, plain(options));
  kernels::copy(out, Tensor::from_values(std::span<const std::int64_t>(values), {count}));
  return finished(out, options);
}

Tensor Tensor::arange(std::int64_t n, DType dtype) { return infeed::arange(0, n, 1, dtype); }

// From both ends, as PyTorch: symmetric, and exact at the end.
Tensor linspace(double start, double end, std::int64_t steps, const TensorOptions& options) {
  require(steps >= 0, "number of steps must be non-negative");
  std::vector<double> values(static_cast<std::size_t>(steps));
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0.0;
  for (std::int64_t i = 0; i < steps; ++i)
    values[static_cast<std::size_t>(i)] = i < steps / 2 || steps == 1 ? start + step * static_cast<double>(i)
                                                                      : end - step * static_cast<double>(steps - 1 - i);
  return from_doubles(values, options);
}

Tensor eye(std::int64_t n, std::int64_t m, const TensorOptions& options) {
  Tensor out = Tensor::zeros({n, m < 0 ? n : m}, plain(options));
  out.diagonal().fill_(1);
  return finished(out, options);
}

Tensor scalar_tensor(const Scalar& value, const TensorOptions& given) {
  TensorOptions options = given;
  if (!options.dtype) options.dtype = value.is_float() ? default_dtype() : value.dtype();
  return Tensor::full({}, value, options);
}

Tensor rand(const Shape& shape, const TensorOptions& options, Generator* generator) {
  Tensor out = Tensor::empty(shape, plain(options));
  kernels::uniform(out, 0.0, 1.0, chosen(generator));
  return finished(out, options);
}

Tensor randn(const Shape& shape, const TensorOptions& options, Generator* generator) {
  Tensor out = Tensor::empty(shape, plain(options));
  kernels::normal(out, 0.0, 1.0, chosen(generator));
  return finished(out, options);
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, const TensorOptions& options,
               Generator* generator) {
  Tensor out = Tensor::empty(
      shape, TensorOptions(options.dtype.value_or(DType::kInt64), options.device.value_or(default_device())));
  kernels::integers(out, low, high, chosen(generator));
  return finished(out, options);
}

Tensor randperm(std::int64_t n, const TensorOptions& options, Generator* generator) {
  require(n >= 0, "n must be non-negative, got {}", n);
  Tensor out = Tensor::empty(
      {n}, TensorOptions(options.dtype.value_or(DType::kInt64), options.device.value_or(default_device())));
  const std::vector<std::int64_t> order = chosen(generator).engine().randperm(n);
  kernels::copy(out, Tensor::from_values(std::span<const std::int64_t>(order), {n}));
  return out;
}

// One number per element in the dtype of the chances: float64 draws 53 bits, others 24.
Tensor bernoulli(const Tensor& p, Generator* generator) {
  Tensor out = Tensor::empty_like(p);
  if (p.is_meta()) return out;
  const Tensor chances = p.detach().to(DType::kFloat64).contiguous();
  const Tensor drawn = Tensor::empty(p.shape(), TensorOptions(DType::kFloat64, DeviceId{}));
  TorchGenerator& engine = chosen(generator).engine();
  for (std::int64_t i = 0; i < p.numel(); ++i) {
    const double number =
        p.dtype() == DType::kFloat64 ? engine.uniform_double() : static_cast<double>(engine.uniform_float());
    drawn.data<double>()[i] = number < chances.data<double>()[i] ? 1.0 : 0.0;
  }
  kernels::copy(out, drawn);
  return out;
}

Tensor& uniform_(Tensor& x, double low, double high, Generator* generator) {
  check_in_place(x);
  kernels::uniform(x, low, high, chosen(generator));
  rebase_history(x, x.detach());
  return x;
}

Tensor& normal_(Tensor& x, double mean, double std, Generator* generator) {
  check_in_place(x);
  kernels::normal(x, mean, std, chosen(generator));
  rebase_history(x, x.detach());
  return x;
}

Tensor& bernoulli_(Tensor& x, double p, Generator* generator) {
  check_in_place(x);
  kernels::bernoulli(x, p, chosen(generator));
  rebase_history(x, x.detach());
  return x;
}

}  // namespace infeed
