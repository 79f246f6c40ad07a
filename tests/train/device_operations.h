#pragma once
/// Operations to be compared on two devices.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed {

using Inputs = std::vector<Tensor>;
struct Operation {
  std::string name;
  std::vector<Tensor> inputs;  ///< floats are differentiated
  std::function<Tensor(const Inputs&)> run;
};

inline const Shape kMatrix{6, 7};
inline Operation of_one(const std::string& name, Tensor (*op)(const Tensor&),
                        const Tensor& x = spread_values(kMatrix)) {
  return {name, {x}, [op](const Inputs& in) { return op(in[0]); }};
}
inline Operation of_two(const std::string& name, Tensor (*op)(const Tensor&, const Tensor&)) {
  return {name, {spread_values(kMatrix, 1), spread_values(kMatrix, 2)}, [op](const Inputs& in) {
            return op(in[0], in[1]);
          }};
}

inline std::vector<Operation> elementwise_operations() {
  const Tensor x = spread_values(kMatrix), positive = abs(x) + 0.1;
  std::vector<Operation> all;
  for (const auto& [name, op] :
       std::vector<std::pair<const char*, Tensor (*)(const Tensor&)>>{{"neg", neg},
                                                                      {"abs", abs},
                                                                      {"sign", sign},
                                                                      {"square", square},
                                                                      {"exp", exp},
                                                                      {"expm1", expm1},
                                                                      {"sin", sin},
                                                                      {"cos", cos},
                                                                      {"tan", tan},
                                                                      {"tanh", tanh},
                                                                      {"sigmoid", sigmoid},
                                                                      {"erf", erf},
                                                                      {"floor", floor},
                                                                      {"ceil", ceil},
                                                                      {"round", round},
                                                                      {"trunc", trunc},
                                                                      {"relu", relu},
                                                                      {"silu", silu},
                                                                      {"logsigmoid", logsigmoid},
                                                                      {"logical_not", logical_not},
                                                                      {"isnan", isnan},
                                                                      {"isinf", isinf},
                                                                      {"isfinite", isfinite}})
    all.push_back(of_one(name, op));
  for (const auto& [name, op] :
       std::vector<std::pair<const char*, Tensor (*)(const Tensor&)>>{{"reciprocal", reciprocal},
                                                                      {"sqrt", sqrt},
                                                                      {"rsqrt", rsqrt},
                                                                      {"log", log},
                                                                      {"log2", log2},
                                                                      {"log10", log10},
                                                                      {"log1p", log1p}})
    all.push_back(of_one(name, op, positive));
  for (const auto& [name, op] :
       std::vector<std::pair<const char*, Tensor (*)(const Tensor&, const Tensor&)>>{{"mul", mul},
                                                                                     {"div", div},
                                                                                     {"maximum", maximum},
                                                                                     {"minimum", minimum},
                                                                                     {"atan2", atan2},
                                                                                     {"eq", eq},
                                                                                     {"ne", ne},
                                                                                     {"lt", lt},
                                                                                     {"le", le},
                                                                                     {"gt", gt},
                                                                                     {"ge", ge},
                                                                                     {"logical_and", logical_and},
                                                                                     {"logical_or", logical_or},
                                                                                     {"logical_xor", logical_xor}})
    all.push_back(of_two(name, op));
  const auto more = [&](const char* name, Inputs inputs, std::function<Tensor(const Inputs&)> run) {
    all.push_back({name, std::move(inputs), std::move(run)});
  };
  const Tensor row = spread_values({7}, 3), column = spread_values({6, 1}, 4);
  more("add, broadcast", {x, row}, [](const Inputs& in) { return add(in[0], in[1], 0.5); });
  more("sub, broadcast", {column, row}, [](const Inputs& in) { return in[0] - in[1]; });
  more("numbers", {x}, [](const Inputs& in) { return (2.0 - in[0] * 3.0) / 4.0 + 1; });
  more("pow", {positive}, [](const Inputs& in) { return pow(in[0], 1.5); });
  more("gelu", {x}, [](const Inputs& in) { return gelu(in[0]) + gelu(in[0], GeluKind::kTanh); });
  more("leaky_relu, elu, softplus", {x},
       [](const Inputs& in) { return leaky_relu(in[0]) + elu(in[0]) * softplus(in[0]); });
  more("clamp", {x}, [](const Inputs& in) { return clamp(in[0], Scalar(-0.5), Scalar(0.5)); });
  more("where", {x, row}, [](const Inputs& in) { return where(gt(in[0], 0.0), in[0], in[1]); });
  more("addcmul, addcdiv, lerp", {x, positive, row}, [](const Inputs& in) {
    return addcmul(in[0], in[1], in[2], 2) + addcdiv(in[0], in[2], in[1]) + lerp(in[0], in[2], 0.3);
  });
  return all;
}

