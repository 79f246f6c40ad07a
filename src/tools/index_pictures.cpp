// A picture's entry points come from decoding its last pixel, which passes all of its code and makes no other pixels.

#include <fmt/format.h>

#include <filesystem>

#include "base/hash.h"
#include "dataset/index_cache.h"
#include "decode/decoder.h"
#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "tools/crew.h"
#include "tools/prepare_parts.h"

namespace infeed {
namespace {

struct Tools {
  std::vector<std::byte> buffer;
  Decoder decoder;
  IndexRecord record;
};

class IndexRun {
 public:
  IndexRun(const IndexCache& cache, bool verify, PrepareSummary& summary)
      : cache_(cache), verify_(verify), tally_(summary) {}

  void work(Tools& tools, const Picture& picture, std::int64_t sample) {
    try {
      if (is_known(tools, picture, sample)) {
        tally_.add_unchanged(tools.record.rows.none);
      } else {
        index(tools, picture, sample);
      }
    } catch (const std::exception& error) {
      tally_.add_failure(label(picture), error.what());
    }
  }

 private:
  static std::string label(const Picture& picture) {
    return picture.nbytes == 0 ? picture.file : picture.file + ": " + picture.name;
  }

  bool is_known(Tools& tools, const Picture& picture, std::int64_t sample) const {
    if (verify_ || !cache_.is_complete(sample) || !cache_.read(sample, tools.record)) return false;
    std::int64_t mtime_ns = 0;
    const Picture now = with_size(picture, mtime_ns);
    const PictureKey& key = tools.record.key;
    return key.file_bytes == now.nbytes && key.mtime_ns == mtime_ns && tools.record.offset == picture.offset;
  }

  void index(Tools& tools, const Picture& picture, std::int64_t sample) {
    const auto [bytes, mtime_ns] = read_picture(picture, tools.buffer);
    IndexRecord record{.name = hash64(picture.name), .offset = picture.offset};
    const DecodeOptions options{.orient = false};
    const ImageInfo info = tools.decoder.open(bytes, options);
    record.key = {bytes.size(), mtime_ns, hash64(bytes.first(tools.decoder.head_bytes()))};
    record.width = static_cast<std::uint32_t>(info.width);
    record.height = static_cast<std::uint32_t>(info.height);
    tools.decoder.use_index(record.rows);
    static_cast<void>(tools.decoder.decode({info.width - 1, info.height - 1, 1, 1}, 1, 1));
    if (verify_ && cache_.find(sample, record.key, tools.record)) {
      if (tools.record.rows.entries == record.rows.entries && tools.record.rows.none == record.rows.none)
        return tally_.add_unchanged(record.rows.none);
    }
    cache_.add(sample, record);
    tally_.add_done(bytes.size(), record.rows.none);
  }

  const IndexCache& cache_;
  bool verify_;
  PrepareTally tally_;
};

void check_written(const IndexCache& cache) {
  if (!cache.failure().empty()) throw DataError(fmt::format("the index cannot be kept: {}.", cache.failure()));
}

}  // namespace

void index_pictures(const std::vector<Picture>& pictures, const std::string& path, const PrepareOptions& options,
                    const std::atomic<bool>& stop, const PrepareProgress& progress, PrepareSummary& summary) {
  std::vector<std::uint64_t> names;
  for (const Picture& picture : pictures) names.push_back(hash64(picture.name));
  {
    const auto cache = IndexCache::open(path, names);
    check_written(*cache);
    IndexRun run(*cache, options.verify, summary);
    work_off<Tools>(pictures.size(), options.threads, stop, progress,
                    [&](Tools& tools, std::size_t i) { run.work(tools, pictures[i], static_cast<std::int64_t>(i)); });
    cache->close();
    check_written(*cache);
  }
  std::error_code error;
  const auto nbytes = std::filesystem::file_size(path, error);
  summary.bytes_after = error ? 0 : nbytes;
  if (!stop) measure_index(pictures, path, summary);
}

}  // namespace infeed
