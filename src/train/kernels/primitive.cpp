#include "train/kernels/primitive.h"

#include <algorithm>

#include "infeed/train/tensor/allocator.h"
#include "infeed/train/tensor/storage.h"
#include "train/kernels/reorder.h"

namespace infeed::kernels {

const dnnl::engine& cpu_engine() {
  static const auto* const engine =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);  // leaked: caches of late threads use it
  return *engine;
}

dnnl::stream& cpu_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

dnnl::memory::dims to_dims(const Dims& dims) { return {dims.begin(), dims.end()}; }

dnnl::memory::data_type to_dnnl(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return dnnl::memory::data_type::f32;
    case DType::kBFloat16: return dnnl::memory::data_type::bf16;
    case DType::kInt32: return dnnl::memory::data_type::s32;
    default: throw RuntimeError(fmt::format("no kernel for dtype {}", to_string(dtype)));
  }
}

bool has_bfloat16() noexcept {
  static const bool has = __builtin_cpu_supports("avx512bw") != 0;
  return has;
}

dnnl::memory::desc describe(const Shape& shape, const Strides& strides, DType dtype) {
  return {to_dims(shape), to_dnnl(dtype), to_dims(strides)};
}

dnnl::memory::desc describe(const Tensor& tensor) { return describe(tensor.shape(), tensor.strides(), tensor.dtype()); }

Primitive::Primitive(const dnnl::primitive& primitive, std::initializer_list<Argument> arguments,
                     const dnnl::memory::desc& scratchpad)
    : primitive_(primitive), scratchpad_bytes_(scratchpad.get_size()) {
  const auto append = [&](int id, const dnnl::memory::desc& desc) {
    memories_.emplace_back(desc, cpu_engine(), nullptr);
    arguments_.push_back({id, memories_.back().get()});
  };
  for (const Argument& argument : arguments) append(argument.id, argument.desc);
  if (scratchpad_bytes_ != 0) append(DNNL_ARG_SCRATCHPAD, scratchpad);
}

dnnl::memory::desc Primitive::desc(int id) const {
  const auto found = std::find_if(arguments_.begin(), arguments_.end(), [id](const auto& a) { return a.arg == id; });
  INFEED_CHECK(found != arguments_.end(), "no argument {} of a primitive", id);
  return memories_[static_cast<std::size_t>(found - arguments_.begin())].get_desc();
}

void Primitive::run(std::span<const Value> values) {
  for (const Value& value : values) {
    const auto found =
        std::find_if(arguments_.begin(), arguments_.end(), [&](const auto& a) { return a.arg == value.id; });
    if (found == arguments_.end()) continue;  // an argument that this variant does not take (no bias, no workspace)
    memories_[static_cast<std::size_t>(found - arguments_.begin())].set_data_handle(const_cast<void*>(value.data));
  }
  std::unique_ptr<Storage> scratchpad;
  if (scratchpad_bytes_ != 0) {
    scratchpad = std::make_unique<Storage>(scratchpad_bytes_, host_allocator());
    memories_.back().set_data_handle(scratchpad->data());
  }
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), cpu_stream().get(),
                                                 static_cast<int>(arguments_.size()), arguments_.data()),
                          "oneDNN could not run a primitive");
}

void throw_refusal(const dnnl::error& error) {
  throw RuntimeError(fmt::format("oneDNN {}.{}.{} cannot do this operation for these shapes: {}.",
                                 dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch, error.what()));
}

Relayout::Relayout(const dnnl::memory::desc& from, const dnnl::memory::desc& to) : bytes_(to.get_size()) {
  if (from == to) return;
  const dnnl::reorder::primitive_desc desc(cpu_engine(), from, cpu_engine(), to, user_scratchpad());
  primitive_ = std::make_unique<Primitive>(
      dnnl::reorder(desc), desc, std::initializer_list<Primitive::Argument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

bool reorder(const Tensor& out, const Tensor& in) {
  constexpr std::int64_t kWorthwhile = 4096;  // elements; below, a loop is as fast
  const bool fits = out.dtype() == DType::kFloat32 && in.dtype() == DType::kFloat32 && out.shape() == in.shape() &&
                    out.strides() != in.strides() && out.ndim() <= 6 && !out.is_meta() && out.numel() >= kWorthwhile;
  if (!fits) return false;
  for (const std::int64_t stride : in.strides()) {
    if (stride == 0) return false;  // repeated elements: not a layout that oneDNN knows
  }
  thread_local Cache<Relayout> cache;
  cache.get(Key().add(out).add(in), [&] { return Relayout(describe(in), describe(out)); })
      .run(in.data_ptr(), out.data_ptr());
  return true;
}

}  // namespace infeed::kernels
