#pragma once
/// What happened when: a file for Perfetto (ui.perfetto.dev) or chrome://tracing.
///
///   infeed::Trace trace("trace.json");  // or INFEED_TRACE=trace.json in the environment
///   while (auto batch = loader.next()) step(*batch);
///   // trace ends: the file is written

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "infeed/base/export.h"

namespace infeed {

/// While one lives, every loader and stager of this process records: the workers' runs with their stages, next() with
/// the sampler and the wait, copies to the device, and the trainer between two calls of next(); arrows lead from each
/// run to the next() that took its batch. docs/tuning.md shows how to read it.
///
/// Cost: under 5 % of the fastest loader there is; one branch a batch and a run where none lives.
/// Memory: 128 bytes an event, at most kMostEvents; later ones are dropped, and counted in the file.
/// Threads: any. Fork: in a forked child it is inert.
class INFEED_API Trace {
 public:
  static constexpr std::size_t kMostEvents = std::size_t{1} << 20;

  /// Begins. `path`: the file that is written at the end, %p in it is this process's id; empty: none. Throws
  /// ConfigError where one runs already, DataError where the file has no place.
  explicit Trace(std::string path = {});
  /// Ends, and writes the file; a failure is logged.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// What was recorded so far, in Chrome's Trace Event Format.
  [[nodiscard]] std::string json() const;
  /// The same to a file. Throws DataError where it cannot be written.
  void write(const std::string& path) const;

  /// Whether one runs in this process.
  [[nodiscard]] static bool running() noexcept;
  /// Adds a span of the caller's own, on the track of its thread. Nanoseconds of CLOCK_MONOTONIC. Nothing where none
  /// runs.
  static void span(std::string_view name, std::uint64_t begin_ns, std::uint64_t end_ns);

 private:
  std::string path_;
  std::uint64_t home_;  ///< process_generation() of the maker
};

}  // namespace infeed
