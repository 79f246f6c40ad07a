#include "infeed/base/error.h"

namespace infeed {

// The destructors are here so that each type has one home for its vtable and type info, in libinfeed.so.
Error::~Error() = default;
ConfigError::~ConfigError() = default;
IndexError::~IndexError() = default;
DataError::~DataError() = default;
WorkerError::~WorkerError() = default;
TimeoutError::~TimeoutError() = default;
MemoryError::~MemoryError() = default;
StateError::~StateError() = default;
DeviceError::~DeviceError() = default;
DecodeError::~DecodeError() = default;

const char* to_string(DecodeFault fault) noexcept {
  switch (fault) {
    case DecodeFault::kEmpty: return "empty";
    case DecodeFault::kNotAnImage: return "not an image";
    case DecodeFault::kTruncated: return "truncated";
    case DecodeFault::kBadHeader: return "bad header";
    case DecodeFault::kUnsupported: return "unsupported";
    case DecodeFault::kTooLarge: return "too large";
    case DecodeFault::kCorrupt: return "corrupt";
  }
  return "unknown";
}

}  // namespace infeed
