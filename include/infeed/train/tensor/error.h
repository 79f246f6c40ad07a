#pragma once
/// What the companion throws: Python's kinds, since its texts and its callers are PyTorch's. IndexError is base's.

#include "infeed/base/error.h"
#include "infeed/base/export.h"

namespace infeed {

/// An operation that these tensors, or this state of the graph, do not allow.
class INFEED_API RuntimeError final : public Error {
 public:
  using Error::Error;
  ~RuntimeError() override;
};

/// A value or device of the wrong kind.
class INFEED_API TypeError final : public Error {
 public:
  using Error::Error;
  ~TypeError() override;
};

/// An option out of range.
class INFEED_API ValueError final : public Error {
 public:
  using Error::Error;
  ~ValueError() override;
};

/// A function that a subclass should have defined, or a case that does not exist here.
class INFEED_API NotImplementedError final : public Error {
 public:
  using Error::Error;
  ~NotImplementedError() override;
};

}  // namespace infeed
