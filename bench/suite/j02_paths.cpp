// W1a on one core, file and all, by each way there is: exact pixels, with an index of rows, from planes, planes with the
// index, and planes kept in memory. Read: samples a CPU second. The index and the kept planes are made before the clock
// runs; both would be by the first epoch.
#include <filesystem>
#include <memory>
#include <optional>

#include "bed.h"
#include "plain_loop.h"

namespace bench {
namespace {

struct Path {
  const char* name;
  infeed::ImageFolderOptions options;
  std::optional<double> must, aim;
};

infeed::ImageFolderOptions options(infeed::DecodePath path, const std::string& index, std::uint64_t cache_bytes) {
  infeed::ImageFolderOptions result{
      .transforms = {infeed::random_resized_crop(224), infeed::random_horizontal_flip(), infeed::normalize()}};
  result.decode.path = path;
  result.index_cache = index;
  result.cache = cache_bytes > 0 ? infeed::ImageCache::kPlanes : infeed::ImageCache::kNone;
  result.cache_bytes = cache_bytes;
  return result;
}

}  // namespace

void jpeg_paths(const Bed& bed, Report& report) {
  using infeed::DecodePath;
  constexpr std::uint64_t kCacheBytes = 700ULL << 20;
  std::filesystem::create_directories(bed.scratch);
  const std::string index = (bed.scratch / "w1a-rows.index").string();
  const Path paths[] = {{"exact", options(DecodePath::kExact, "", 0), 2000, 2150},
                        {"exact with an index", options(DecodePath::kExact, index, 0), 2400, 2500},
                        {"planes", options(DecodePath::kPlanes, "", 0), {}, {}},
                        {"planes with an index", options(DecodePath::kPlanes, index, 0), 3000, 3500},
                        {"cached planes", options(DecodePath::kPlanes, "", kCacheBytes), 9000, 15000}};
  std::vector<std::unique_ptr<infeed::ImageFolder>> folders;
  std::vector<std::unique_ptr<PlainLoop>> loops;
  std::vector<Turn> contestants;
  for (const Path& path : paths) {
    folders.push_back(std::make_unique<infeed::ImageFolder>(bed.images, path.options));
    loops.push_back(std::make_unique<PlainLoop>(*folders.back(), 1, 64));
    contestants.emplace_back([loop = loops.back().get(), size = folders.back()->size()](std::uint64_t round) {
      const std::vector<std::int64_t> order = sequence(std::min<std::int64_t>(size, 700));
      if (round == 0) static_cast<void>(loop->run(order, 1000));  // learns rows, keeps planes
      const TurnResult turn = loop->run(order, round);
      return static_cast<double>(turn.rows) / turn.cpu_s;
    });
  }
  const std::vector<Series> rates = interleave(bed.rounds, contestants);
  for (std::size_t i = 0; i < rates.size(); ++i)
    report.add({.id = "J2",
                .what = std::string("W1a per core, ") + paths[i].name,
                .unit = "samples/s",
                .rounds = rates[i],
                .must = paths[i].must,
                .aim = paths[i].aim});
}

}  // namespace bench
