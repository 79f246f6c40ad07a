// One loader under LibTorch, one process: torch::data's own or ours, over the same C++ dataset with two workers.
//
//   torch_data_bench W1a torch|infeed|infeed-images FOLDER   JPEGs, random resized crop 224, batch 64; libjpeg-turbo decodes
//                                                            whole pictures; infeed-images: our decoder, what a crop needs
//   torch_data_bench W4 torch|infeed                         64 rows of 4 MB in memory, batch 8
// Read: "rate" in samples a second and "cpu" in us a sample, of this process and its workers, over one epoch after a first
// that warms up. "sum" of a byte of each 4 KiB of all batches must be the same for all loaders: a fast wrong loader is no
// result. bench/suite/l_torch_data.cpp lets them take turns.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets.h>
#include <torch/data/transforms.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "decode/jpeg.h"
#include "infeed/torch/data_loader.h"
#include "suite/machine.h"
#include "suite/warm_memory.h"
#include "transform/fused.h"

namespace bench {
namespace {

namespace td = torch::data;

constexpr std::size_t kWorkers = 2;

infeed::Compose w1a_chain() {
  return {infeed::random_resized_crop(224), infeed::random_horizontal_flip(), infeed::normalize()};
}

/// JPEGs of a folder. The crop is the index's, whoever asks.
class Pictures : public td::datasets::Dataset<Pictures> {
 public:
  Pictures(const std::string& folder, bool ours)
      : ours_(ours), chain_(w1a_chain()), reader_(std::make_unique<Reader>(!ours)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".jpg") paths_.push_back(entry.path().string());
    }
    std::sort(paths_.begin(), paths_.end());
  }
  Pictures(const Pictures& other)
      : td::datasets::Dataset<Pictures>(other),
        ours_(other.ours_),
        chain_(other.chain_),
        paths_(other.paths_),
        reader_(std::make_unique<Reader>(!ours_)) {}
  Pictures(Pictures&&) = default;

  td::Example<> get(std::size_t index) override {
    const std::span<const std::byte> file = read(paths_[index]);
    const infeed::StoredInfo info = reader_->source.open(file, {});
    const infeed::FusedPlan plan = plan_sample(chain_, info.width, info.height, infeed::Philox(7, 0, index));
    const infeed::Window window = ours_ ? plan.window : infeed::Window{0, 0, info.width, info.height};
    const infeed::PixelWindow pixels = reader_->source.decode(window, info.width, info.height, reader_->buffer);
    at::Tensor image = at::empty({3, 224, 224});
    reader_->kernel.run(chain_, plan, pixels, {image.mutable_data_ptr(), infeed::DType::kFloat32, {3, 224, 224}});
    return {image, at::scalar_tensor(static_cast<std::int64_t>(index), at::kLong)};
  }
  std::optional<std::size_t> size() const override { return paths_.size(); }

 private:
  struct Reader {
    explicit Reader(bool by_libjpeg) : source(by_libjpeg) {}
    infeed::JpegSource source;
    infeed::PixelBuffer buffer;
    infeed::FusedKernel kernel;
    std::vector<char> bytes;
  };

  std::span<const std::byte> read(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    reader_->bytes.resize(static_cast<std::size_t>(file.tellg()));
    file.seekg(0).read(reader_->bytes.data(), static_cast<std::streamsize>(reader_->bytes.size()));
    return std::as_bytes(std::span(reader_->bytes));
  }

  bool ours_;
  infeed::Compose chain_;
  std::vector<std::string> paths_;
  std::unique_ptr<Reader> reader_;
};

/// 64 rows of 4 MB, handed out as they are.
class Rows : public td::datasets::Dataset<Rows> {
 public:
  explicit Rows(std::size_t epoch) : epoch_(epoch) {
    for (int row = 0; row < 64; ++row) rows_.push_back(at::full({1, 1024, 1024}, static_cast<double>(row) + 0.1));
  }
  td::Example<> get(std::size_t index) override {
    return {rows_[index % rows_.size()], at::scalar_tensor(static_cast<std::int64_t>(index), at::kLong)};
  }
  std::optional<std::size_t> size() const override { return epoch_; }

 private:
  std::size_t epoch_;
  std::vector<at::Tensor> rows_;
};

/// Processes of the loader's, asked for before the clock runs: stats() reads a lot.
template <typename Loader>
std::vector<pid_t> workers_of(const Loader& loader) {
  std::vector<pid_t> pids;
  if constexpr (requires { loader.stats(); }) {
    for (const infeed::WorkerStats& worker : loader.stats().workers) pids.push_back(static_cast<pid_t>(worker.pid));
  }
  return pids;
}

double cpu_s(const std::vector<pid_t>& workers) {
  double total = process_cpu_s();
  for (const pid_t worker : workers) total += cpu_s_of(worker);
  return total;
}

template <typename Loader>
std::uint64_t epoch(Loader& loader, std::size_t& samples) {
  std::uint64_t sum = 0;
  for (td::Example<>& batch : loader) {
    sum += touch(static_cast<const std::byte*>(batch.data.const_data_ptr()), batch.data.nbytes());
    samples += static_cast<std::size_t>(batch.target.numel());
  }
  return sum;
}

template <typename Loader>
void measure(Loader& loader) {
  std::size_t samples = 0;
  const std::uint64_t first = epoch(loader, samples);
  samples = 0;
  const std::vector<pid_t> workers = workers_of(loader);
  const double wall = wall_s(), cpu = cpu_s(workers);
  const std::uint64_t sum = epoch(loader, samples);
  const double took = wall_s() - wall, used = cpu_s(workers) - cpu;
  if (first != sum) throw std::runtime_error("the epochs differ");
  const auto count = static_cast<double>(samples);
  std::printf("rate %.1f cpu %.2f sum %llu\n", count / took, used / count * 1e6, static_cast<unsigned long long>(sum));
}

template <typename Dataset>
void run(Dataset dataset, std::size_t batch_size, bool ours) {
  auto stacked = std::move(dataset).map(td::transforms::Stack<>());
  const auto options = td::DataLoaderOptions(batch_size).workers(kWorkers);
  if (ours)
    measure(*infeed::torch::data_loader(std::move(stacked), options));
  else
    measure(*td::make_data_loader(std::move(stacked), options));
}

int run(int argc, char** argv) {
  const std::string work = argc > 1 ? argv[1] : "", loader = argc > 2 ? argv[2] : "";
  const bool ours = loader != "torch";
  at::set_num_threads(2);
  if (work == "W1a" && argc > 3)
    run(Pictures(argv[3], loader == "infeed-images"), 64, ours);
  else if (work == "W4")
    run(Rows(argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 2048), 8, ours);
  else
    return std::fprintf(stderr,
                        "usage: torch_data_bench W1a torch|infeed|infeed-images FOLDER | W4 torch|infeed [ROWS]\n"),
           2;
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torch_data_bench: %s\n", error.what());
    return 1;
  }
}
