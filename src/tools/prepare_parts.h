#pragma once
/// The parts of prepare().

#include <mutex>
#include <utility>

#include "tools/picture_list.h"
#include "tools/prepare.h"

namespace infeed {

/// Adds to the summary, from any thread.
class PrepareTally {
 public:
  explicit PrepareTally(PrepareSummary& summary) : summary_(summary) {}

  void add_done(std::uint64_t bytes, bool none) {
    const std::lock_guard lock(mutex_);
    ++summary_.done;
    summary_.none += none ? 1 : 0;
    summary_.bytes_before += bytes;
  }
  void add_written(std::uint64_t before, std::uint64_t after, bool rewritten) {
    const std::lock_guard lock(mutex_);
    ++summary_.done;
    summary_.rewritten += rewritten ? 1 : 0;
    summary_.bytes_before += before;
    summary_.bytes_after += after;
  }
  void add_unchanged(bool none = false) {
    const std::lock_guard lock(mutex_);
    ++summary_.unchanged;
    summary_.none += none ? 1 : 0;
  }
  void add_failure(std::string file, std::string error) {
    const std::lock_guard lock(mutex_);
    summary_.failed.push_back({std::move(file), std::move(error)});
  }

 private:
  std::mutex mutex_;
  PrepareSummary& summary_;
};

/// Writes the index at `path`, of all pictures that it does not have yet. Throws DataError.
void index_pictures(const std::vector<Picture>& pictures, const std::string& path, const PrepareOptions& options,
                    const std::atomic<bool>& stop, const PrepareProgress& progress, PrepareSummary& summary);

/// Writes options.out. Throws ConfigError, DataError.
void rewrite_pictures(const std::vector<Picture>& pictures, const PrepareOptions& options,
                      const std::atomic<bool>& stop, const PrepareProgress& progress, PrepareSummary& summary);

/// decode_us_before and decode_us_after, of some of the pictures and what the index at `path` knows of them.
void measure_index(const std::vector<Picture>& pictures, const std::string& path, PrepareSummary& summary);
/// The same of files and what was made of them.
void measure_files(const std::vector<std::pair<std::string, std::string>>& files, PrepareSummary& summary);

}  // namespace infeed
