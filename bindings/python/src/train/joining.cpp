// Parts put together, cut apart and moved.

#include "binder.h"
#include "infeed/train/autograd/join.h"

namespace infeed::python {
namespace {

using Tensors = std::vector<Tensor>;

nb::tuple tuple_of(const Tensors& tensors) { return nb::tuple(nb::cast(tensors)); }

nb::tuple split_by(const Tensor& x, const nb::object& size, int dim) {
  if (PyIndex_Check(size.ptr())) return tuple_of(split(x, nb::cast<std::int64_t>(size), dim));
  const auto sizes = nb::cast<std::vector<std::int64_t>>(size);
  return tuple_of(split(x, std::span<const std::int64_t>(sizes), dim));
}

Tensor padded(const Tensor& x, const std::vector<std::int64_t>& padding, const std::string& mode,
              std::optional<double> value) {
  const PadMode how = mode == "constant"    ? PadMode::kConstant
                      : mode == "reflect"   ? PadMode::kReflect
                      : mode == "replicate" ? PadMode::kReplicate
                      : mode == "circular"  ? PadMode::kCircular
                                            : throw NotImplementedError("Unrecognised padding mode " + mode);
  return pad(x, padding, how, value.value_or(0.0));
}

void bind_joins(const Binder& to) {
  for (const char* name : {"cat", "concat"})
    to.module.def(
        name, [](const Tensors& tensors, int dim) { return cat(std::span<const Tensor>(tensors), dim); }, "tensors"_a,
        "dim"_a = 0);
  to.module.def(
      "stack", [](const Tensors& tensors, int dim) { return stack(std::span<const Tensor>(tensors), dim); },
      "tensors"_a, "dim"_a = 0);
  to.both("split", split_by, "tensor"_a, "split_size_or_sections"_a, "dim"_a = 0);
  to.both(
      "chunk", [](const Tensor& x, std::int64_t chunks, int dim) { return tuple_of(chunk(x, chunks, dim)); }, "input"_a,
      "chunks"_a, "dim"_a = 0);
  to.both(
      "unbind", [](const Tensor& x, int dim) { return tuple_of(unbind(x, dim)); }, "input"_a, "dim"_a = 0);
}

}  // namespace

void bind_joining(const Binder& to) {
  bind_joins(to);
  to.tensor.def("repeat", [](const Tensor& x, const nb::args& repeats) { return repeat(x, sizes_of(repeats)); });
  to.both(
      "flip", [](const Tensor& x, const Sizes& dims) { return flip(x, dims); }, "input"_a, "dims"_a);
  to.both(
      "roll", [](const Tensor& x, std::int64_t shift, int dim) { return roll(x, shift, dim); }, "input"_a, "shifts"_a,
      "dims"_a);
  to.both(
      "triu", [](const Tensor& x, std::int64_t diagonal) { return triu(x, diagonal); }, "input"_a, "diagonal"_a = 0);
  to.both(
      "tril", [](const Tensor& x, std::int64_t diagonal) { return tril(x, diagonal); }, "input"_a, "diagonal"_a = 0);
  to.both(
      "cumsum",
      [](const Tensor& x, int dim, std::optional<DType> dtype) { return cumsum(dtype ? x.to(*dtype) : x, dim); },
      "input"_a, "dim"_a, nb::kw_only(), "dtype"_a = nb::none());
  to.both(
      "cumprod",
      [](const Tensor& x, int dim, std::optional<DType> dtype) { return cumprod(dtype ? x.to(*dtype) : x, dim); },
      "input"_a, "dim"_a, nb::kw_only(), "dtype"_a = nb::none());
  to.module.def("pad", padded, "input"_a, "pad"_a, "mode"_a = "constant", "value"_a = nb::none());
}

}  // namespace infeed::python
