#pragma once
/// Datasets and streams that Python holds.

#include <memory>

#include "infeed/dataset/dataset.h"

namespace infeed::python {

/// A dataset and, in its owner, the Python objects that it borrows from.
struct DatasetHandle {
  std::shared_ptr<const Dataset> dataset;
};

struct StreamHandle {
  std::shared_ptr<const Stream> stream;
};

}  // namespace infeed::python
