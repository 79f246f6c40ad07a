#pragma once
/// oneDNN 2.6 and 3.x under one spelling. Only files of this folder include it.

#include <dnnl.hpp>
#include <utility>

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

[[nodiscard]] const dnnl::engine& cpu_engine();
[[nodiscard]] dnnl::stream& cpu_stream();  ///< the calling thread's

[[nodiscard]] dnnl::memory::desc describe(const Tensor& tensor);  ///< its shape, strides and dtype
[[nodiscard]] dnnl::memory::desc describe(const Shape& shape, const Strides& strides, DType dtype = DType::kFloat32);
[[nodiscard]] dnnl::memory::data_type to_dnnl(DType dtype);
[[nodiscard]] bool has_bfloat16() noexcept;  ///< this CPU computes in it
[[nodiscard]] dnnl::memory::dims to_dims(const Dims& dims);

/// Scratch memory comes from our allocator, so that a kept primitive holds none.
[[nodiscard]] inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

[[nodiscard]] inline dnnl::primitive_attr with_relu(bool relu) {
  dnnl::primitive_attr attr = user_scratchpad();
  if (!relu) return attr;
  dnnl::post_ops ops;
#if DNNL_VERSION_MAJOR >= 3
  ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#else
  ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#endif
  attr.set_post_ops(ops);
  return attr;
}

/// The primitive descriptor of a forward (or undirected) operation.
template <class Operation, class... Args>
typename Operation::primitive_desc forward_desc(const dnnl::primitive_attr& attr, const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Operation::primitive_desc(cpu_engine(), args..., attr);
#else
  return typename Operation::primitive_desc(typename Operation::desc(args...), attr, cpu_engine());
#endif
}

/// The same of a backward one; `hint` describes its forward.
template <class Operation, class Hint, class... Args>
typename Operation::primitive_desc backward_desc(const Hint& hint, const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Operation::primitive_desc(cpu_engine(), args..., hint, user_scratchpad());
#else
  return typename Operation::primitive_desc(typename Operation::desc(args...), user_scratchpad(), cpu_engine(), hint);
#endif
}

}  // namespace infeed::kernels
