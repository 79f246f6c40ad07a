// Sums, extremes and the like. `dim` may be absent, a number or a tuple.

#include "infeed/train/autograd/reduction.h"

#include "binder.h"
#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/join.h"

namespace infeed::python {
namespace {

using Dim = std::optional<Sizes>;

// A named tuple (values, indices), made once.
nb::object pair_of(const ValuesAndIndices& pair) {
  static PyObject* const type = nb::module_::import_("collections")
                                    .attr("namedtuple")("values_and_indices", nb::make_tuple("values", "indices"))
                                    .release()
                                    .ptr();
  return nb::handle(type)(nb::cast(pair.values), nb::cast(pair.indices));
}

void bind_sums(const Binder& to) {
  to.both(
      "sum",
      [](const Tensor& x, const Dim& dim, bool keepdim, std::optional<DType> dtype) {
        const Unlocked unlocked(x);
        return dim && !dim->empty() ? sum(x, *dim, keepdim, dtype) : sum(x, dtype);
      },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(), "dtype"_a = nb::none());
  to.both(
      "mean",
      [](const Tensor& x, const Dim& dim, bool keepdim, std::optional<DType> dtype) {
        const Unlocked unlocked(x);
        return dim && !dim->empty() ? mean(x, *dim, keepdim, dtype) : mean(x, dtype);
      },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(), "dtype"_a = nb::none());
  to.both(
      "prod",
      [](const Tensor& x, std::optional<int> dim, bool keepdim, std::optional<DType> dtype) {
        const Tensor of = dtype ? x.to(*dtype) : x;
        return dim ? prod(of, *dim, keepdim) : prod(of);
      },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(), "dtype"_a = nb::none());
  to.both(
      "logsumexp", [](const Tensor& x, const Sizes& dim, bool keepdim) { return logsumexp(x, dim, keepdim); },
      "input"_a, "dim"_a, "keepdim"_a = false);
}

using Spread = Tensor (*)(const Tensor&, const Dims&, double, bool);

// var(x), var(x, unbiased), var(x, dim, unbiased, keepdim), var(x, dim, correction=1).
template <Spread op>
void bind_spread(const Binder& to, const char* name) {
  to.both(
      name,
      [](const Tensor& x, const nb::object& dim, std::optional<bool> unbiased, bool keepdim,
         std::optional<double> correction) {
        Sizes dims;
        const bool flag_first = PyBool_Check(dim.ptr()) != 0;
        if (!dim.is_none() && !flag_first && !to_sizes(dim, dims))
          throw nb::type_error("dim must be an int or a tuple of ints");
        if (flag_first) unbiased = dim.ptr() == Py_True;
        return op(x, dims, correction.value_or(unbiased.value_or(true) ? 1.0 : 0.0), keepdim);
      },
      "input"_a, "dim"_a = nb::none(), "unbiased"_a = nb::none(), "keepdim"_a = false, nb::kw_only(),
      "correction"_a = nb::none());
}

double order_of(const nb::object& p) {
  if (p.is_none() || (nb::isinstance<nb::str>(p) && nb::cast<std::string>(p) == "fro")) return 2.0;
  return nb::cast<double>(p);
}

void bind_norm(const Binder& to) {
  to.both(
      "norm",
      [](const Tensor& x, const nb::object& p, const Dim& dim, bool keepdim, std::optional<DType> dtype) {
        return norm(dtype ? x.to(*dtype) : x, order_of(p), dim.value_or(Sizes{}), keepdim);
      },
      "input"_a, "p"_a = 2.0, "dim"_a = nb::none(), "keepdim"_a = false, "dtype"_a = nb::none());
  to.module.def(
      "vector_norm",
      [](const Tensor& x, double ord, const Dim& dim, bool keepdim) {
        return norm(x, ord, dim.value_or(Sizes{}), keepdim);
      },
      "x"_a, "ord"_a = 2.0, "dim"_a = nb::none(), "keepdim"_a = false);
}

using Extreme = ValuesAndIndices (*)(const Tensor&, int, bool);
using Extremes = Tensor (*)(const Tensor&);
using Larger = Tensor (*)(const Tensor&, const Tensor&);

// max(x), max(x, dim), max(x, other).
template <Extremes all, Extreme along, Larger larger>
void bind_extreme(const Binder& to, const char* name) {
  to.both(
      name,
      [](const Tensor& x, const nb::object& dim, bool keepdim) -> nb::object {
        if (dim.is_none()) return nb::cast(all(x));
        if (is_tensor(dim)) return nb::cast(larger(x, tensor_of(dim)));
        return pair_of(along(x, nb::cast<int>(dim), keepdim));
      },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false);
}

Dims all_dims(const Tensor& x, const Dim& dim) {
  Dims dims;
  if (dim && !dim->empty()) return *dim;
  for (int i = 0; i < x.ndim(); ++i) dims.push_back(i);
  return dims;
}

void bind_extremes(const Binder& to) {
  bind_extreme<max, max, maximum>(to, "max");
  bind_extreme<min, min, minimum>(to, "min");
  to.both(
      "amax", [](const Tensor& x, const Dim& dim, bool keepdim) { return amax(x, all_dims(x, dim), keepdim); },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false);
  to.both(
      "amin", [](const Tensor& x, const Dim& dim, bool keepdim) { return amin(x, all_dims(x, dim), keepdim); },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false);
  to.both(
      "argmax", [](const Tensor& x, std::optional<int> dim, bool keepdim) { return argmax(x, dim, keepdim); },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false);
  to.both(
      "argmin", [](const Tensor& x, std::optional<int> dim, bool keepdim) { return argmin(x, dim, keepdim); },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false);
}

void bind_order(const Binder& to) {
  to.both(
      "sort", [](const Tensor& x, int dim, bool descending, bool) { return pair_of(sort(x, dim, descending)); },
      "input"_a, "dim"_a = -1, "descending"_a = false, "stable"_a = true);
  to.both(
      "argsort", [](const Tensor& x, int dim, bool descending, bool) { return argsort(x, dim, descending); }, "input"_a,
      "dim"_a = -1, "descending"_a = false, "stable"_a = true);
  to.both(
      "topk",
      [](const Tensor& x, std::int64_t k, int dim, bool largest, bool) { return pair_of(topk(x, k, dim, largest)); },
      "input"_a, "k"_a, "dim"_a = -1, "largest"_a = true, "sorted"_a = true);
}

}  // namespace

void bind_reduction(const Binder& to) {
  bind_sums(to);
  bind_spread<var>(to, "var");
  bind_spread<std>(to, "std");
  bind_norm(to);
  bind_extremes(to);
  bind_order(to);
  to.both(
      "any", [](const Tensor& x, std::optional<int> dim, bool keepdim) { return dim ? any(x, *dim, keepdim) : any(x); },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false);
  to.both(
      "all", [](const Tensor& x, std::optional<int> dim, bool keepdim) { return dim ? all(x, *dim, keepdim) : all(x); },
      "input"_a, "dim"_a = nb::none(), "keepdim"_a = false);
  to.both(
      "count_nonzero", [](const Tensor& x, const Dim& dim) { return dim ? sum(ne(x, 0), *dim) : count_nonzero(x); },
      "input"_a, "dim"_a = nb::none());
}

}  // namespace infeed::python
