#pragma once
/// Elementwise arithmetic, without recording. Outputs are new unless a function says otherwise.

#include <string_view>

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

enum class BinaryOp : std::uint8_t { kAdd, kSub, kMul, kDiv };
enum class CompareOp : std::uint8_t { kEq, kLt, kGt };
enum class UnaryOp : std::uint8_t { kRelu, kExp, kLog, kReciprocal };

[[nodiscard]] std::string_view name_of(BinaryOp op) noexcept;

/// a op b, broadcast. Throws ConfigError on different or unsupported dtypes, or shapes that do not broadcast.
[[nodiscard]] Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b);
/// out op= b * alpha (kAdd), out op= b (others); b broadcasts to out.
void binary_into(BinaryOp op, const Tensor& out, const Tensor& b, double alpha = 1.0);
[[nodiscard]] Tensor compare(CompareOp op, const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor unary(UnaryOp op, const Tensor& x);
/// x * scale + shift, into `out`, which may be x.
void affine(const Tensor& out, const Tensor& x, double scale, double shift);
/// grad where y > 0, else 0: ReLU's backward from its output.
[[nodiscard]] Tensor relu_backward(const Tensor& grad, const Tensor& y);

}  // namespace infeed::kernels
