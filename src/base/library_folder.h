#pragma once
/// Where this copy of infeed lies.

#include <filesystem>

namespace infeed {

/// The folder of the shared library, or of the program that infeed is linked into.
[[nodiscard]] std::filesystem::path library_folder();

}  // namespace infeed
