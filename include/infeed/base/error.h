#pragma once
/// What infeed throws. Flat: catch Error for all, or one type for one cause.
///
/// Every message says what happened, with which values, and, where it is not evident, what to do. Exceptions never
/// cross a process, a fork or the C ABI: a worker's error travels as a code and a text, and next() throws it again.

#include <cstdint>
#include <stdexcept>
#include <string>

#include "infeed/base/export.h"

namespace infeed {

/// Base of all errors below.
class INFEED_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// An option, or a combination of options, that cannot work.
class INFEED_API ConfigError final : public Error {
 public:
  using Error::Error;
  ~ConfigError() override;
};

/// An index outside [0, size), or a sampler that yields other than it promised.
class INFEED_API IndexError final : public Error {
 public:
  using Error::Error;
  ~IndexError() override;
};

/// A sample that cannot be read: the message names the sample's index, its file where there is one, and the cause.
class INFEED_API DataError final : public Error {
 public:
  using Error::Error;
  ~DataError() override;
};

/// A worker process died, or was stopped for good; names worker, pid, signal or exit code, batch and sample.
class INFEED_API WorkerError final : public Error {
 public:
  using Error::Error;
  ~WorkerError() override;
};

/// next() waited longer than timeout_ms; names the worker and the sample that it waited for.
class INFEED_API TimeoutError final : public Error {
 public:
  using Error::Error;
  ~TimeoutError() override;
};

/// Memory, address space or descriptors do not suffice, with the amounts asked and left.
class INFEED_API MemoryError final : public Error {
 public:
  using Error::Error;
  ~MemoryError() override;
};

/// A state that does not belong to this loader, sampler or version.
class INFEED_API StateError final : public Error {
 public:
  using Error::Error;
  ~StateError() override;
};

/// A device, its driver or a copy failed.
class INFEED_API DeviceError final : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};

/// Why an image could not be decoded.
enum class DecodeFault : std::uint8_t {
  kEmpty,        ///< no bytes
  kNotAnImage,   ///< neither JPEG nor PNG by content
  kTruncated,    ///< ends early
  kBadHeader,    ///< zero size, missing tables, impossible sampling
  kUnsupported,  ///< valid but not decodable here (12 bits, arithmetic, lossless)
  kTooLarge,     ///< more pixels than max_pixels
  kCorrupt,      ///< damaged data
};

/// The field's name of a fault, e.g. "truncated".
INFEED_API const char* to_string(DecodeFault fault) noexcept;

/// An image that cannot be decoded. Datasets turn it into a DataError that names file and index.
class INFEED_API DecodeError final : public Error {
 public:
  DecodeError(DecodeFault fault, const std::string& message) : Error(message), fault_(fault) {}
  ~DecodeError() override;
  [[nodiscard]] DecodeFault fault() const noexcept { return fault_; }

 private:
  DecodeFault fault_;
};

}  // namespace infeed
