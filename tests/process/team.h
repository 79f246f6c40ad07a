#pragma once
// The loaders of the process tests: two worker processes, forked or spawned, that fill together or batch by batch.

#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "infeed/loader/loader.h"
#include "support/epochs.h"
#include "support/processes.h"
#include "worker/test_dataset.h"

namespace infeed::testing {

struct Team {
  WorkerKind kind = WorkerKind::kFork;
  Filling filling = Filling::kCooperative;
  [[nodiscard]] std::string name() const {
    return to_string(kind) + std::string(filling == Filling::kWhole ? "whole" : "cooperative");
  }
  [[nodiscard]] LoaderOptions options() const {
    return {.batch_size = 8,
            .shuffle = true,
            .seed = 4,
            .num_workers = 2,
            .worker_kind = kind,
            .filling = filling,
            .worker_executable = TEST_WORKER};
  }
};

inline std::vector<Team> teams(const std::vector<WorkerKind>& kinds = {WorkerKind::kFork, WorkerKind::kSpawn}) {
  std::vector<Team> all;
  for (const WorkerKind kind : kinds) {
    for (const Filling filling : {Filling::kCooperative, Filling::kWhole}) all.push_back({kind, filling});
  }
  return all;
}

/// Epoch `epoch` of a loader whose caller does all the work.
inline std::vector<std::uint64_t> undisturbed(const Dataset& dataset, std::uint64_t epoch = 0,
                                              std::int64_t batch_size = 8) {
  Loader loader(dataset, {.batch_size = batch_size, .shuffle = true, .seed = 4});
  loader.set_epoch(epoch);
  return rest_of_epoch(loader);
}

/// What next() throws at last, as an E; empty if the epoch ends without.
template <typename E>
std::string error_of_epoch(Loader& loader) {
  try {
    while (loader.next()) {
    }
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

/// Arenas mapped in this process: one for each loader that lives or has a batch held. Advice to the kernel cuts a
/// mapping into several lines; their file is one.
inline std::size_t mapped_arenas() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string range, access, offset, device, inode;
    fields >> range >> access >> offset >> device >> inode;
    if (line.find("memfd:infeed") != std::string::npos) files.insert(inode);
  }
  return files.size();
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace infeed::testing
