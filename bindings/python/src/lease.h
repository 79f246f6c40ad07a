#pragma once
/// Memory of an exchange in Python's hands, and how the other nouns reach it.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>

#include "infeed/exchange/exchange.h"

namespace infeed::python {

/// `infeed._native.Lease`: bytes and who owns them. Its buffer is writable; each view keeps the Lease, so that the
/// memory goes home when the last one dies, on any thread. A copy of `owner` keeps the memory too.
struct Lease {
  std::shared_ptr<void> owner;
  std::span<std::byte> bytes;
};

/// Throws nanobind::cast_error for another type. The result lives as long as `port`.
inline ExchangeWorker& worker_of(nanobind::handle port) { return nanobind::cast<ExchangeWorker&>(port); }

/// The Lease behind what WorkerPort.memory() gave (a memoryview), or behind a Lease itself; throws TypeError.
[[nodiscard]] const Lease& lease_behind(nanobind::handle object);

}  // namespace infeed::python
