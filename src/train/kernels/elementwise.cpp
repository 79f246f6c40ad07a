#include "train/kernels/elementwise.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "infeed/base/error.h"
#include "train/kernels/loop.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed::kernels {
namespace {

template <class T>
const T& in(const std::byte* data) noexcept {
  return *reinterpret_cast<const T*>(data);
}

// r = f(a, b). The branches are the layouts worth their own loop: all dense, and one side repeated.
template <class R, class T, class F>
void map2(const Run<3>& run, F f) {
  auto* const r = reinterpret_cast<R*>(run.data[0]);
  const auto* const a = reinterpret_cast<const T*>(run.data[1]);
  const auto* const b = reinterpret_cast<const T*>(run.data[2]);
  constexpr std::int64_t kDense = sizeof(T);
  const bool dense_r = run.stride[0] == static_cast<std::int64_t>(sizeof(R));
  if (dense_r && run.stride[1] == kDense && run.stride[2] == kDense) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < run.count; ++i) r[i] = f(a[i], b[i]);
  } else if (dense_r && run.stride[1] == kDense && run.stride[2] == 0) {
    const T value = *b;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < run.count; ++i) r[i] = f(a[i], value);
  } else {
    for (std::int64_t i = 0; i < run.count; ++i)
      *reinterpret_cast<R*>(run.data[0] + i * run.stride[0]) =
          f(in<T>(run.data[1] + i * run.stride[1]), in<T>(run.data[2] + i * run.stride[2]));
  }
}

template <class T, class F>
void map1(const Run<2>& run, F f) {
  auto* const r = reinterpret_cast<T*>(run.data[0]);
  const auto* const x = reinterpret_cast<const T*>(run.data[1]);
  constexpr std::int64_t kDense = sizeof(T);
  if (run.stride[0] == kDense && run.stride[1] == kDense) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < run.count; ++i) r[i] = f(x[i]);
  } else {
    for (std::int64_t i = 0; i < run.count; ++i)
      *reinterpret_cast<T*>(run.data[0] + i * run.stride[0]) = f(in<T>(run.data[1] + i * run.stride[1]));
  }
}

template <class F>
void with_float(std::string_view op, DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(float{});
  if (dtype == DType::kFloat64) return f(double{});
  throw ConfigError(
      fmt::format("{}: dtype {} is not supported, convert with to(DType::kFloat32).", op, to_string(dtype)));
}

template <class F>
void with_number(std::string_view op, DType dtype, F&& f) {
  if (dtype == DType::kInt64) return f(std::int64_t{});
  if (dtype == DType::kInt32) return f(std::int32_t{});
  return with_float(op, dtype, f);
}

void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    throw ConfigError(fmt::format("{}: dtypes {} and {} differ (shapes {} and {}); convert one with to().", op,
                                  to_string(a.dtype()), to_string(b.dtype()), a.shape().str(), b.shape().str()));
}

Loop<3> loop_over(const Tensor& out, const Tensor& a, const Tensor& b) {
  return Loop<3>(out.shape(), {&out, &a, &b},
                 {out.strides(), broadcast_strides(a.shape(), a.strides(), out.shape()),
                  broadcast_strides(b.shape(), b.strides(), out.shape())});
}

// Shape by broadcasting; layout of whichever operand already has that shape.
Tensor empty_for(std::string_view op, const Tensor& a, const Tensor& b, DType dtype) {
  const Shape shape = broadcast_shape(op, a.shape(), b.shape());
  for (const Tensor* like : {&a, &b}) {
    if (like->shape() != shape || !is_dense(shape, like->strides())) continue;
    if (like->dtype() == dtype) return Tensor::empty_like(*like);
    if (like->is_contiguous(MemoryFormat::kChannelsLast))
      return Tensor::empty(shape, dtype, MemoryFormat::kChannelsLast);
  }
  return Tensor::empty(shape, dtype);
}

template <class T>
void run_binary(BinaryOp op, const Loop<3>& loop, T alpha) {
  const auto each = [&](auto f) { loop.run([f](const Run<3>& run) { map2<T, T>(run, f); }); };
  switch (op) {
    case BinaryOp::kAdd:
      return alpha == T{1} ? each(std::plus<T>()) : each([alpha](T a, T b) { return a + alpha * b; });
    case BinaryOp::kSub: return each(std::minus<T>());
    case BinaryOp::kMul: return each(std::multiplies<T>());
    case BinaryOp::kDiv: return each(std::divides<T>());
  }
}

