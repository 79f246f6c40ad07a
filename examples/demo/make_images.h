#pragma once
/// The demo's data set: JPEG files in class folders, made once, the same everywhere.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace demo {

/// The set cannot be made; the message says which file or folder, why, and what to do.
class ImageSetError final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ImageSetOptions {
  std::filesystem::path root;  ///< becomes root/train/<class>/00000.jpg ... and root/val/...; parents are made
  int train = 2000;            ///< images, dealt to the ten classes in turn. About 96 kB each.
  int val = 500;
  std::uint64_t seed = 1;
  int threads = 0;  ///< 0: as many as the process may use cores
};

struct ImageSetSummary {
  std::vector<std::string> classes{};                           ///< folders of train and val, sorted
  int train = 0, val = 0;                                       ///< images
  std::uint64_t total_bytes = 0, min_bytes = 0, max_bytes = 0;  ///< of the files
  bool reused = false;                                          ///< the set was there already
  double seconds = 0;
};

/// Called on the caller's thread while the set is made, a few times a second and at the end.
using ImageSetProgress = std::function<void(int done, int total)>;

/// Makes the set, unless root holds it already, complete and with the same options.
///
/// Determinism: the files depend on train, val and seed, not on the number of threads.
/// Death and errors: the files are written into root.partial-<n> and renamed at the end, so root is complete or absent.
/// Throws ImageSetError and leaves nothing behind; what a killed run left is removed by the next. A set with other
/// options is replaced; a folder that is not an image set is never touched.
ImageSetSummary make_image_set(const ImageSetOptions& options, const ImageSetProgress& progress = {});

}  // namespace demo
