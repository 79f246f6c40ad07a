#include <fcntl.h>

#include "exchange/line.h"
#include "exchange/received.h"
#include "infeed/base/error.h"
#include "memory/fork_watch.h"

namespace infeed {

ExchangeHandle ExchangeHandle::adopt(int arena_fd, int ready_fd, const ExchangeGeometry& geometry) {
  ExchangeHandle handle({});
  handle.received_ = std::make_shared<const Received>(Received{Memfd::adopt(arena_fd), Descriptor(ready_fd), geometry});
  for (const int fd : {arena_fd, ready_fd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return handle;
}

std::shared_ptr<ExchangeLine> ExchangeHandle::line() const {
  auto line = line_.lock();
  if (!line) throw Error("the exchange of this handle is closed.");
  return line;
}

int ExchangeHandle::arena_fd() const { return received_ ? received_->arena.fd() : line()->arena().fd(); }
int ExchangeHandle::ready_fd() const { return received_ ? received_->ready.fd() : line()->ready().fd(); }
ExchangeGeometry ExchangeHandle::geometry() const { return received_ ? received_->geometry : line()->geometry(); }

struct WorkerFork::Watch {
  OwnFork own;
};

WorkerFork::WorkerFork() : watch_(std::make_unique<Watch>()) {}
WorkerFork::~WorkerFork() = default;

}  // namespace infeed
