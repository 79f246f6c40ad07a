#pragma once
/// What bounds a pipeline, in words and as a structure.
///
///   std::puts(loader.stats().verdict().str().c_str());
///   // Input-bound: the trainer waited for data 63 % of the time; 2 workers decode for 1.1 ms a sample.
///   // num_workers=4 would feed it.

#include <cstdint>
#include <string>
#include <vector>

#include "infeed/base/export.h"

namespace infeed {

struct LoaderStats;
struct StagerStats;

enum class Bound : std::uint8_t {
  kUnknown,   ///< too few batches to tell
  kInput,     ///< the trainer waits for data
  kTransfer,  ///< the trainer waits for copies to the device
  kCompute,   ///< the loader waits for the trainer: what one wants
  kBursty,    ///< the workers are fast enough on average, but some batches come late
};
[[nodiscard]] INFEED_API const char* to_string(Bound bound) noexcept;

enum class Cause : std::uint8_t {
  kNone,
  kRead,                ///< storage
  kDecode,              ///< bytes to pixels
  kTransform,           ///< pixels to rows
  kCollate,             ///< rows to a batch
  kDataset,             ///< a dataset that tells no stages
  kSampler,             ///< the order is late
  kUnevenSamples,       ///< some samples or batches cost much more than others
  kSlowWorker,          ///< one worker takes much longer than the others
  kStoppedWorker,       ///< one worker does not move
  kPrefetch,            ///< workers idle while the trainer waits: too little is in flight
  kMemoryBudget,        ///< memory lets too little be in flight
  kOversubscribed,      ///< more workers than processors
  kTrainerStarved,      ///< the trainer's own thread finds no processor
  kHandOver,            ///< next() itself
  kLink,                ///< the link to the device
  kUnregisteredMemory,  ///< copies from memory that is not page-locked
  kTrainer,             ///< the trainer's step
};
[[nodiscard]] INFEED_API const char* to_string(Cause cause) noexcept;

/// An option and the value to try.
struct Knob {
  std::string option;
  std::string value;
};

struct Verdict {
  Bound bound = Bound::kUnknown;
  Cause cause = Cause::kNone;
  double share = 0;         ///< of the time: what is lost (input, transfer, bursty), or the trainer's own (compute)
  std::string finding;      ///< one sentence with the figures
  std::string advice;       ///< one sentence
  std::vector<Knob> knobs;  ///< what the advice turns; may be empty

  /// Both sentences.
  [[nodiscard]] INFEED_API std::string str() const { return advice.empty() ? finding : finding + " " + advice; }
};

/// Of a loader, or of a loader and the Stager behind it. A function of the figures alone.
[[nodiscard]] INFEED_API Verdict judge(const LoaderStats& loader);
[[nodiscard]] INFEED_API Verdict judge(const LoaderStats& loader, const StagerStats& stager);

}  // namespace infeed