void dispatch_binary(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b, double alpha) {
  check_same_dtype(name_of(op), a, b);
  const auto run = [&]<class T>(T) { run_binary<T>(op, loop_over(out, a, b), static_cast<T>(alpha)); };
  op == BinaryOp::kDiv ? with_float(name_of(op), a.dtype(), run) : with_number(name_of(op), a.dtype(), run);
}

}  // namespace

std::string_view name_of(BinaryOp op) noexcept {
  switch (op) {
    case BinaryOp::kAdd: return "add";
    case BinaryOp::kSub: return "sub";
    case BinaryOp::kMul: return "mul";
    case BinaryOp::kDiv: return "div";
  }
  return "?";
}

Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b) {
  Tensor out = empty_for(name_of(op), a, b, a.dtype());
  dispatch_binary(op, out, a, b, 1.0);
  return out;
}

void binary_into(BinaryOp op, const Tensor& out, const Tensor& b, double alpha) {
  if (broadcast_shape(name_of(op), out.shape(), b.shape()) != out.shape())
    throw ConfigError(fmt::format("in-place {}: shape {} does not broadcast to {}.", name_of(op), b.shape().str(),
                                  out.shape().str()));
  dispatch_binary(op, out, out, b, alpha);
}

Tensor compare(CompareOp op, const Tensor& a, const Tensor& b) {
  check_same_dtype("compare", a, b);
  Tensor out = empty_for("compare", a, b, DType::kBool);
  with_number("compare", a.dtype(), [&]<class T>(T) {
    const Loop<3> loop = loop_over(out, a, b);
    const auto each = [&](auto f) { loop.run([f](const Run<3>& run) { map2<bool, T>(run, f); }); };
    switch (op) {
      case CompareOp::kEq: return each(std::equal_to<T>());
      case CompareOp::kLt: return each(std::less<T>());
      case CompareOp::kGt: return each(std::greater<T>());
    }
  });
  return out;
}

Tensor unary(UnaryOp op, const Tensor& x) {
  Tensor out = Tensor::empty_like(x);
  const Loop<2> loop(x.shape(), {&out, &x}, {out.strides(), x.strides()});
  with_float("unary", x.dtype(), [&]<class T>(T) {
    const auto each = [&](auto f) { loop.run([f](const Run<2>& run) { map1<T>(run, f); }); };
    switch (op) {
      case UnaryOp::kRelu: return each([](T v) { return v < T{0} ? T{0} : v; });  // NaN stays
      case UnaryOp::kExp: return each([](T v) { return std::exp(v); });
      case UnaryOp::kLog: return each([](T v) { return std::log(v); });
      case UnaryOp::kReciprocal: return each([](T v) { return T{1} / v; });
    }
  });
  return out;
}

void affine(const Tensor& out, const Tensor& x, double scale, double shift) {
  const Loop<2> loop(x.shape(), {&out, &x}, {out.strides(), x.strides()});
  with_number("affine", x.dtype(), [&]<class T>(T) {
    const T s = static_cast<T>(scale);
    const T t = static_cast<T>(shift);
    if (static_cast<double>(s) != scale && !std::is_floating_point_v<T>)
      throw ConfigError(
          fmt::format("a factor of {} needs a floating-point tensor, this one is {}.", scale, to_string(x.dtype())));
    loop.run([=](const Run<2>& run) { map1<T>(run, [=](T v) { return static_cast<T>(v * s + t); }); });
  });
}

Tensor relu_backward(const Tensor& grad, const Tensor& y) {
  Tensor out = Tensor::empty_like(y);
  const Loop<3> loop(y.shape(), {&out, &grad, &y}, {out.strides(), grad.strides(), y.strides()});
  with_float("relu", y.dtype(), [&]<class T>(T) {
    loop.run([](const Run<3>& run) { map2<T, T>(run, [](T g, T v) { return v > T{0} ? g : T{0}; }); });
  });
  return out;
}

}  // namespace infeed::kernels
