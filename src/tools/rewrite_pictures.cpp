// OUT/folder/name is written as OUT/folder/HASH.infeed-new (a name may be as long as names can be) and renamed when
// whole, with its source's time: by that the next run knows what is done.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/file_io.h"
#include "base/hash.h"
#include "dataset/index_merge.h"
#include "decode/decoder.h"
#include "infeed/base/error.h"
#include "tools/crew.h"
#include "tools/prepare_parts.h"
#include "tools/rewrite.h"

namespace infeed {
namespace {

constexpr const char* kNew = ".infeed-new";

bool is_as_old(const std::string& path, std::int64_t mtime_ns) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && mtime_ns_of(status) == mtime_ns;
}

// Before 1970 as well: tv_nsec is never negative.
timespec time_of(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t part = (ns % kSecond + kSecond) % kSecond;
  return {static_cast<time_t>((ns - part) / kSecond), static_cast<long>(part)};
}

void write_file(const std::string& path, std::span<const std::byte> bytes, std::int64_t mtime_ns) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string fresh = folder / fmt::format("{:016x}{}", hash64(path), kNew);
  std::filesystem::create_directories(folder);
  const int fd = open(fresh.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
  const timespec times[2] = {time_of(mtime_ns), time_of(mtime_ns)};
  const bool written = fd >= 0 && write_all(fd, bytes, 0) && futimens(fd, times) == 0;
  const bool named = written && rename(fresh.c_str(), path.c_str()) == 0;
  const int cause = errno;
  if (fd >= 0) close(fd);
  if (named) return;
  if (fd >= 0) unlink(fresh.c_str());
  throw std::filesystem::filesystem_error("cannot be written", path, std::error_code(cause, std::generic_category()));
}

struct Tools {
  std::vector<std::byte> buffer;
  Decoder decoder;
};

class RewriteRun {
 public:
  RewriteRun(const PrepareOptions& options, PrepareSummary& summary) : options_(options), tally_(summary) {}

  void work(Tools& tools, const Picture& picture) {
    try {
      rewrite(tools, picture);
    } catch (const std::filesystem::filesystem_error& error) {
      tally_.add_failure(picture.file, error.what());
      broken_ = true;  // the disk, not the picture
    } catch (const std::exception& error) {
      tally_.add_failure(picture.file, error.what());
    }
  }
  [[nodiscard]] const std::atomic<bool>& broken() const noexcept { return broken_; }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& made() const noexcept { return made_; }

 private:
  void rewrite(Tools& tools, const Picture& picture) {
    const std::string target = options_.out + '/' + picture.name;
    std::int64_t mtime_ns = 0;
    const Picture sized = with_size(picture, mtime_ns);
    if (is_as_old(target, mtime_ns)) return tally_.add_unchanged();
    const auto bytes = read_picture(sized, tools.buffer).bytes;
    const std::vector<std::byte> made = remade(tools, bytes);
    if (made.empty() && !options_.copy_rest) return tally_.add_unchanged();
    const std::span<const std::byte> out = made.empty() ? bytes : std::span<const std::byte>(made);
    write_file(target, out, mtime_ns);
    tally_.add_written(bytes.size(), out.size(), !made.empty());
    const std::lock_guard lock(mutex_);
    if (!made.empty()) made_.emplace_back(picture.file, target);
  }

  /// Empty: the picture stays as it is.
  std::vector<std::byte> remade(Tools& tools, std::span<const std::byte> bytes) const {
    const ImageInfo info = tools.decoder.open(bytes, {});
    const JpegKind kind = kind_of(bytes);
    if (!kind.jpeg) return {};
    if (options_.shorter_side > 0 && std::min(info.width, info.height) > options_.shorter_side)
      return shrink(bytes, options_.shorter_side, options_.quality);
    const bool restarts =
        options_.restart_megapixels > 0 && 1e-6 * info.width * info.height >= options_.restart_megapixels;
    if (!restarts && !(options_.transcode && (kind.progressive || kind.arithmetic))) return {};
    std::vector<std::byte> made = recode(bytes, restarts);
    if (options_.verify && !same_coefficients(bytes, made))
      throw DataError("its coefficients did not stay the same; it is left out.");
    return made;
  }

  const PrepareOptions& options_;
  PrepareTally tally_;
  std::atomic<bool> broken_{false};
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> made_;  // source and target
};

/// Two runs would take each other's unfinished files away. Null where folders cannot be locked.
std::unique_ptr<FolderLock> take_for_itself(const std::string& folder) {
  std::filesystem::create_directories(folder);
  auto lock = FolderLock::take(folder, {});
  if (lock == nullptr && errno == EWOULDBLOCK)
    throw DataError(fmt::format("another run writes to '{}': wait for its end, or choose another folder.", folder));
  return lock;
}

}  // namespace

void rewrite_pictures(const std::vector<Picture>& pictures, const PrepareOptions& options,
                      const std::atomic<bool>& stop, const PrepareProgress& progress, PrepareSummary& summary) {
  const auto lock = take_for_itself(options.out);
  RewriteRun run(options, summary);
  work_off<Tools>(pictures.size(), options.threads, stop, progress, [&](Tools& tools, std::size_t i) {
    if (!run.broken()) run.work(tools, pictures[i]);
  });
  if (run.broken()) throw DataError(fmt::format("{}.", summary.failed.back().error));
  if (!stop) measure_files(run.made(), summary);
}

}  // namespace infeed
