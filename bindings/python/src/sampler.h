#pragma once
/// Samplers on their way from Python into a loader, which then owns them.

#include <nanobind/nanobind.h>

#include <memory>

#include "infeed/sampler/sampler.h"

namespace infeed::python {

/// Empty once a loader took it.
struct SamplerHandle {
  std::unique_ptr<Sampler> sampler;
  /// Throws ConfigError where it was taken.
  [[nodiscard]] std::unique_ptr<Sampler> take();
};
struct BatchSamplerHandle {
  std::unique_ptr<BatchSampler> sampler;
  [[nodiscard]] std::unique_ptr<BatchSampler> take();
};

/// A Python iterable of indices as a Sampler. Its `set_epoch(epoch)`, where it has one, is called before each iter();
/// its length, where it has one, is the epoch's size. Called with or without the GIL.
///
/// Resume: the epoch is begun again and what was delivered is passed over, so the iterable must give the same order
/// for the same epoch.
[[nodiscard]] std::unique_ptr<Sampler> sampler_of_iterable(nanobind::object iterable);
/// The same of lists of indices; no list is longer than `max_batch_size`.
[[nodiscard]] std::unique_ptr<BatchSampler> batch_sampler_of_iterable(nanobind::object iterable,
                                                                      std::int64_t max_batch_size);

}  // namespace infeed::python
