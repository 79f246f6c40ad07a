#include "base/library_folder.h"

#include <dlfcn.h>

#include <system_error>

namespace infeed {

std::filesystem::path library_folder() {
  namespace fs = std::filesystem;
  std::error_code failed;
  Dl_info info{};
  const auto* here = reinterpret_cast<const void*>(&library_folder);
  if (::dladdr(here, &info) != 0 && info.dli_fname != nullptr && fs::path(info.dli_fname).has_parent_path()) {
    const fs::path library = fs::canonical(info.dli_fname, failed);
    if (!failed) return library.parent_path();
  }
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

}  // namespace infeed
