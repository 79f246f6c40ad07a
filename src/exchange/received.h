#pragma once
/// What came to a process that is no child of the consumer's.

#include "base/descriptor.h"
#include "infeed/exchange/exchange.h"
#include "memory/memfd.h"

namespace infeed {

struct ExchangeHandle::Received {
  Memfd arena;
  Descriptor ready;
  ExchangeGeometry geometry;
};

}  // namespace infeed