inline std::vector<Operation> shaped_operations() {
  const Tensor x = spread_values({3, 4, 5}), a = spread_values({6, 4}, 2), b = spread_values({4, 5}, 3);
  return {
      {"sums",
       {x},
       [](const Inputs& in) {
         return sum(in[0], {0}) + sum(in[0], {0, 2}).view({4, 1}) + sum(in[0]);
       }},
      {"mean", {x}, [](const Inputs& in) { return mean(in[0], {1}, true) + mean(in[0]); }},
      {"amax", {x}, [](const Inputs& in) { return amax(in[0], {1}) + amin(in[0], {1}); }},
      {"var", {x}, [](const Inputs& in) { return var(in[0], {1}); }},
      {"logsumexp", {x}, [](const Inputs& in) { return logsumexp(in[0], {2}); }},
      {"argmax", {x}, [](const Inputs& in) { return argmax(in[0], 1); }},
      {"counts of bools",
       {x},
       [](const Inputs& in) {
         const Tensor positive = gt(in[0], 0.0);
         return sum(positive, {1}) + any(positive, 1).to(DType::kInt64) * 100 + all(positive, 1).to(DType::kInt64);
       }},
      {"softmax", {x}, [](const Inputs& in) { return nn::softmax(in[0], 1) + nn::softmax(in[0], 2); }},
      {"log_softmax", {x}, [](const Inputs& in) { return nn::log_softmax(in[0], -1); }},
      {"matmul", {a, b}, [](const Inputs& in) { return matmul(in[0], in[1]); }},
      {"matmul, transposed", {a, b}, [](const Inputs& in) { return matmul(in[1].t(), in[0].t()); }},
      {"bmm", {x}, [](const Inputs& in) { return matmul(in[0].transpose(1, 2), in[0]); }},
      {"views",
       {x},
       [](const Inputs& in) {
         return in[0].permute({2, 0, 1}).reshape({5, 12}).narrow(1, 2, 6).t().contiguous().view({5, 6}).select(0, 1);
       }},
      {"cat",
       {a, a},
       [](const Inputs& in) {
         return cat(std::vector<Tensor>{in[0], in[1] * 2.0}, 1);
       }},
      {"expand", {b}, [](const Inputs& in) {
         return in[0].unsqueeze(0).expand({3, 4, 5}) * 2.0;
       }}};
}

