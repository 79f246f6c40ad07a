#pragma once
/// The loops of src/device/kernels on a GPU.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "device/kernels/kernels.h"

namespace infeed::device {

inline constexpr int kLanes = 256;                ///< threads of a block; that share a row
inline constexpr std::int64_t kMaxBlocks = 8192;  ///< several for each processor of any device; loops do the rest

inline cudaStream_t handle_of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle); }

inline void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string("a kernel could not be launched (") + what + "): " + cudaGetErrorString(error) +
                           " (" + cudaGetErrorName(error) + ")");
}

inline unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, kMaxBlocks));
}

template <class Body>
__global__ void each_kernel(std::int64_t count, Body body) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads)
    body(i);
}

template <class Body>
void each(const Stream& stream, std::int64_t count, const Body& body) {
  if (count == 0) return;
  each_kernel<<<blocks_for((count + kLanes - 1) / kLanes), kLanes, 0, handle_of(stream)>>>(count, body);
  check_launch("elementwise");
}

/// One block: a row is its.
struct DeviceLanes {
  /// All threads get the result. Joined as the host's, so that both sum in one order.
  template <class T, class Value, class Join>
  __device__ T reduce(std::int64_t count, T neutral, const Value& value, const Join& join) const {
    __shared__ T lanes[kLanes];
    T own = neutral;
    for (std::int64_t i = threadIdx.x; i < count; i += kLanes) own = join(own, value(i));
    lanes[threadIdx.x] = own;
    __syncthreads();
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) lanes[threadIdx.x] = join(lanes[threadIdx.x], lanes[threadIdx.x + half]);
      __syncthreads();
    }
    const T result = lanes[0];
    __syncthreads();  // before the next reduce() writes there
    return result;
  }
  template <class Body>
  __device__ void each(std::int64_t count, const Body& body) const {
    for (std::int64_t i = threadIdx.x; i < count; i += kLanes) body(i);
  }
  template <class Body>
  __device__ void once(const Body& body) const {
    if (threadIdx.x == 0) body();
  }
};

template <class Body>
__global__ void row_kernel(std::int64_t rows, Body body) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) body(row, DeviceLanes{});
}

template <class Body>
void each_row(const Stream& stream, std::int64_t rows, const Body& body) {
  if (rows == 0) return;
  row_kernel<<<blocks_for(rows), kLanes, 0, handle_of(stream)>>>(rows, body);
  check_launch("by rows");
}

inline constexpr int kTile = 32;     ///< of c, a side
inline constexpr int kTileRows = 8;  ///< threads down a tile; each has kTile / kTileRows elements

/// One tile of c a block: tiles of a and b pass through shared memory.
template <class A, class B>
__global__ void multiply_kernel(infeed_matmul shape, float* c, A a, B b) {
  __shared__ float a_tile[kTile][kTile + 1], b_tile[kTile][kTile + 1];  // + 1: columns lie in different banks
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kTile + threadIdx.y;
  float sums[kTile / kTileRows] = {};
  for (std::int64_t k = 0; k < shape.k; k += kTile) {
    for (int part = 0; part < kTile; part += kTileRows) {
      const std::int64_t row = first_row + part, a_k = k + threadIdx.x, b_k = k + threadIdx.y + part;
      a_tile[threadIdx.y + part][threadIdx.x] = row < shape.m && a_k < shape.k ? a(row, a_k) : 0.0F;
      b_tile[threadIdx.y + part][threadIdx.x] = b_k < shape.k && column < shape.n ? b(b_k, column) : 0.0F;
    }
    __syncthreads();
    for (int i = 0; i < kTile; ++i)
      for (int part = 0; part < kTile / kTileRows; ++part)
        sums[part] += a_tile[threadIdx.y + part * kTileRows][i] * b_tile[i][threadIdx.x];
    __syncthreads();
  }
  for (int part = 0; part < kTile / kTileRows; ++part) {
    const std::int64_t row = first_row + part * kTileRows;
    if (row < shape.m && column < shape.n) c[row * shape.n + column] = sums[part];
  }
}

template <class A, class B>
void multiply(const Stream& stream, const infeed_matmul& shape, float* c, const A& a, const B& b) {
  if (shape.m == 0 || shape.n == 0) return;
  const dim3 blocks(static_cast<unsigned>((shape.n + kTile - 1) / kTile),
                    static_cast<unsigned>((shape.m + kTile - 1) / kTile));
  multiply_kernel<<<blocks, dim3(kTile, kTileRows), 0, handle_of(stream)>>>(shape, c, a, b);
  check_launch("matmul");
}

}  // namespace infeed::device
