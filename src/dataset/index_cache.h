#pragma once
/// The entry points of a data set's pictures, across workers and runs: docs/decode.md draws the route.
///
///   shared table (memfd)   | u64 end of the part | u32 stopped | zeros up to 64 | u64 place[num_samples] |
///   place                  IndexPlace: in the index, or in the part (bit 63)

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "dataset/index_file.h"
#include "memory/shared_mapping.h"

namespace infeed {

/// Where index_cache="auto" puts the index of `root`: $XDG_CACHE_HOME/infeed (else ~/.cache/infeed); the folder is
/// made. Empty where neither is set.
[[nodiscard]] std::string automatic_index_path(const std::string& root);

/// Threads and forked processes: const use from any. Errors: none reach a reader. What cannot be read is not known; what
/// cannot be written is warned of once, and then not tried again.
class IndexCache {
 public:
  /// Merges what killed runs left, and begins a part where something is still to be learned. `names`: of the samples,
  /// by index. Throws MemoryError.
  [[nodiscard]] static std::unique_ptr<IndexCache> open(const std::string& path,
                                                        const std::vector<std::uint64_t>& names);
  /// In a spawned worker: by the numbers that fds() have here. Throws ConfigError, MemoryError.
  [[nodiscard]] static std::unique_ptr<IndexCache> adopt(const std::vector<std::int64_t>& fds);
  ~IndexCache();  ///< close()
  IndexCache(const IndexCache&) = delete;
  IndexCache& operator=(const IndexCache&) = delete;

  /// What is known of this very picture; false: nothing.
  [[nodiscard]] bool find(std::int64_t sample, const PictureKey& key, IndexRecord& record) const;
  /// What is known of the sample's name, whatever the file is now.
  [[nodiscard]] bool read(std::int64_t sample, IndexRecord& record) const;
  /// Keeps it, for all processes.
  void add(std::int64_t sample, const IndexRecord& record) const;

  /// In the process that opened it: merges its part. From here on nothing is kept.
  void close();
  /// Why nothing (more) is kept; empty: no reason is known here.
  [[nodiscard]] std::string failure() const;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::int64_t size() const noexcept { return num_samples_; }
  /// Samples of which no decode will tell more, if their files stay.
  [[nodiscard]] std::int64_t num_complete() const noexcept;
  [[nodiscard]] bool is_complete(std::int64_t sample) const noexcept;
  /// The table, and the index and the part (or the table again where there is none).
  [[nodiscard]] std::vector<std::int64_t> fds() const;

 private:
  struct Table;
  IndexCache() = default;
  void map_table();
  void read_index(const std::vector<std::uint64_t>& names);
  void begin_part();
  void warn(const std::string& cause) const;
  [[nodiscard]] std::atomic<std::uint64_t>& place(std::int64_t sample) const noexcept;

  std::string path_;
  Memfd table_file_ = Memfd::adopt(-1);
  SharedMapping mapping_;  ///< of the table
  Table* table_ = nullptr;
  std::int64_t num_samples_ = 0;
  Descriptor index_, part_;
  std::string part_path_;
  mutable std::mutex mutex_;  ///< of `failure_`
  mutable std::string failure_;
  pid_t opener_ = 0;  ///< 0: adopted
};

}  // namespace infeed
