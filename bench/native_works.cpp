/// infeed-works: one measurement of the engine on one work, one line of JSON. bench/compare.py runs it in turn with
/// other loaders; its works, and what is counted, are those of bench/peers/works.py and bench/peers/measure.py.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "infeed/dataset/image_folder.h"
#include "infeed/dataset/tensor_dataset.h"
#include "infeed/loader/loader.h"
#include "infeed/sampler/random.h"
#include "make_images.h"
#include "suite/loader_turn.h"
#include "suite/machine.h"

namespace bench {
namespace {

constexpr std::int64_t kTinyRows = 50'000;
constexpr std::int64_t kBigRows = 32, kBigEpoch = 256;
constexpr std::int64_t kWindow = 1025, kWindowEpoch = 40'000;  // tokens: 1,024 inputs and the one after

/// What is loaded, and in which order. `memory` holds the rows of a data set that borrows them.
struct Work {
  std::shared_ptr<const void> memory;
  std::unique_ptr<infeed::Dataset> dataset;
  std::unique_ptr<infeed::Sampler> sampler;
  int batch_size = 0;
};

Work images(const std::filesystem::path& folder, int batch_size, infeed::Compose transforms) {
  Work work{.batch_size = batch_size};
  work.dataset = std::make_unique<infeed::ImageFolder>(folder.string(),
                                                       infeed::ImageFolderOptions{.transforms = std::move(transforms)});
  work.sampler = std::make_unique<infeed::RandomSampler>(work.dataset->size());
  return work;
}

Work w1a(const std::filesystem::path& data) {
  return images(data / "train", 64,
                {infeed::random_resized_crop(224), infeed::random_horizontal_flip(), infeed::normalize()});
}

Work w1b(const std::filesystem::path& data) {
  return images(data / "train", 64,
                {infeed::resize(256), infeed::center_crop(224), infeed::to_layout(infeed::ImageLayout::kHWC)});
}

Work w2(const std::filesystem::path&) {
  struct Rows {
    WarmMemory pixels{kTinyRows * 3072};
    std::vector<std::int64_t> labels = sequence(kTinyRows);
  };
  const auto rows = std::make_shared<Rows>();
  for (std::size_t i = 0; i < rows->pixels.nbytes(); ++i)
    rows->pixels.data()[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  Work work{.memory = rows, .batch_size = 256};
  work.dataset = std::make_unique<infeed::TensorDataset>(std::vector<infeed::NamedArray>{
      {"image", {rows->pixels.data(), infeed::DType::kUInt8, infeed::Shape{kTinyRows, 3, 32, 32}}},
      {"label", {rows->labels.data(), infeed::DType::kInt64, infeed::Shape{kTinyRows}}}});
  work.sampler = std::make_unique<infeed::RandomSampler>(kTinyRows);
  return work;
}

/// The file's bytes, mapped as long as the pointer lives.
std::shared_ptr<void> map_file(const std::filesystem::path& path, std::size_t nbytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw std::runtime_error(fmt::format("{} cannot be opened: bench/compare.py makes it", path.string()));
  void* memory = mmap(nullptr, nbytes, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw std::runtime_error(fmt::format("{} cannot be mapped", path.string()));
  return {memory, [nbytes](void* mapped) { munmap(mapped, nbytes); }};
}

/// Row i begins at token i: windows at any offset, which overlap.
Work w3(const std::filesystem::path& data) {
  const std::filesystem::path path = data / "tokens.u16";
  const auto tokens =
      std::filesystem::exists(path) ? static_cast<std::int64_t>(std::filesystem::file_size(path)) / 2 : 0;
  Work work{.memory = map_file(path, static_cast<std::size_t>(tokens) * 2), .batch_size = 32};
  infeed::ArrayView windows(const_cast<void*>(work.memory.get()), infeed::DType::kUInt16,
                            infeed::Shape{tokens - kWindow + 1, kWindow});
  windows.strides = infeed::Strides{1, 1};
  work.dataset = std::make_unique<infeed::TensorDataset>(
      std::vector<infeed::NamedArray>{{"token", windows}},
      infeed::TensorDatasetOptions{.widen = {{"token", infeed::DType::kInt64}}});
  work.sampler = std::make_unique<infeed::RandomSampler>(
      work.dataset->size(), infeed::RandomSamplerOptions{.replacement = true, .num_samples = kWindowEpoch});
  return work;
}

Work w4(const std::filesystem::path&) {
  const auto rows = std::make_shared<WarmMemory>(static_cast<std::size_t>(kBigRows) << 22);
  Work work{.memory = rows, .batch_size = 8};
  work.dataset = std::make_unique<infeed::TensorDataset>(std::vector<infeed::NamedArray>{
      {"x", {rows->data(), infeed::DType::kFloat32, infeed::Shape{kBigRows, 1, 1024, 1024}}}});
  work.sampler =
      std::make_unique<infeed::RandomSampler>(kBigRows, infeed::RandomSamplerOptions{.num_samples = kBigEpoch});
  return work;
}

const std::map<std::string, Work (*)(const std::filesystem::path&)> kWorks = {
    {"W1a", w1a}, {"W1b", w1b}, {"W2", w2}, {"W3", w3}, {"W4", w4}};
const std::map<std::string, infeed::WorkerKind> kKinds = {{"fork", infeed::WorkerKind::kFork},
                                                          {"spawn", infeed::WorkerKind::kSpawn},
                                                          {"thread", infeed::WorkerKind::kThread}};

struct Options {
  std::string work = "W1a";
  std::string kind = "fork";
  int workers = 2;
  int prefetch = 0;
  double seconds = 2;
  std::filesystem::path data = "build/bench-data";
  bool make_images = false;
};

/// Reads a byte of each 4 KiB of each array: mapped memory must be paid for.
std::uint64_t touch(const infeed::Batch& batch) {
  std::uint64_t sum = 0;
  for (const infeed::NamedArray& field : batch.arrays()) sum += bench::touch(field.array.data, field.array.nbytes());
  return sum;
}

/// Batches for `seconds`, counted from the first one on; epochs follow each other.
nlohmann::json run(Work& work, const Options& options) {
  infeed::LoaderOptions loader_options{
      .batch_size = work.batch_size, .sampler = std::move(work.sampler), .drop_last = true};
  loader_options.num_workers = options.workers;
  loader_options.prefetch = options.prefetch;
  loader_options.worker_kind = kKinds.at(options.kind);
  const double begin = wall_s();
  infeed::Loader loader(*work.dataset, std::move(loader_options));
  std::uint64_t checksum = touch(loader.next().value());
  const double first = wall_s();
  const double cpu_before = loader_cpu_s(loader);
  std::int64_t samples = 0;
  double end = first;
  while (end - first < options.seconds) {
    const auto batch = loader.next();
    if (!batch) continue;  // the next call begins the next epoch
    checksum += touch(*batch);
    samples += batch->size();
    end = wall_s();
  }
  const auto count = static_cast<double>(samples);
  return {{"rate", count / (end - first)},
          {"cpu_us", (loader_cpu_s(loader) - cpu_before) / count * 1e6},
          {"pss_mb", static_cast<double>(loader.stats().pss_bytes) * 1e-6},
          {"first_ms", (first - begin) * 1e3},
          {"samples", samples},
          {"checksum", checksum}};
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("One measurement of the engine, one line of JSON.");
  app.add_option("--work", options.work, "W1a, W1b, W2, W3 or W4")->check(CLI::IsMember(kWorks));
  app.add_option("--workers", options.workers, "0: the caller does the work")->check(CLI::Range(0, 64));
  app.add_option("--kind", options.kind, "fork, spawn or thread")->check(CLI::IsMember(kKinds));
  app.add_option("--prefetch", options.prefetch, "Batches in flight; 0: the loader's default")
      ->check(CLI::Range(0, 64));
  app.add_option("--seconds", options.seconds, "How long, from the first batch on")->check(CLI::Range(0.0, 3600.0));
  app.add_option("--data", options.data, "Folder of train/ and tokens.u16")->capture_default_str();
  app.add_flag("--make-images", options.make_images, "Makes train/ there unless it is there, and ends");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

void measure(const Options& options) {
  Work work = kWorks.at(options.work)(options.data);
  const ForeignLoad foreign;  // its end: when the workers are reaped
  nlohmann::json result = run(work, options);
  result["foreign"] = foreign.share();
  fmt::print("{}\n", result.dump());
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    const bench::Options options = bench::parse(argc, argv);
    if (options.make_images) {
      demo::make_image_set({.root = options.data, .train = 2000, .val = 10});
    } else {
      bench::measure(options);
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "infeed-works: {}\n", error.what());
    return 1;
  }
}
