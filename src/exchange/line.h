#pragma once
/// What the two ends share: arena, ring and the consumer's doorbell.

#include <memory>

#include "infeed/exchange/exchange.h"
#include "loader/batch_memory.h"
#include "loader/event_fd.h"

namespace infeed {

/// Made and owned by the consumer; a child forked from it has it by inheritance.
class ExchangeLine {
 public:
  explicit ExchangeLine(const ExchangeOptions& options);

  [[nodiscard]] const std::shared_ptr<BatchMemory>& memory() const noexcept { return memory_; }
  [[nodiscard]] Ring& ring() const noexcept { return memory_->ring(); }
  [[nodiscard]] const Arena& arena() const noexcept { return memory_->arena(); }
  [[nodiscard]] const EventFd& ready() const noexcept { return ready_; }
  [[nodiscard]] const ExchangeGeometry& geometry() const noexcept { return geometry_; }

 private:
  EventFd ready_;
  std::shared_ptr<BatchMemory> memory_;
  ExchangeGeometry geometry_;
};

}  // namespace infeed
