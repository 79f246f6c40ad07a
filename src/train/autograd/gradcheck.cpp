#include "infeed/train/autograd/gradcheck.h"

#include <cmath>

#include "infeed/train/autograd/backward.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"
#include "train/kernels/copy.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Adds `step` to element i, unseen by the version.
void shift(const Tensor& x, std::int64_t i, double step) {
  const Tensor place = alias(x, i, {}, {});
  kernels::copy(place, Tensor::full({}, place.item() + step, x.dtype()));
}

Tensor unit(const Tensor& like, std::int64_t i) {
  Tensor one = Tensor::zeros(like.shape(), like.options());
  shift(one, i, 1.0);
  return one;
}

std::vector<double> values_of(const Tensor& x) {
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  kernels::copy(Tensor::from_array(ArrayView(values.data(), DType::kFloat64, x.shape()), nullptr), x.detach());
  return values;
}

// d outputs[k] / d x[i] for all elements of the output.
std::vector<double> slopes(const Function& f, const std::vector<Tensor>& inputs, std::size_t k, const Tensor& x,
                           std::int64_t i, double eps) {
  const auto at = [&](double step) {
    shift(x, i, step);
    std::vector<double> values = values_of(f(inputs)[k]);
    shift(x, i, -step);
    return values;
  };
  std::vector<double> above = at(eps);
  const std::vector<double> below = at(-eps);
  for (std::size_t j = 0; j < above.size(); ++j) above[j] = (above[j] - below[j]) / (2.0 * eps);
  return above;
}

std::string compare(const Function& f, const std::vector<Tensor>& inputs, std::size_t k, std::size_t n,
                    const GradcheckOptions& options) {
  const Tensor output = f(inputs)[k];
  std::vector<std::vector<double>> analytical;  // by element of the output
  for (std::int64_t j = 0; j < output.numel(); ++j) {
    const Tensor g =
        grad({&output, 1}, {&inputs[n], 1}, {unit(output, j)}, {.retain_graph = true, .materialize_grads = true})
            .front();
    analytical.push_back(values_of(g));
  }
  for (std::int64_t i = 0; i < inputs[n].numel(); ++i) {
    const std::vector<double> numerical = slopes(f, inputs, k, inputs[n], i, options.eps);
    for (std::size_t j = 0; j < numerical.size(); ++j) {
      const double found = analytical[j][static_cast<std::size_t>(i)];
      if (!(std::fabs(found - numerical[j]) <= options.atol + options.rtol * std::fabs(numerical[j])))
        return fmt::format(
            "Jacobian mismatch for output {} with respect to input {}: element {} by {}: numerical {}, analytical {}",
            k, n, j, i, numerical[j], found);
    }
  }
  return "";
}

}  // namespace

std::string gradcheck_failure(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const EnableGradGuard recording;
  const std::vector<Tensor> outputs = f(inputs);
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    if (!inputs[n].requires_grad()) continue;
    require(inputs[n].is_contiguous(), "gradcheck: input {} must be contiguous", n);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k].requires_grad()) continue;
      if (std::string failure = compare(f, inputs, k, n, options); !failure.empty()) return failure;
    }
  }
  return "";
}

bool gradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const std::string failure = gradcheck_failure(f, inputs, options);
  require(failure.empty(), "{}", failure);
  return true;
}

bool gradgradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const auto first = [&](const std::vector<Tensor>& in) {
    std::vector<Tensor> wanted;
    for (const Tensor& input : in) {
      if (input.requires_grad()) wanted.push_back(input);
    }
    Tensor total;
    for (const Tensor& output : f(in)) {  // weighed, so that elements count differently
      const Tensor weights = linspace(0.5, 1.5, output.numel(), output.options()).view(output.shape());
      total = total.defined() ? total + sum(output * weights) : sum(output * weights);
    }
    return grad({&total, 1}, wanted, {}, {.create_graph = true, .materialize_grads = true});
  };
  return gradcheck(first, inputs, options);
}

}  // namespace infeed
