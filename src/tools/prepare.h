#pragma once
/// `infeed prepare`: indexes of folders and tar files, and pictures that decode faster.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace infeed {

struct PrepareOptions {
  std::string path;               ///< a folder, or a tar file of pictures
  std::string index = "auto";     ///< of a folder, as ImageFolder's index_cache; a tar file's is its name with .idx
  std::string out;                ///< where rewritten pictures go; empty: none are made
  bool transcode = false;         ///< progressive and arithmetic files to baseline, without loss
  double restart_megapixels = 0;  ///< from this size on, restart markers at each row; 0: none
  int shorter_side = 0;           ///< larger pictures are shrunk to it, with loss; 0: none
  int quality = 90;               ///< of shrunk pictures
  bool copy_rest = false;         ///< all other pictures go to `out` as they are
  bool verify = false;            ///< proves what was made; what is not proven is not kept
  int threads = 0;                ///< 0: one a usable CPU
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".png"};
};

struct PrepareSummary {
  struct Failure {
    std::string file, error;
  };
  std::int64_t pictures = 0;
  std::int64_t done = 0;        ///< in this run: indexed, or rewritten and copied
  std::int64_t unchanged = 0;   ///< done before
  std::int64_t none = 0;        ///< in the index, done before or now: without entry points (no baseline JPEG)
  std::int64_t rewritten = 0;   ///< of the done
  std::vector<Failure> failed;  ///< left as they are
  std::uint64_t bytes_before = 0, bytes_after = 0;  ///< of the pictures done; of the index, or of what was written
  double seconds = 0;
  /// Of some pictures: us that a random crop's decode takes without index or rewriting, and with; 0: not measured.
  double decode_us_before = 0, decode_us_after = 0;
  std::string index;  ///< path
  bool interrupted = false;
};

/// Called with what is done and what there is, from several threads, one at a time.
using PrepareProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Pictures that cannot be decoded are failures in the summary; `stop` ends the run early and keeps what is done, and
/// the next run goes on there. Throws ConfigError, DataError where the whole cannot be done.
[[nodiscard]] PrepareSummary prepare(const PrepareOptions& options, const std::atomic<bool>& stop,
                                     const PrepareProgress& progress);

}  // namespace infeed
