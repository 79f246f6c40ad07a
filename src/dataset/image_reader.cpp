#include "dataset/image_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/descriptor.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "decode/orientation.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::size_t kGiantBytes = 8 << 20;
constexpr std::size_t kHeadBytes = 16;
constexpr std::size_t kMaxFileBytes = std::size_t{2} << 30;

class InputFile {
 public:
  /// O_NONBLOCK: opening a pipe must not wait for its writer.
  explicit InputFile(const std::string& path)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (!file_.valid()) throw DataError(fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  [[nodiscard]] int fd() const noexcept { return file_.fd(); }

  /// Size of a regular file that can be a picture.
  [[nodiscard]] std::size_t size(std::int64_t& mtime_ns) const {
    struct stat status {};
    if (fstat(file_.fd(), &status) != 0) throw DataError(fmt::format("cannot be looked at: {}", std::strerror(errno)));
    if (!S_ISREG(status.st_mode)) throw DataError("is no regular file");
    mtime_ns = mtime_ns_of(status);
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > kMaxFileBytes) throw DataError(fmt::format("has {} bytes, a picture at most {}", size, kMaxFileBytes));
    return size;
  }

 private:
  Descriptor file_;
};

/// Nanoseconds since the one before.
class Lap {
 public:
  std::uint64_t next() noexcept {
    const auto now = Clock::now();
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_);
    last_ = now;
    return static_cast<std::uint64_t>(passed.count());
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

// Differs where something was learned.
std::size_t knowledge(const RowIndex& rows) { return rows.none ? SIZE_MAX : rows.entries.size(); }

// A giant that is no picture is not worth reading: it may be an archive under a picture's name.
void check_head(int file, std::size_t size) {
  std::byte head[kHeadBytes];
  const ssize_t got = pread(file, head, sizeof head, 0);
  if (got > 0) check_signature({head, static_cast<std::size_t>(got)}, size);
}

}  // namespace

void FileBuffer::reserve(std::size_t nbytes) {
  const bool wasteful = capacity_ > kGiantBytes && nbytes < capacity_ / 4;
  if (nbytes <= capacity_ && !wasteful) return;
  bytes_.reset();
  capacity_ = 0;
  const std::size_t wanted = std::bit_ceil(nbytes | (64 << 10));
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(wanted);
  capacity_ = wanted;
}

std::span<const std::byte> FileBuffer::read(const std::string& path) {
  const InputFile file(path);
  const std::size_t size = file.size(mtime_ns_);
  if (size > kGiantBytes) check_head(file.fd(), size);
  reserve(size);
  const std::size_t have = read_some(file.fd(), {bytes_.get(), size}, 0);
  if (have < size && errno != 0)
    throw DataError(fmt::format("cannot be read at byte {}: {}", have, std::strerror(errno)));
  // Else it became shorter since: the decoder judges what is there.
  return {bytes_.get(), have};
}

std::optional<PlaneWindow> decode_planes_if_asked(Decoder& decoder, const FusedPlan& plan,
                                                  const DecodeOptions& options) {
  return options.path == DecodePath::kPlanes ? decoder.decode_planes(plan.window) : std::nullopt;
}

void ImageReader::use_index(const Kept& kept, std::span<const std::byte> bytes, std::int64_t sample) {
  if (kept.index == nullptr) return;
  const PictureKey key{bytes.size(), file_.mtime_ns(), hash64(bytes.first(decoder_.head_bytes()))};
  if (!kept.index->find(sample, key, index_)) {
    index_.key = key;
    index_.rows.none = false;
    index_.rows.num_stretches = 0;
    index_.rows.entries.clear();
  }
  num_known_ = knowledge(index_.rows);
  if (!index_.rows.none) decoder_.use_index(index_.rows);
}

void ImageReader::keep_index(const Kept& kept, const ImageInfo& info, std::int64_t sample) {
  if (kept.index == nullptr || knowledge(index_.rows) == num_known_) return;
  const bool turned = swaps_axes(info.orientation);
  index_.name = hash64(kept.name);
  index_.width = static_cast<std::uint32_t>(turned ? info.height : info.width);
  index_.height = static_cast<std::uint32_t>(turned ? info.width : info.height);
  kept.index->add(sample, index_);
}

template <typename Picture>
void ImageReader::write(const Compose& transforms, const FusedPlan& plan, const Picture& picture, Row& row) {
  if (row.schema()[0].variable())
    row.resize(0, transforms.layout() == ImageLayout::kCHW ? Shape{3, plan.out_height, plan.out_width}
                                                           : Shape{plan.out_height, plan.out_width, 3});
  kernel_.run(transforms, plan, picture, row[0]);
}

void ImageReader::read(const std::string& path, const Compose& transforms, const DecodeOptions& options, Row& row,
                       const Kept& kept) {
  StageTimes ignored;
  StageTimes& times = row.context().times == nullptr ? ignored : *row.context().times;
  Lap lap;
  PlaneCache* const cache = kept.planes;
  const auto held = cache == nullptr ? std::nullopt : cache->find(row.index());
  if (held) {
    write(transforms, plan_sample(transforms, held->width, held->height, row.context().rng()), *held, row);
    times.transform_ns += lap.next();
    return;
  }
  const std::span<const std::byte> bytes = file_.read(path);
  times.read_ns += lap.next();
  times.bytes_read += bytes.size();

  const ImageInfo info = decoder_.open(bytes, options);
  use_index(kept, bytes, row.index());
  const FusedPlan plan = plan_sample(transforms, info.width, info.height, row.context().rng());
  const bool keep = cache != nullptr && cache->wants(row.index(), info.width, info.height);
  auto planes = keep ? decoder_.decode_planes({0, 0, info.width, info.height}) : std::nullopt;
  if (planes) cache->put(row.index(), *planes, record_);
  if (!planes) planes = decode_planes_if_asked(decoder_, plan, options);  // the whole may be damaged, the window not
  const PixelWindow* pixels = planes ? nullptr : &decoder_.decode(plan.window, plan.out_width, plan.out_height);
  keep_index(kept, info, row.index());
  times.decode_ns += lap.next();
  planes ? write(transforms, plan, *planes, row) : write(transforms, plan, *pixels, row);
  times.transform_ns += lap.next();
}

}  // namespace infeed
