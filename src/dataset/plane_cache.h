#pragma once
/// Decoded pictures that all workers of a dataset share: planes of whole pictures in one memory file of fixed size.
///
///   | Header 128 B | slot u64[num_samples] | to a page | record | record | ...                  | bytes
///   slot[i]   0: nothing   1: somebody writes it   else: offset of sample i's record
///   record    | PictureHead 64 B | Y rows | Cb rows | Cr rows | at least 64 B, to a multiple of 64 |
///
/// The first pictures stay, none is put out. Every sample is needed once an epoch, in an order that this class does not
/// know: then no rule serves more of the next epoch than the share of the data that fits, and this one reaches it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/plane_window.h"
#include "memory/shared_mapping.h"

namespace infeed {

struct PlaneCacheOptions {
  std::int64_t num_samples = 0;
  std::uint64_t bytes = 0;  ///< of memory, all told
  std::string root = {};    ///< in front of /proc and /sys, for tests
};

struct PlaneCacheStats {
  std::uint64_t pictures = 0, hits = 0;
  std::uint64_t bytes_used = 0;  ///< table included
  bool closed = false;           ///< the machine ran short of memory: nothing more is put in
};

/// Threads and processes: any call from any, on one file. No locks. A record is published by one word after its last
/// byte, so a worker that is killed while it writes leaves nothing that is seen: its piece of the file is lost.
class PlaneCache {
 public:
  /// Throws ConfigError where the budget does not hold the table and a picture, or is more than the machine has left.
  /// Null, after a warning, where a limit of this process (file size, address space, descriptors) forbids the file.
  [[nodiscard]] static std::unique_ptr<PlaneCache> create(const PlaneCacheOptions& options);
  /// In a spawned worker, over an inherited descriptor, which stays open. Throws ConfigError where the file is another;
  /// null, after a warning, where it cannot be mapped.
  [[nodiscard]] static std::unique_ptr<PlaneCache> attach(std::int64_t fd, const PlaneCacheOptions& options);
  ~PlaneCache();
  PlaneCache(const PlaneCache&) = delete;
  PlaneCache& operator=(const PlaneCache&) = delete;

  /// Planes of the whole picture; they live as long as the cache.
  [[nodiscard]] std::optional<PlaneWindow> find(std::int64_t index) const noexcept;
  /// Whether a picture of this size is worth decoding whole, to put it in.
  [[nodiscard]] bool wants(std::int64_t index, int width, int height) const noexcept;
  /// Keeps a whole picture if there is room and nobody else does. `scratch` is kept by the caller for its memory.
  void put(std::int64_t index, const PlaneWindow& picture, std::vector<std::byte>& scratch) noexcept;

  [[nodiscard]] int fd() const noexcept { return file_.fd(); }
  [[nodiscard]] PlaneCacheStats stats() const noexcept;

 private:
  struct Header;
  PlaneCache(Memfd file, const PlaneCacheOptions& options);

  [[nodiscard]] std::atomic<std::uint64_t>& slot(std::int64_t index) const noexcept;
  [[nodiscard]] std::uint64_t reserve(std::uint64_t bytes) noexcept;
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> record) noexcept;
  void close(const std::string& cause) noexcept;

  PlaneCacheOptions options_;
  Memfd file_;
  SharedMapping table_;    ///< header and slots, writable
  SharedMapping records_;  ///< the whole file, read-only
  Header* header_ = nullptr;
};

}  // namespace infeed
