#pragma once
/// Joining, cutting and moving whole parts of tensors; running sums and order. All differentiable.

#include <optional>
#include <span>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/autograd/reduction.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// One after another along `dim`; dtypes promote. g is cut the same way.
[[nodiscard]] INFEED_API Tensor cat(std::span<const Tensor> tensors, int dim = 0);
[[nodiscard]] inline Tensor cat(std::initializer_list<Tensor> tensors, int dim = 0) {
  return cat(std::span(tensors.begin(), tensors.size()), dim);
}
/// The same along a new dimension; shapes must be equal.
[[nodiscard]] INFEED_API Tensor stack(std::span<const Tensor> tensors, int dim = 0);
[[nodiscard]] inline Tensor stack(std::initializer_list<Tensor> tensors, int dim = 0) {
  return stack(std::span(tensors.begin(), tensors.size()), dim);
}

// Views: parts of one size (the last may be shorter), of given sizes, about n parts, and single items.
[[nodiscard]] INFEED_API std::vector<Tensor> split(const Tensor& x, std::int64_t split_size, int dim = 0);
[[nodiscard]] INFEED_API std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int dim = 0);
[[nodiscard]] INFEED_API std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, int dim = 0);
[[nodiscard]] INFEED_API std::vector<Tensor> unbind(const Tensor& x, int dim = 0);

[[nodiscard]] INFEED_API Tensor repeat(const Tensor& x, const Shape& repeats);  ///< tiles: g summed over them
[[nodiscard]] INFEED_API Tensor flip(const Tensor& x, const Dims& dims);        ///< g flipped
[[nodiscard]] INFEED_API Tensor roll(const Tensor& x, std::int64_t shift, int dim);
[[nodiscard]] INFEED_API Tensor triu(const Tensor& x,
                                     std::int64_t diagonal = 0);  ///< g where the result is not cleared
[[nodiscard]] INFEED_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
[[nodiscard]] INFEED_API Tensor cumsum(const Tensor& x, int dim);  ///< g summed from the end

[[nodiscard]] INFEED_API Tensor cumprod(const Tensor& x, int dim);  ///< by products one after another

enum class PadMode : std::uint8_t { kConstant, kReflect, kReplicate, kCircular };
/// `padding`: (before, after) of the last dimension, then of the one before it, ...; negative cuts.
[[nodiscard]] INFEED_API Tensor pad(const Tensor& x, std::span<const std::int64_t> padding,
                                    PadMode mode = PadMode::kConstant, double value = 0.0);

/// Sorted along `dim`, equal ones in their order, NaN last; g goes back by the indices.
[[nodiscard]] INFEED_API ValuesAndIndices sort(const Tensor& x, int dim = -1, bool descending = false);
[[nodiscard]] INFEED_API Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);
/// The k largest (or smallest), in order.
[[nodiscard]] INFEED_API ValuesAndIndices topk(const Tensor& x, std::int64_t k, int dim = -1, bool largest = true);

}  // namespace infeed
