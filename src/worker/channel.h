#pragma once
/// Messages between the consumer and its zygote, over a pair of sockets that keep message borders.

#include <sys/types.h>

#include <cstdint>

#include "base/descriptor.h"

namespace infeed {

enum class ZygoteOrder : std::int32_t {
  kStart,   ///< fork a worker; the reply carries its pidfd
  kStatus,  ///< collect dead worker `pid`
  kKill,    ///< kill and collect worker `pid`
};

struct ZygoteCommand {
  ZygoteOrder order = ZygoteOrder::kStart;
  std::int32_t worker_id = 0;
  std::int32_t num_workers = 0;
  pid_t pid = 0;
};

struct ZygoteReply {
  std::int32_t error = 0;  ///< errno; 0: done
  pid_t pid = 0;
  std::int32_t signal = 0;
  std::int32_t exit_code = 0;
};

/// One end. Threads: one.
class Channel {
 public:
  explicit Channel(Descriptor socket) noexcept : socket_(std::move(socket)) {}
  /// Two ends that talk to each other, close-on-exec. Throws MemoryError.
  static void open(Channel& a, Channel& b);
  Channel() = default;

  [[nodiscard]] int fd() const noexcept { return socket_.fd(); }
  void close() noexcept { socket_.reset(); }
  /// Closes the connection itself: the other end sees it even where a process forked since holds a copy of this end.
  void shut() noexcept;

  /// False where the other end is gone.
  bool send(const ZygoteCommand& command) const noexcept;
  bool send(const ZygoteReply& reply, int fd_to_pass = -1) const noexcept;
  /// False where the other end is gone, or (a reply) silent for `timeout_ms`.
  bool receive(ZygoteCommand& command) const noexcept;
  /// A descriptor that was passed but found no room leaves `passed` empty.
  bool receive(ZygoteReply& reply, Descriptor& passed, int timeout_ms) const noexcept;

 private:
  Descriptor socket_;
};

}  // namespace infeed
