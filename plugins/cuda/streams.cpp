#include "calls.h"
#include "context.h"

namespace infeed::cuda {
namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

int create_stream(void* device, void** stream, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  cudaStream_t made = nullptr;
  const int code =
      check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", {error, size});
  *stream = made;
  return code;
}

void destroy_stream(void* device, void* stream) {
  const Current current(device);
  if (!current.is_set()) return;
  if (cudaStreamDestroy(stream_of(stream)) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

int copy(void* device, void* stream, void* dst, const void* src, std::uint64_t bytes, std::int32_t direction,
         char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaMemcpyAsync(dst, src, bytes, static_cast<cudaMemcpyKind>(direction), stream_of(stream)),
               "cudaMemcpyAsync", {error, size});
}

int fill(void* device, void* stream, void* dst, std::int32_t value, std::uint64_t bytes, char* error,
         std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaMemsetAsync(dst, value, bytes, stream_of(stream)), "cudaMemsetAsync", {error, size});
}

int launch(void* device, void* stream, void (*function)(void*), void* argument, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaLaunchHostFunc(stream_of(stream), function, argument), "cudaLaunchHostFunc", {error, size});
}

int query_stream(void* device, void* stream, std::int32_t* idle, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  const cudaError_t result = cudaStreamQuery(stream_of(stream));
  *idle = result == cudaSuccess ? 1 : 0;
  if (result != cudaErrorNotReady) return check(result, "cudaStreamQuery", {error, size});
  static_cast<void>(cudaGetLastError());  // the runtime remembers this as an error
  return INFEED_OK;
}

int synchronize_stream(void* device, void* stream, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize", {error, size});
}

int synchronize(void* device, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", {error, size});
}

}  // namespace infeed::cuda
