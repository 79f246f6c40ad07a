#pragma once
// Verbs for tests of loaders, most of which compare whole epochs.

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/loader/loader.h"

namespace infeed::testing {

/// FNV-1a over every byte and every name, shape and index of a batch.
inline std::uint64_t checksum(const Batch& batch) {
  std::uint64_t hash = 1469598103934665603ULL;
  const auto mix = [&](const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ULL;
  };
  for (const NamedArray& field : batch.arrays()) {
    mix(field.name.data(), field.name.size());
    for (const std::int64_t size : field.array.shape) mix(&size, sizeof size);
    mix(field.array.data, field.array.nbytes());
  }
  for (const std::int64_t index : batch.indices()) mix(&index, sizeof index);
  return hash;
}

/// Checksums of the batches up to the end of the epoch.
inline std::vector<std::uint64_t> rest_of_epoch(Loader& loader) {
  std::vector<std::uint64_t> sums;
  while (auto batch = loader.next()) sums.push_back(checksum(*batch));
  return sums;
}

/// All indices up to the end of the epoch, in the order of delivery.
inline std::vector<std::int64_t> rest_of_indices(Loader& loader) {
  std::vector<std::int64_t> indices;
  while (auto batch = loader.next()) indices.insert(indices.end(), batch->indices().begin(), batch->indices().end());
  return indices;
}

inline pid_t pid_of(const Loader& loader, std::size_t worker) {
  return static_cast<pid_t>(loader.stats().workers.at(worker).pid);
}

/// The next batch, where a busy machine may need longer than timeout_ms to start workers.
inline std::optional<Batch> patient_next(Loader& loader) {
  for (;;) {
    try {
      return loader.next();
    } catch (const TimeoutError&) {  // the next call goes on waiting
    }
  }
}

inline std::vector<std::int64_t> iota(std::int64_t size) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(i);
  return values;
}

/// How a test names a kind of worker and its number: "fork3".
struct Crew {
  WorkerKind kind = WorkerKind::kInline;
  int workers = 0;
  [[nodiscard]] std::string name() const { return to_string(kind) + std::to_string(workers); }
};

inline std::vector<Crew> all_crews(const std::vector<int>& counts) {
  std::vector<Crew> crews{{WorkerKind::kInline, 0}};
  for (const WorkerKind kind : {WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn}) {
    for (const int count : counts) crews.push_back({kind, count});
  }
  return crews;
}

}  // namespace infeed::testing
