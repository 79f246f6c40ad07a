#pragma once
/// Who works, who was asked to leave, and who died: what to do when a pidfd is readable.
///
///            start                 ask_to_leave
///   (empty) ───────> working ─────────────────────> leaving ──ends──> (empty)
///      ^                │                              │ recall
///      │                │ dies                         v
///      └── Death ───────┴──────────────────────── recalled ──ends──> started again, nobody told
///
/// A worker that was asked to leave ends between two runs, with kExitLeft: it holds no claim. One that ends in any
/// other way is a Death, also while leaving.

#include <span>
#include <vector>

#include "worker/launcher.h"
#include "worker/pool.h"

namespace infeed {

/// Threads: the consumer's.
class Roster {
 public:
  [[nodiscard]] bool occupied(int worker_id) const noexcept;
  [[nodiscard]] pid_t pid(int worker_id) const noexcept;  ///< 0: nobody
  [[nodiscard]] std::vector<pid_t> pids() const;
  /// pidfds of all, those that leave included.
  [[nodiscard]] const std::vector<int>& fds() const noexcept { return fds_; }

  void start(int worker_id, Process process);
  void ask_to_leave(int worker_id) noexcept;
  /// The seat is wanted again, though its worker may have left the loop already.
  void recall(int worker_id) noexcept;

  /// Collects who ended. `again`: seats whose worker had left when it was recalled.
  [[nodiscard]] std::vector<Death> collect(Launcher& launcher, std::vector<int>& again);
  /// Kills one and collects it.
  void kill(int worker_id, Launcher& launcher);
  /// Waits for everybody, at most so long, then kills; all are collected. False: one did not even die of that.
  bool stop_all(int timeout_ms) noexcept;
  /// In a child of the user's fork.
  void forget() noexcept;

 private:
  enum class Stage : std::uint8_t { kWorking, kLeaving, kRecalled };
  struct Seat {
    Process process;
    Stage stage = Stage::kWorking;
  };

  void list_fds();

  std::vector<Seat> seats_;  ///< by worker id
  std::vector<int> fds_;
};

}  // namespace infeed