inline std::vector<Operation> layer_operations() {
  const Tensor x = spread_values({2, 4, 7, 6}), w = spread_values({6, 2, 3, 2}, 2), b = spread_values({6}, 3);
  const Tensor rows = spread_values({5, 8}), weight = spread_values({3, 8}, 2), bias = spread_values({3}, 3);
  const Tensor labels = Tensor::from_values<std::int64_t>({2, 0, -100, 7, 1});
  const Tensor scale = spread_values({4}, 6), shift = spread_values({4}, 7);
  return {
      {"linear", {rows, weight, bias}, [](const Inputs& in) { return nn::linear(in[0], in[1], in[2]); }},
      {"linear with relu",
       {rows, weight, bias},
       [](const Inputs& in) { return nn::linear(in[0], in[1], in[2], nn::Activation::kRelu); }},
      {"conv2d",
       {x, w, b},
       [](const Inputs& in) {
         return nn::conv2d(in[0], in[1], in[2], {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
       }},
      {"conv2d with relu",
       {x, w, b},
       [](const Inputs& in) {
         return nn::conv2d(in[0], in[1], in[2], {.groups = 2, .activation = nn::Activation::kRelu});
       }},
      {"max_pool2d",
       {x},
       [](const Inputs& in) {
         return nn::max_pool2d(in[0], {3, 2}, {.stride = 2, .padding = 1, .ceil_mode = true});
       }},
      {"avg_pool2d", {x}, [](const Inputs& in) { return nn::avg_pool2d(in[0], 3, {.stride = 2, .padding = 1}); }},
      {"adaptive_avg_pool2d",
       {x},
       [](const Inputs& in) {
         return nn::adaptive_avg_pool2d(in[0], {7, 3});
       }},
      {"batch_norm",
       {x, scale, shift},
       [](const Inputs& in) { return nn::batch_norm(in[0], {}, {}, in[1], in[2], {.training = true}); }},
      {"layer_norm", {rows}, [](const Inputs& in) { return nn::layer_norm(in[0], {8}); }},
      {"dropout",
       {rows},
       [](const Inputs& in) {
         Generator generator(7);
         return nn::dropout(in[0], 0.5, true, &generator);
       }},
      {"cross_entropy", {rows, labels}, [](const Inputs& in) { return nn::cross_entropy(in[0], in[1]); }},
      {"cross_entropy, smoothed",
       {rows, labels},
       [](const Inputs& in) { return nn::cross_entropy(in[0], in[1], {.label_smoothing = 0.2}); }},
      {"cross_entropy, summed",
       {rows, labels},
       [](const Inputs& in) { return nn::cross_entropy(in[0], in[1], {.reduction = nn::Reduction::kSum}); }},
      {"nll_loss", {rows, labels}, [](const Inputs& in) { return nn::nll_loss(nn::log_softmax(in[0], 1), in[1]); }},
      {"mse_loss", {rows, rows * 0.5}, [](const Inputs& in) { return nn::mse_loss(in[0], in[1]); }},
      {"binary_cross_entropy_with_logits", {rows, rows * 0.5}, [](const Inputs& in) {
         return nn::binary_cross_entropy_with_logits(in[0], in[1]);
       }}};
}

/// What need not have kernels.
inline std::vector<Operation> other_operations() {
  const Tensor x = spread_values({4, 6}), half = x.to(DType::kFloat16), wide = x.to(DType::kFloat64);
  const Tensor counts = Tensor::arange(24).view({4, 6}), at = Tensor::from_values<std::int64_t>({3, 0, 1});
  const Tensor image = spread_values({1, 2, 6, 6});
  const auto one = [](auto op) { return [op](const Inputs& in) { return op(in[0]); }; };
  return {{"sort", {x}, one([](const Tensor& t) { return sort(t).values; })},
          {"topk", {x}, one([](const Tensor& t) { return topk(t, 2).values; })},
          {"argmin", {x}, one([](const Tensor& t) { return argmin(t, 1); })},
          {"prod", {x}, one([](const Tensor& t) { return prod(t); })},
          {"any", {x}, one([](const Tensor& t) { return any(gt(t, 0.0)); })},
          {"cumsum", {x}, one([](const Tensor& t) { return cumsum(t, 1); })},
          {"flip", {x}, one([](const Tensor& t) { return flip(t, {1}); })},
          {"tril", {x}, one([](const Tensor& t) { return tril(t); })},
          {"nonzero", {x}, one(nonzero)},
          {"equal", {x}, one([](const Tensor& t) { return Tensor(equal(t, t) ? 1.0 : 0.0); })},
          {"masked_select", {x}, one([](const Tensor& t) { return masked_select(t, gt(t, 0.0)); })},
          {"index_select", {x, at}, [](const Inputs& in) { return index_select(in[0], 0, in[1]); }},
          {"gather", {x, at.view({1, 3})}, [](const Inputs& in) { return gather(in[0], 0, in[1]); }},
          {"x[at]", {x, at}, [](const Inputs& in) { return in[0].index({in[1]}); }},
          {"embedding", {at, x}, [](const Inputs& in) { return nn::embedding(in[0], in[1]); }},
          {"remainder", {x}, one([](const Tensor& t) { return remainder(t, 0.3); })},
          {"bitwise_not", {counts}, one(bitwise_not)},
          {"integers", {counts}, one([](const Tensor& t) { return t * 2 + 1; })},
          {"sum of integers", {counts}, one([](const Tensor& t) { return sum(t); })},
          {"float16", {half}, one([](const Tensor& t) { return t * t; })},
          {"float64", {wide}, one([](const Tensor& t) { return exp(t) * t; })},
          {"matmul of float64", {wide}, one([](const Tensor& t) { return matmul(t, t.t()); })},
          {"conv_transpose2d",
           {image, spread_values({2, 1, 2, 2})},
           [](const Inputs& in) { return nn::conv_transpose2d(in[0], in[1]); }},
          {"max_pool2d_with_indices", {image}, one([](const Tensor& t) {
             return nn::max_pool2d_with_indices(t, 2).values;
           })},
          {"dilated max_pool2d", {image}, one([](const Tensor& t) { return nn::max_pool2d(t, 2, {.dilation = 2}); })},
          {"adaptive_max_pool2d", {image}, one([](const Tensor& t) {
             return nn::adaptive_max_pool2d(t, {4, 4}).values;
           })},
          {"attention", {image}, one([](const Tensor& t) { return nn::scaled_dot_product_attention(t, t, t); })},
          {"numpy's bytes", {x}, one([](const Tensor& t) { return Tensor::from_array(t.array(), nullptr).clone(); })}};
}

}  // namespace infeed
