#include "train/kernels/on_device.h"

#include <array>

#include "infeed/base/error.h"
#include "train/kernels/copy.h"
#include "train/kernels/loop.h"
#include "train/tensor/check.h"
#include "train/tensor/geometry.h"

namespace infeed::kernels::on_device {
namespace {

// As in infeed/device/operations.h.
constexpr std::array kUnaryNames = {
    "neg",  "abs",   "sign",  "square",      "reciprocal",  "sqrt",       "rsqrt", "exp",      "expm1", "log",
    "log2", "log10", "log1p", "sin",         "cos",         "tan",        "tanh",  "sigmoid",  "erf",   "floor",
    "ceil", "round", "trunc", "logical_not", "bitwise_not", "isnan",      "isinf", "isfinite", "relu",  "leaky_relu",
    "elu",  "gelu",  "gelu",  "silu",        "softplus",    "logsigmoid", "clamp", "affine",   "pow"};
constexpr std::array kBinaryNames = {"add",
                                     "sub",
                                     "mul",
                                     "div",
                                     "floor_divide",
                                     "trunc_divide",
                                     "remainder",
                                     "fmod",
                                     "pow",
                                     "maximum",
                                     "minimum",
                                     "atan2",
                                     "eq",
                                     "ne",
                                     "lt",
                                     "le",
                                     "gt",
                                     "ge",
                                     "logical_and",
                                     "logical_or",
                                     "logical_xor",
                                     "bitwise_and",
                                     "bitwise_or",
                                     "bitwise_xor",
                                     "mul",
                                     "div",
                                     "relu_backward",
                                     "leaky_relu_backward",
                                     "tanh_backward",
                                     "sigmoid_backward",
                                     "gelu_backward",
                                     "gelu_backward",
                                     "silu_backward"};
constexpr std::array kTernaryNames = {"where", "addcmul", "addcdiv", "lerp"};
static_assert(kUnaryNames.size() == static_cast<std::size_t>(UnaryOp::kPow) + 1);
static_assert(kBinaryNames.size() == static_cast<std::size_t>(BinaryOp::kSiluGrad) + 1);
static_assert(kTernaryNames.size() == static_cast<std::size_t>(TernaryOp::kLerp) + 1);

bool has_kernel(UnaryOp op) { return op != UnaryOp::kBitwiseNot; }
bool has_kernel(BinaryOp op) {
  switch (op) {
    case BinaryOp::kFloorDiv:
    case BinaryOp::kTruncDiv:
    case BinaryOp::kRemainder:
    case BinaryOp::kFmod:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: return false;
    default: return true;
  }
}
bool has_kernel(TernaryOp) { return true; }

bool has_kernel(DType dtype) {
  switch (dtype) {
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
    case DType::kFloat16:
    case DType::kBFloat16: return false;
    default: return true;
  }
}

// A tensor, or the number of one on the host that has no dimensions.
infeed_operand operand_of(const char* op, const Tensor& x, const DeviceMemory& on) {
  infeed_operand operand{.dtype = static_cast<std::int32_t>(x.dtype())};
  if (!is_on_device(x) && x.numel() == 1) {
    operand.number = x.item();
    return operand;
  }
  require(x.device() == on.id(),
          "Expected all tensors to be on the same device, but found at least two devices, {} and {}!",
          device_name(on.id()), device_name(x.device()));
  if (!has_kernel(x.dtype())) refuse(op, on.id(), fmt::format("for {}", to_string(x.dtype())));
  operand.data = x.device_ptr();
  return operand;
}

template <std::size_t N>
infeed_loop loop_of(const char* op, const std::array<const Tensor*, N>& tensors) {
  const Tensor& out = *tensors[0];
  std::array<Strides, N> strides;
  for (std::size_t k = 0; k < N; ++k)
    strides[k] = k == 0 ? out.strides() : broadcast_strides(tensors[k]->shape(), tensors[k]->strides(), out.shape());
  const LoopGeometry<static_cast<int>(N)> geometry(out.shape(), tensors, strides);
  infeed_loop loop{.numel = geometry.numel(), .ndim = geometry.ndim()};
  for (int dim = 0; dim < loop.ndim; ++dim) loop.size[dim] = geometry.size(dim);
  for (std::size_t k = 0; k < N; ++k) {
    loop.operand[k] = operand_of(op, *tensors[k], *out.storage()->memory());
    for (int dim = 0; dim < loop.ndim; ++dim) loop.operand[k].stride[dim] = geometry.stride(dim, static_cast<int>(k));
  }
  return loop;
}

template <class Op, class Kernel, std::size_t N>
void map(const char* name, Kernel kernel, Op op, const std::array<const Tensor*, N>& tensors, DType compute, double a,
         double b) {
  const Tensor& out = *tensors[0];
  if (!has_kernel(op) || !has_kernel(compute)) refuse(name, out.device(), fmt::format("for {}", to_string(compute)));
  infeed_loop loop = loop_of(name, tensors);
  loop.wide = compute != DType::kFloat32 && compute != DType::kBool;
  loop.a = a;
  loop.b = b;
  Launch(name, out)(kernel, static_cast<infeed_operation>(op), loop);
}

}  // namespace

void refuse(std::string_view op, DeviceId device, std::string_view why) {
  throw NotImplementedError(fmt::format("{} has no kernel on {} {}. Take .cpu() first, and .to('{}') behind it.", op,
                                        device_name(device), why, device_name(device)));
}

Launch::Launch(const char* op, const Tensor& like) : op_(op), memory_(*like.storage()->memory()) {
  const DeviceKernels kernels = memory_.device().kernels();
  if (kernels.api == nullptr)
    refuse(op, memory_.id(), "(its plugin was built without kernels: see the preset cuda in docs/devices.md)");
  api_ = kernels.api;
  device_ = kernels.device;
}

void Launch::check(const Tensor& x, DType dtype) const {
  require(x.device() == memory_.id(),
          "Expected all tensors to be on the same device, but found at least two devices, {} and {}!",
          device_name(memory_.id()), device_name(x.device()));
  if (x.dtype() != dtype) refuse(op_, memory_.id(), fmt::format("for {}", to_string(x.dtype())));
  require(x.is_contiguous(), "{} on {}: a tensor of strides {} came where contiguous ones are expected", op_,
          device_name(memory_.id()), Shape(x.strides().span()));
}

infeed_queue Launch::queue_for(char (&error)[kErrorBytes]) const {
  return {.device = device_, .stream = memory_.stream().native_handle(), .error = error, .error_bytes = kErrorBytes};
}

void Launch::fail(int code, const char* text) const {
  const std::string message = fmt::format("{} on {}: {}", op_, device_name(memory_.id()), text);
  if (code == INFEED_ERROR_MEMORY) throw MemoryError(message);
  throw DeviceError(message);
}

void unary(UnaryOp op, const Tensor& out, const Tensor& x, DType compute, double a, double b) {
  map<UnaryOp>(kUnaryNames[static_cast<std::size_t>(op)], &infeed_kernel_api::unary, op, std::array{&out, &x}, compute,
               a, b);
}

void binary(BinaryOp op, const Tensor& out, const Tensor& x, const Tensor& y, DType compute, double a) {
  map<BinaryOp>(kBinaryNames[static_cast<std::size_t>(op)], &infeed_kernel_api::binary, op, std::array{&out, &x, &y},
                compute, a, 0.0);
}

void ternary(TernaryOp op, const Tensor& out, const Tensor& x, const Tensor& y, const Tensor& z, DType compute,
             double a) {
  map<TernaryOp>(kTernaryNames[static_cast<std::size_t>(op)], &infeed_kernel_api::ternary, op,
                 std::array{&out, &x, &y, &z}, compute, a, 0.0);
}

// ---- Copies ----

namespace {

bool lies_as(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.strides() == b.strides() && a.dtype() == b.dtype() &&
         is_dense(a.shape(), a.strides());
}

void copy_within(const Tensor& out, const Tensor& in) {
  Launch("copy", out)(&infeed_kernel_api::copy, loop_of<2>("copy", {&out, &in}));
}

// Converted and laid out on the host, so that the bytes go over as one range.
void to_device(const Tensor& out, const Tensor& in) {
  const bool is_exact = is_floating_point(in.dtype()) || itemsize(in.dtype()) < 8;
  if (in.numel() == 1 && is_exact) return copy_within(out, in);
  Tensor dense = in;
  if (!lies_as(out, in)) {
    const TensorOptions options(out.dtype(), DeviceId{});
    dense = is_dense(out.shape(), out.strides()) ? Tensor::empty_strided(out.shape(), out.strides(), options)
                                                 : Tensor::empty(out.shape(), options);
    kernels::copy(dense, in);
  }
  Tensor there = lies_as(out, dense) ? out : Tensor::empty(out.shape(), out.options());
  there.storage()->memory()->copy(there.device_ptr(), dense.data_ptr(), dense.nbytes(), CopyDirection::kHostToDevice);
  if (!there.is_same(out)) copy_within(out, there);
}

void to_host(const Tensor& out, const Tensor& in) {
  Tensor dense = in;
  if (!is_dense(in.shape(), in.strides())) {
    dense = Tensor::empty(in.shape(), in.options());
    copy_within(dense, in);
  }
  const Tensor here = lies_as(out, dense) ? out
                                          : Tensor::empty_strided(dense.shape(), dense.strides(),
                                                                  TensorOptions(in.dtype(), DeviceId{}));
  in.storage()->memory()->copy(here.data_ptr(), dense.device_ptr(), dense.nbytes(), CopyDirection::kDeviceToHost);
  if (!here.is_same(out)) kernels::copy(out, here);
}

}  // namespace

void copy(const Tensor& out, const Tensor& in) {
  if (out.numel() == 0) return;
  if (!is_on_device(out)) return to_host(out, in);
  if (!is_on_device(in)) return to_device(out, in);
  if (out.device() == in.device()) return copy_within(out, in);
  Tensor here = Tensor::empty(in.shape(), TensorOptions(in.dtype(), DeviceId{}));
  to_host(here, in);
  to_device(out, here);
}

}  // namespace infeed::kernels::on_device
