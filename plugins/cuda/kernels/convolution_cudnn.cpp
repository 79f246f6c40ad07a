// Convolutions by cuDNN, in algorithms without atomics: results do not depend on the device's load.
#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "device/kernels/kernels.h"
#include "library_handle.h"

namespace infeed::device {
namespace {

constexpr const char* kWhat = "a convolution failed";
constexpr float kOne = 1, kZero = 0;
constexpr auto kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto kBackwardInput = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr auto kBackwardWeight = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw std::runtime_error(std::string(kWhat) + ": " + call + ": " + cudnnGetErrorString(status));
}

cudnnHandle_t handle_for(const Stream& stream) {
  static thread_local LibraryHandles<cudnnHandle_t, cudnnDestroy> handles;
  const cudnnHandle_t handle = handles.get(kWhat, [] {
    cudnnHandle_t made = nullptr;
    check(cudnnCreate(&made), "cudnnCreate");
    return made;
  });
  check(cudnnSetStream(handle, static_cast<cudaStream_t>(stream.handle)), "cudnnSetStream");
  return handle;
}

template <class Raw, auto create, auto destroy>
class Descriptor {
 public:
  Descriptor() {
    Raw raw = nullptr;
    check(create(&raw), "making a descriptor");
    owned_.reset(raw);
  }
  operator Raw() const { return owned_.get(); }  // NOLINT(google-explicit-constructor)

 private:
  struct Closer {
    void operator()(Raw raw) const { destroy(raw); }
  };
  std::unique_ptr<std::remove_pointer_t<Raw>, Closer> owned_;
};

using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;

TensorDescriptor tensor_of(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  check_sizes(kWhat, {n, c, h, w});
  TensorDescriptor made;
  check(cudnnSetTensor4dDescriptor(made, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, static_cast<int>(n), static_cast<int>(c),
                                   static_cast<int>(h), static_cast<int>(w)),
        "cudnnSetTensor4dDescriptor");
  return made;
}

/// All that describes a convolution, for one call.
struct Described {
  cudnnHandle_t handle;
  cudaStream_t stream;
  TensorDescriptor x, y;
  Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor> weight;
  Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor> shape;

  Described(const Stream& on, const infeed_convolution& s)
      : handle(handle_for(on)),
        stream(static_cast<cudaStream_t>(on.handle)),
        x(tensor_of(s.n, s.c, s.h, s.w)),
        y(tensor_of(s.n, s.o, s.out_h, s.out_w)) {
    const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
    check(cudnnSetFilter4dDescriptor(weight, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, whole(s.o), whole(s.c / s.groups),
                                     whole(s.kh), whole(s.kw)),
          "cudnnSetFilter4dDescriptor");
    check(cudnnSetConvolution2dDescriptor(shape, whole(s.padding[0]), whole(s.padding[1]), whole(s.stride[0]),
                                          whole(s.stride[1]), whole(s.dilation[0]), whole(s.dilation[1]),
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(cudnnSetConvolutionGroupCount(shape, whole(s.groups)), "cudnnSetConvolutionGroupCount");
    check(cudnnSetConvolutionMathType(shape, CUDNN_FMA_MATH), "cudnnSetConvolutionMathType");  // no TF32
  }
};

/// Memory for one call, taken and given back in the stream's order.
class Workspace {
 public:
  Workspace(cudaStream_t stream, std::size_t bytes) : stream_(stream), bytes_(bytes) {
    if (bytes_ == 0) return;
    const cudaError_t error = cudaMallocAsync(&memory_, bytes_, stream_);
    if (error != cudaSuccess)
      throw std::runtime_error(std::string(kWhat) + ": " + std::to_string(bytes_) +
                               " bytes of workspace: " + cudaGetErrorString(error));
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    if (memory_ != nullptr) cudaFreeAsync(memory_, stream_);
  }
  [[nodiscard]] void* data() const { return memory_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  cudaStream_t stream_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

void zero(float* out, std::int64_t count, const Stream& stream) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  const cudaError_t error = cudaMemsetAsync(out, 0, bytes, static_cast<cudaStream_t>(stream.handle));
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(kWhat) + ": cudaMemsetAsync: " + cudaGetErrorString(error));
}

}  // namespace

template <>
void conv2d(const Stream& stream, const float* x, const float* weight, const float* bias, float* y,
            infeed_convolution s) {
  if (s.n * s.o * s.out_h * s.out_w == 0) return;
  const Described d(stream, s);
  std::size_t bytes = 0;
  check(cudnnGetConvolutionForwardWorkspaceSize(d.handle, d.x, d.weight, d.shape, d.y, kForward, &bytes),
        "cudnnGetConvolutionForwardWorkspaceSize");
  const Workspace space(d.stream, bytes);
  check(cudnnConvolutionForward(d.handle, &kOne, d.x, x, d.weight, weight, d.shape, kForward, space.data(),
                                space.size(), &kZero, d.y, y),
        "cudnnConvolutionForward");
  if (bias == nullptr) return;
  check(cudnnAddTensor(d.handle, &kOne, tensor_of(1, s.o, 1, 1), bias, &kOne, d.y, y), "cudnnAddTensor");
}

template <>
void conv2d_backward_input(const Stream& stream, const float* g, const float* weight, float* out,
                           infeed_convolution s) {
  if (s.n * s.c * s.h * s.w == 0) return;
  const Described d(stream, s);
  std::size_t bytes = 0;
  check(cudnnGetConvolutionBackwardDataWorkspaceSize(d.handle, d.weight, d.y, d.shape, d.x, kBackwardInput, &bytes),
        "cudnnGetConvolutionBackwardDataWorkspaceSize");
  const Workspace space(d.stream, bytes);
  check(cudnnConvolutionBackwardData(d.handle, &kOne, d.weight, weight, d.y, g, d.shape, kBackwardInput, space.data(),
                                     space.size(), &kZero, d.x, out),
        "cudnnConvolutionBackwardData");
}

template <>
void conv2d_backward_weight(const Stream& stream, const float* g, const float* x, float* out, infeed_convolution s) {
  if (s.n * s.out_h * s.out_w == 0) return zero(out, s.o * (s.c / s.groups) * s.kh * s.kw, stream);
  const Described d(stream, s);
  std::size_t bytes = 0;
  check(cudnnGetConvolutionBackwardFilterWorkspaceSize(d.handle, d.x, d.y, d.shape, d.weight, kBackwardWeight, &bytes),
        "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  const Workspace space(d.stream, bytes);
  check(cudnnConvolutionBackwardFilter(d.handle, &kOne, d.x, x, d.y, g, d.shape, kBackwardWeight, space.data(),
                                       space.size(), &kZero, d.weight, out),
        "cudnnConvolutionBackwardFilter");
}

}  // namespace infeed::device
