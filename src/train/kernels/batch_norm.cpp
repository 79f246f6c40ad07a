#include "train/kernels/batch_norm.h"

#include <bit>

#include "train/kernels/primitive.h"

namespace infeed::kernels {
namespace {

using dnnl::memory;
using dnnl::normalization_flags;
using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;

normalization_flags flags_of(bool training, bool relu) {
  auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  if (!training) flags = flags | normalization_flags::use_global_stats;
  if (relu) flags = flags | normalization_flags::fuse_norm_relu;
  return flags;
}

Forward::primitive_desc describe_forward(const memory::desc& x, double eps, bool training, bool relu) {
  const auto kind = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  return forward_desc<Forward>(user_scratchpad(), kind, x, x, static_cast<float>(eps), flags_of(training, relu));
#else
  return forward_desc<Forward>(user_scratchpad(), kind, x, static_cast<float>(eps), flags_of(training, relu));
#endif
}

Backward::primitive_desc describe_backward(const memory::desc& x, double eps, bool relu) {
  const auto hint = describe_forward(x, eps, true, relu);
  const auto kind = dnnl::prop_kind::backward;
#if DNNL_VERSION_MAJOR >= 3
  return backward_desc<Backward>(hint, kind, x, x, x, static_cast<float>(eps), flags_of(true, relu));
#else
  return backward_desc<Backward>(hint, kind, x, x, static_cast<float>(eps), flags_of(true, relu));
#endif
}

memory::desc per_channel(const Tensor& x) {
  return memory::desc({x.size(1)}, memory::data_type::f32, memory::format_tag::a);
}

struct Entry {
  Primitive primitive;
  std::int64_t mask_bytes;
};

Entry make_forward(const Tensor& x, double eps, bool training, bool relu) {
  const auto desc = describe_forward(describe(x), eps, training, relu);
  const auto channels = per_channel(x);
  const auto mask = desc.workspace_desc();
  const bool with_mask = mask.get_size() != 0;
  const std::initializer_list<Primitive::Argument> all = {{DNNL_ARG_SRC, describe(x)}, {DNNL_ARG_DST, describe(x)},
                                                          {DNNL_ARG_SCALE, channels},  {DNNL_ARG_SHIFT, channels},
                                                          {DNNL_ARG_MEAN, channels},   {DNNL_ARG_VARIANCE, channels},
                                                          {DNNL_ARG_WORKSPACE, mask}};
  const std::initializer_list<Primitive::Argument> without_mask = {
      {DNNL_ARG_SRC, describe(x)}, {DNNL_ARG_DST, describe(x)}, {DNNL_ARG_SCALE, channels},
      {DNNL_ARG_SHIFT, channels},  {DNNL_ARG_MEAN, channels},   {DNNL_ARG_VARIANCE, channels}};
  return {Primitive(Forward(desc), desc, with_mask ? all : without_mask), static_cast<std::int64_t>(mask.get_size())};
}

Primitive make_backward(const Tensor& x, double eps, bool relu) {
  const auto desc = describe_backward(describe(x), eps, relu);
  const auto c = per_channel(x);
  const std::initializer_list<Primitive::Argument> all = {{DNNL_ARG_SRC, describe(x)},
                                                          {DNNL_ARG_DIFF_DST, describe(x)},
                                                          {DNNL_ARG_DIFF_SRC, describe(x)},
                                                          {DNNL_ARG_SCALE, c},
                                                          {DNNL_ARG_SHIFT, c},
                                                          {DNNL_ARG_MEAN, c},
                                                          {DNNL_ARG_VARIANCE, c},
                                                          {DNNL_ARG_DIFF_SCALE, c},
                                                          {DNNL_ARG_DIFF_SHIFT, c},
                                                          {DNNL_ARG_WORKSPACE, desc.workspace_desc()}};
  const std::initializer_list<Primitive::Argument> without_mask = {{DNNL_ARG_SRC, describe(x)},
                                                                   {DNNL_ARG_DIFF_DST, describe(x)},
                                                                   {DNNL_ARG_DIFF_SRC, describe(x)},
                                                                   {DNNL_ARG_SCALE, c},
                                                                   {DNNL_ARG_SHIFT, c},
                                                                   {DNNL_ARG_MEAN, c},
                                                                   {DNNL_ARG_VARIANCE, c},
                                                                   {DNNL_ARG_DIFF_SCALE, c},
                                                                   {DNNL_ARG_DIFF_SHIFT, c}};
  return Primitive(Backward(desc), desc, relu ? all : without_mask);
}

Key key_of(const Tensor& x, double eps, int variant) {
  return Key().add(x).add(static_cast<std::int64_t>(x.dtype())).add(std::bit_cast<std::int64_t>(eps)).add(variant);
}

Entry& forward_entry(const Tensor& x, double eps, bool training, bool relu) {
  thread_local Cache<Entry> cache;
  return cache.get(key_of(x, eps, (training ? 1 : 0) + (relu ? 2 : 0)),
                   [&] { return make_forward(x, eps, training, relu); });
}

}  // namespace

BatchNormResult batch_norm_train(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps, bool relu) {
  Entry& entry = forward_entry(x, eps, true, relu);
  BatchNormResult result{Tensor::empty_like(x), Tensor::empty_like(scale), Tensor::empty_like(scale), {}};
  if (relu) result.relu_mask = Tensor::empty({entry.mask_bytes}, DType::kUInt8);
  entry.primitive.run({{DNNL_ARG_SRC, x.data_ptr()},
                       {DNNL_ARG_DST, result.y.data_ptr()},
                       {DNNL_ARG_SCALE, scale.data_ptr()},
                       {DNNL_ARG_SHIFT, shift.data_ptr()},
                       {DNNL_ARG_MEAN, result.mean.data_ptr()},
                       {DNNL_ARG_VARIANCE, result.variance.data_ptr()},
                       {DNNL_ARG_WORKSPACE, relu ? result.relu_mask.data_ptr() : nullptr}});
  return result;
}

Tensor batch_norm_eval(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                       const Tensor& variance, double eps, bool relu) {
  Tensor y = Tensor::empty_like(x);
  forward_entry(x, eps, false, relu)
      .primitive.run({{DNNL_ARG_SRC, x.data_ptr()},
                      {DNNL_ARG_DST, y.data_ptr()},
                      {DNNL_ARG_SCALE, scale.data_ptr()},
                      {DNNL_ARG_SHIFT, shift.data_ptr()},
                      {DNNL_ARG_MEAN, mean.data_ptr()},
                      {DNNL_ARG_VARIANCE, variance.data_ptr()}});
  return y;
}

BatchNormGrads batch_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& scale, const Tensor& shift,
                                   const Tensor& mean, const Tensor& variance, const Tensor& relu_mask, double eps) {
  thread_local Cache<Primitive> cache;
  const bool relu = relu_mask.defined();
  Primitive& primitive = cache.get(key_of(x, eps, relu ? 1 : 0), [&] { return make_backward(x, eps, relu); });
  BatchNormGrads grads{Tensor::empty_like(x), Tensor::empty_like(scale), Tensor::empty_like(shift)};
  primitive.run({{DNNL_ARG_SRC, x.data_ptr()},
                 {DNNL_ARG_DIFF_DST, grad.data_ptr()},
                 {DNNL_ARG_DIFF_SRC, grads.x.data_ptr()},
                 {DNNL_ARG_SCALE, scale.data_ptr()},
                 {DNNL_ARG_SHIFT, shift.data_ptr()},
                 {DNNL_ARG_MEAN, mean.data_ptr()},
                 {DNNL_ARG_VARIANCE, variance.data_ptr()},
                 {DNNL_ARG_DIFF_SCALE, grads.scale.data_ptr()},
                 {DNNL_ARG_DIFF_SHIFT, grads.shift.data_ptr()},
                 {DNNL_ARG_WORKSPACE, relu ? relu_mask.data_ptr() : nullptr}});
  return grads;
}

}  // namespace infeed::kernels
