#pragma once
/// The engine's exceptions as those of infeed/errors.py.

#include <nanobind/nanobind.h>

namespace infeed::python {

/// Every function of this module raises infeed.ConfigError for infeed::ConfigError, and so on.
void bind_errors(nanobind::module_& module);

}  // namespace infeed::python
