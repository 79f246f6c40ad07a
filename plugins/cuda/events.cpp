#include <cstdio>

#include "calls.h"
#include "context.h"

namespace infeed::cuda {
namespace {

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

// Who waits for it sleeps: the host's cores belong to the workers.
int create_event(void* device, void** event, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  cudaEvent_t made = nullptr;
  const int code =
      check(cudaEventCreateWithFlags(&made, cudaEventBlockingSync), "cudaEventCreateWithFlags", {error, size});
  *event = made;
  return code;
}

void destroy_event(void* device, void* event) {
  const Current current(device);
  if (!current.is_set()) return;
  if (cudaEventDestroy(event_of(event)) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

int record(void* device, void* stream, void* event, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaEventRecord(event_of(event), static_cast<cudaStream_t>(stream)), "cudaEventRecord", {error, size});
}

int record_all(void* device, void* event, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  const Context& context = current.context();
  const CUresult result = context.driver().record_all(context.handle(), event_of(event));
  if (result == CUDA_SUCCESS) return INFEED_OK;
  std::snprintf(error, size, "cuCtxRecordEvent: CUresult %d%s.", static_cast<int>(result),
                result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ? ": a stream is being captured into a graph" : "");
  return INFEED_ERROR_DEVICE;
}

int wait(void* device, void* stream, void* event, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_of(event), 0), "cudaStreamWaitEvent",
               {error, size});
}

int query_event(void* device, void* event, std::int32_t* passed, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  const cudaError_t result = cudaEventQuery(event_of(event));
  *passed = result == cudaSuccess ? 1 : 0;
  if (result != cudaErrorNotReady) return check(result, "cudaEventQuery", {error, size});
  static_cast<void>(cudaGetLastError());  // the runtime remembers this as an error
  return INFEED_OK;
}

int synchronize_event(void* device, void* event, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  return check(cudaEventSynchronize(event_of(event)), "cudaEventSynchronize", {error, size});
}

int elapsed_ms(void* device, void* start, void* end, double* ms, char* error, std::uint64_t size) {
  const Current current(device);
  if (!current.is_set()) return current.lost({error, size});
  float milliseconds = 0;
  const int code =
      check(cudaEventElapsedTime(&milliseconds, event_of(start), event_of(end)), "cudaEventElapsedTime", {error, size});
  *ms = static_cast<double>(milliseconds);
  return code;
}

}  // namespace infeed::cuda
