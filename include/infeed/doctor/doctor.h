#pragma once
/// What will hurt a loader on this machine, and which option mends it. The command `infeed doctor` prints it.

#include <cstdint>
#include <string>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/loader/stats.h"

namespace infeed {

enum class Severity : std::uint8_t {
  kNote,     ///< good to know
  kWarning,  ///< costs speed or memory
  kError,    ///< something will fail
};
[[nodiscard]] INFEED_API const char* to_string(Severity severity) noexcept;

struct Diagnosis {
  Severity severity = Severity::kNote;
  std::string topic;   ///< "cpu", "memory", "shm", "limits", "kernel", "gpu", "loader", ...
  std::string what;    ///< a sentence with figures
  std::string advice;  ///< a sentence; may be empty
};

struct DoctorReport {
  std::vector<Diagnosis> diagnoses;
  State facts;  ///< what was looked at, by name

  /// Appends a diagnosis of your own.
  void add(Severity severity, std::string topic, std::string what, std::string advice = {});
  /// 0: nothing worse than notes, 1: warnings, 2: errors.
  [[nodiscard]] INFEED_API int exit_code() const noexcept;
  /// For people: the worst first.
  [[nodiscard]] INFEED_API std::string str() const;
  [[nodiscard]] INFEED_API State to_state() const;
};

struct DoctorOptions {
  /// In front of /proc, /sys and /dev: another machine's files, for tests. Default: this machine's.
  std::string root = {};
};

/// Processors, memory, limits, kernel, devices, versions. Reads files only; takes milliseconds. Throws DataError where
/// `root` is no folder.
[[nodiscard]] INFEED_API DoctorReport examine_machine(const DoctorOptions& options = {});
/// Adds what a loader's figures tell.
INFEED_API void examine_loader(const LoaderStats& stats, DoctorReport& report);

}  // namespace infeed
