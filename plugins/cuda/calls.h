#pragma once
/// The functions of the table (infeed/plugin/device_abi.h), by their names there.

#include <cstdint>

namespace infeed::cuda {

// memory.cpp
int memory_info(void* device, std::uint64_t* total_bytes, std::uint64_t* free_bytes, char* error, std::uint64_t size);
int allocate(void* device, std::uint64_t bytes, void** ptr, char* error, std::uint64_t size);
int release(void* device, void* ptr, char* error, std::uint64_t size);
int register_host(void* device, void* ptr, std::uint64_t bytes, char* error, std::uint64_t size);
int unregister_host(void* device, void* ptr, char* error, std::uint64_t size);

// streams.cpp
int create_stream(void* device, void** stream, char* error, std::uint64_t size);
void destroy_stream(void* device, void* stream);
int copy(void* device, void* stream, void* dst, const void* src, std::uint64_t bytes, std::int32_t direction,
         char* error, std::uint64_t size);
int fill(void* device, void* stream, void* dst, std::int32_t value, std::uint64_t bytes, char* error,
         std::uint64_t size);
int launch(void* device, void* stream, void (*function)(void*), void* argument, char* error, std::uint64_t size);
int query_stream(void* device, void* stream, std::int32_t* idle, char* error, std::uint64_t size);
int synchronize_stream(void* device, void* stream, char* error, std::uint64_t size);
int synchronize(void* device, char* error, std::uint64_t size);

// events.cpp
int create_event(void* device, void** event, char* error, std::uint64_t size);
void destroy_event(void* device, void* event);
int record(void* device, void* stream, void* event, char* error, std::uint64_t size);
int record_all(void* device, void* event, char* error, std::uint64_t size);
int wait(void* device, void* stream, void* event, char* error, std::uint64_t size);
int query_event(void* device, void* event, std::int32_t* passed, char* error, std::uint64_t size);
int synchronize_event(void* device, void* event, char* error, std::uint64_t size);
int elapsed_ms(void* device, void* start, void* end, double* ms, char* error, std::uint64_t size);

// nvtx.cpp, or nvtx_none.cpp where its header is missing
void push_range(const char* name);
void pop_range();

}  // namespace infeed::cuda
