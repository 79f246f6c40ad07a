// Streams, events and the work in them.
#include "fake_cudart/runtime.h"

using infeed::CopyDirection;
using infeed::fake::Caller;
using infeed::fake::Event;
using infeed::fake::perform;
using infeed::fake::Runtime;
using infeed::fake::Stream;

namespace {

/// Calls work(stream) of the handle; complains where it is none.
template <typename Work>
cudaError_t in_stream(const char* function, cudaStream_t handle, Work work) {
  return perform(function, [&](Runtime& runtime, Caller& caller) {
    const std::shared_ptr<Stream> stream = runtime.stream(handle, caller.current());
    if (stream == nullptr) return runtime.complain(function, "no such stream", cudaErrorInvalidResourceHandle);
    return work(runtime, caller, *stream);
  });
}

template <typename Work>
cudaError_t on_event(const char* function, cudaEvent_t handle, Work work) {
  return perform(function, [&](Runtime& runtime, Caller&) {
    const std::shared_ptr<Event> event = runtime.event(handle);
    if (event == nullptr) return runtime.complain(function, "no such event", cudaErrorInvalidResourceHandle);
    return work(*event);
  });
}

template <typename Work>
cudaError_t with_event(const char* function, cudaStream_t stream, cudaEvent_t handle, Work work) {
  return in_stream(function, stream, [&](Runtime& runtime, Caller&, Stream& found) {
    const std::shared_ptr<Event> event = runtime.event(handle);
    if (event == nullptr || event->device != found.device)
      return runtime.complain(function, "no such event, or one of another device", cudaErrorInvalidResourceHandle);
    work(found, *event);
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return perform("cudaStreamCreateWithFlags", [&](Runtime& runtime, Caller& caller) {
    if (flags != cudaStreamNonBlocking)
      return runtime.complain("cudaStreamCreateWithFlags", "streams that the default stream waits for are not modelled",
                              cudaErrorNotSupported);
    auto made = std::make_shared<Stream>();
    made->device = caller.current();
    made->queue = runtime.device(caller.current())->create_stream();
    *stream = runtime.add(std::move(made));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return perform("cudaStreamDestroy", [&](Runtime& runtime, Caller&) {
    if (runtime.remove(stream)) return cudaSuccess;
    return runtime.complain("cudaStreamDestroy", "no such stream", cudaErrorInvalidResourceHandle);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return in_stream("cudaStreamQuery", stream, [&](Runtime&, Caller&, Stream& found) {
    return found.queue->query() ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return in_stream("cudaStreamSynchronize", stream, [&](Runtime& runtime, Caller& caller, Stream& found) {
    const bool other = std::exchange(caller.waits_for_pageable, false) && caller.pageable != stream;
    if (other)
      return runtime.complain("cudaStreamSynchronize", "not the stream of a copy of memory that is not registered",
                              cudaErrorInvalidValue);
    found.queue->synchronize();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  return with_event("cudaStreamWaitEvent", stream, event,
                    [](Stream& found, Event& mark) { found.queue->wait(*mark.mark); });
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return in_stream("cudaMemcpyAsync", stream, [&](Runtime& runtime, Caller& caller, Stream& found) {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDefault)
      return runtime.complain("cudaMemcpyAsync", "the direction is not said", cudaErrorInvalidMemcpyDirection);
    const void* host = kind == cudaMemcpyHostToDevice ? src : dst;
    const bool registered =
        kind == cudaMemcpyDeviceToDevice || runtime.device(found.device)->is_registered(host, bytes);
    runtime.note({.src = static_cast<const std::byte*>(src),
                  .dst = static_cast<std::byte*>(dst),
                  .bytes = bytes,
                  .kind = kind,
                  .registered = registered});
    found.queue->copy_async(dst, src, bytes, static_cast<CopyDirection>(kind));
    caller.waits_for_pageable = !registered;
    caller.pageable = stream;
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* dst, int value, std::size_t bytes, cudaStream_t stream) {
  return in_stream("cudaMemsetAsync", stream, [&](Runtime&, Caller&, Stream& found) {
    found.queue->fill_async(dst, static_cast<std::uint8_t>(value), bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return in_stream("cudaLaunchHostFunc", stream, [&](Runtime&, Caller&, Stream& found) {
    found.queue->launch([function, argument] {
      Caller::instance().in_host_function = true;
      function(argument);
      Caller::instance().in_host_function = false;
    });
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  return perform("cudaEventCreateWithFlags", [&](Runtime& runtime, Caller& caller) {
    auto made = std::make_shared<Event>();
    made->device = caller.current();
    made->mark = runtime.device(caller.current())->create_event();
    *event = runtime.add(std::move(made));
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return perform("cudaEventDestroy", [&](Runtime& runtime, Caller&) {
    if (runtime.remove(event)) return cudaSuccess;
    return runtime.complain("cudaEventDestroy", "no such event", cudaErrorInvalidResourceHandle);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return with_event("cudaEventRecord", stream, event, [](Stream& found, Event& mark) {
    found.queue->record(*mark.mark);
    mark.recorded = true;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return on_event("cudaEventQuery", event,
                  [](Event& mark) { return mark.mark->query() ? cudaSuccess : cudaErrorNotReady; });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return on_event("cudaEventSynchronize", event, [](Event& mark) {
    static_cast<infeed::DeviceEvent&>(*mark.mark).synchronize();
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return perform("cudaEventElapsedTime", [&](Runtime& runtime, Caller&) {
    const std::shared_ptr<Event> from = runtime.event(start);
    const std::shared_ptr<Event> to = runtime.event(end);
    if (from == nullptr || to == nullptr || !from->recorded || !to->recorded) return cudaErrorInvalidResourceHandle;
    if (!from->mark->query() || !to->mark->query()) return cudaErrorNotReady;
    *ms = static_cast<float>(to->mark->elapsed_ms(*from->mark));
    return cudaSuccess;
  });
}

}  // extern "C"
