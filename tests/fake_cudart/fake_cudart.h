#pragma once
/// A stand-in for CUDA's runtime: libcudart.so.13 with the functions that plugins/cuda calls, in host memory, by the engines
/// of simulated devices. Linked by a test, it is what the plugin finds when it is loaded.
///
/// Copies really run beside the caller, half of the bytes at their end, so that what is read or written too early shows.
/// It is strict: what CUDA answers with undefined behaviour, an implicit wait or silence is a complaint here, and the call
/// fails. Complaints that nobody took, and what was not given back, end the process with kExitCode.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace infeed::fake {

inline constexpr int kExitCode = 86;

struct RuntimeOptions {
  int devices = 2;     ///< 0: cudaErrorNoDevice
  bool driver = true;  ///< false: cudaErrorInsufficientDriver
  double bandwidth_bytes_per_s = 4e9;
  std::size_t memory_bytes = std::size_t{1} << 30;  ///< of each device
};

/// The `nth` call of `function` from now on fails.
struct Fault {
  std::string function;
  cudaError_t error = cudaErrorUnknown;
  std::uint64_t nth = 1;
  bool sticky = false;  ///< and so does every call after it, as after an illegal access
};

struct Copy {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  std::size_t bytes = 0;
  cudaMemcpyKind kind = cudaMemcpyDefault;
  bool registered = false;  ///< the host's side, all of it; true within the device
};

/// Begins anew: no faults, counts, complaints, nor anything that was not given back.
void reset(const RuntimeOptions& options = {});
void fail(const Fault& fault);
[[nodiscard]] std::uint64_t calls(const std::string& function);
/// Since reset(), in the order of the calls.
[[nodiscard]] std::vector<Copy> copies();
/// Says what was wrong since the last time.
[[nodiscard]] std::vector<std::string> take_complaints();
/// What was made and not given back: "1 stream", ...
[[nodiscard]] std::vector<std::string> leaks();
/// A copy, or anything else queued, reads or (to_write) touches a byte of the range.
[[nodiscard]] bool in_use(const void* ptr, std::size_t bytes, bool to_write);
/// Calls in processes forked from this one. They get cudaErrorInitializationError.
[[nodiscard]] std::uint64_t calls_in_children();

}  // namespace infeed::fake
