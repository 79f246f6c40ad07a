#pragma once
/// What came to a process that is no child of the consumer's.

#include "infeed/exchange/exchange.h"
#include "memory/memfd.h"
#include "base/descriptor.h"

namespace infeed {

struct ExchangeHandle::Received {
  Memfd arena;
  Descriptor ready;
  ExchangeGeometry geometry;
};

}  // namespace infeed
