#pragma once
/* What a plugin that brings a kind of device says (abi.h has the rules for tables and errors). plugins/cuda is one.
 *
 * A stream and an event are the driver's own handles (CUDA: cudaStream_t, cudaEvent_t), as void*; stream null is the
 * driver's default stream. infeed keeps the books (which host memory is registered, what launched functions failed
 * with, to which process a device belongs), so that a table only translates calls. Threads: any, at once. A function
 * leaves the calling thread's current device as it was. INFEED_ERROR_DEVICE_LOST: infeed calls no more, but close. */

#include <stdint.h>

#include "infeed/plugin/kernel_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct infeed_device_api {
  uint64_t struct_size;
  const char* name;    /* of the kind, before the colon of "cuda:0" */
  int32_t device_type; /* the numbers of infeed::DeviceType */
  int32_t reserved;

  /* Fails, with what is missing and what to install, where there are none. */
  int (*count)(int32_t* count, char* error, uint64_t error_bytes);
  int (*open)(int32_t index, void** device, char* error, uint64_t error_bytes);
  void (*close)(void* device);
  /* As the vendor names it, zero-terminated. */
  int (*describe)(void* device, char* name, uint64_t name_bytes, char* error, uint64_t error_bytes);
  int (*memory_info)(void* device, uint64_t* total_bytes, uint64_t* free_bytes, char* error, uint64_t error_bytes);

  /* Aligned to 256 bytes. INFEED_ERROR_MEMORY where memory does not suffice. */
  int (*allocate)(void* device, uint64_t bytes, void** ptr, char* error, uint64_t error_bytes);
  int (*release)(void* device, void* ptr, char* error, uint64_t error_bytes); /* nothing uses it any more */
  int (*register_host)(void* device, void* ptr, uint64_t bytes, char* error, uint64_t error_bytes);
  int (*unregister_host)(void* device, void* ptr, char* error, uint64_t error_bytes); /* the same */

  /* A stream that no other stream, nor the default one, waits for by itself. */
  int (*create_stream)(void* device, void** stream, char* error, uint64_t error_bytes);
  void (*destroy_stream)(void* device, void* stream); /* queued work is done all the same */
  /* Queues a copy; direction as infeed::CopyDirection. Host memory that is not registered: synchronize_stream is the
   * thread's next call. */
  int (*copy)(void* device, void* stream, void* dst, const void* src, uint64_t bytes, int32_t direction, char* error,
              uint64_t error_bytes);
  int (*fill)(void* device, void* stream, void* dst, int32_t value, uint64_t bytes, char* error, uint64_t error_bytes);
  /* Calls function(argument) on some thread when all work before it is done. It does not call the driver. */
  int (*launch)(void* device, void* stream, void (*function)(void*), void* argument, char* error, uint64_t error_bytes);
  int (*query_stream)(void* device, void* stream, int32_t* idle, char* error, uint64_t error_bytes);
  int (*synchronize_stream)(void* device, void* stream, char* error, uint64_t error_bytes);

  int (*create_event)(void* device, void** event, char* error, uint64_t error_bytes);
  void (*destroy_event)(void* device, void* event);
  int (*record)(void* device, void* stream, void* event, char* error, uint64_t error_bytes);
  /* Behind all work of all streams of the device, whoever made them. */
  int (*record_all)(void* device, void* event, char* error, uint64_t error_bytes);
  int (*wait)(void* device, void* stream, void* event, char* error, uint64_t error_bytes);
  int (*query_event)(void* device, void* event, int32_t* passed, char* error, uint64_t error_bytes);
  int (*synchronize_event)(void* device, void* event, char* error, uint64_t error_bytes); /* sleeps */
  int (*elapsed_ms)(void* device, void* start, void* end, double* ms, char* error, uint64_t error_bytes);

  int (*synchronize)(void* device, char* error, uint64_t error_bytes);
  void (*push_range)(const char* name); /* for the vendor's profiler; may be null, as pop_range */
  void (*pop_range)(void);

  const struct infeed_kernel_api* kernels; /* since 1.2; kernel_abi.h; null: it computes nothing */
} infeed_device_api;

#ifdef __cplusplus
}
#endif
