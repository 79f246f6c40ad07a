// How near is the loader to a plain loop where a row is no work at all? W2: 50,000 rows of uint8 [3, 32, 32] and an
// int64 label, random order, batch 256. W3: rows of 1,025 uint16 tokens, widened to int64, random order, batch 32.
// The loop is two threads that copy (or widen) random rows into a warm slot: no order to keep, no consumer.
// Read: share of the loop's samples/s.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <thread>

#include "bed.h"
#include "infeed/dataset/tensor_dataset.h"
#include "infeed/loader/loader.h"
#include "infeed/sampler/random.h"
#include "loader_turn.h"
#include "machine.h"

namespace bench {
namespace {

constexpr int kThreads = 2;
constexpr int kDeep = 8;  // batches in flight, where the default of 2 is used up while a worker wakes

/// A data set, and the loop that does its work by hand.
struct Work {
  std::string name;
  const infeed::Dataset& dataset;
  int batch_size;
  std::int64_t samples;  ///< a turn; a multiple of the size of the data set
  std::function<std::uint64_t(std::byte* slot, std::int64_t row)> copy_row;
};

/// Steps through all rows in an order that no cache foresees.
class RandomWalk {
 public:
  RandomWalk(std::int64_t size, int thread)
      : size_(static_cast<std::uint64_t>(size)), state_(88172645463325252ULL + static_cast<std::uint64_t>(thread)) {}
  std::int64_t next() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::int64_t>(((state_ >> 32) * size_) >> 32);
  }

 private:
  std::uint64_t size_, state_;
};

/// Samples a second; CPU a sample goes to `cpu_us`, but for round 0.
double plain_rate(const Work& work, std::uint64_t round, Series& cpu_us) {
  std::vector<std::unique_ptr<WarmMemory>> slots;
  const std::size_t stride = (work.dataset.schema().row_bytes() + 63) / 64 * 64;
  for (int i = 0; i < kThreads; ++i)
    slots.push_back(std::make_unique<WarmMemory>(stride * static_cast<std::size_t>(work.batch_size)));
  const double cpu_before = process_cpu_s();
  const double before = wall_s();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        RandomWalk walk(work.dataset.size(), i);
        std::byte* slot = slots[static_cast<std::size_t>(i)]->data();
        std::uint64_t sum = 0;
        for (std::int64_t n = 0; n < work.samples / kThreads; ++n)
          sum += work.copy_row(slot + static_cast<std::size_t>(n % work.batch_size) * stride, walk.next());
        asm volatile("" : : "r"(sum));
      });
  }
  const double seconds = wall_s() - before;
  const auto samples = static_cast<double>(work.samples);
  if (round > 0) cpu_us.push_back((process_cpu_s() - cpu_before) / samples * 1e6);
  return samples / seconds;
}

infeed::LoaderOptions options(const Work& work, infeed::WorkerKind kind, int prefetch = 0) {
  infeed::LoaderOptions result;
  result.batch_size = work.batch_size;
  result.sampler = std::make_unique<infeed::RandomSampler>(work.dataset.size(),
                                                           infeed::RandomSamplerOptions{.num_samples = work.samples});
  result.num_workers = kThreads;
  result.worker_kind = kind;
  result.prefetch = prefetch;
  return result;
}

void compare(const Bed& bed, const Work& work, Report& report) {
  infeed::Loader forked(work.dataset, options(work, infeed::WorkerKind::kFork));
  infeed::Loader deep(work.dataset, options(work, infeed::WorkerKind::kFork, kDeep));
  infeed::Loader threads(work.dataset, options(work, infeed::WorkerKind::kThread));
  Match match;
  Series plain_cpu_us;
  const std::vector<Series> rates =
      interleave(bed.rounds, {[&](std::uint64_t r) { return plain_rate(work, r, plain_cpu_us); },
                              match.contestant("fork", [&](std::uint64_t) { return run_epoch(forked); }),
                              match.contestant("fork, deep", [&](std::uint64_t) { return run_epoch(deep); }),
                              match.contestant("thread", [&](std::uint64_t) { return run_epoch(threads); })});
  report.add({.id = "E7",
              .what = fmt::format("{} plain loop, 2 threads, no loader", work.name),
              .unit = "M/s",
              .rounds = scaled(rates[0], 1e-6)});
  const std::string kinds[] = {"fork", fmt::format("fork (prefetch {})", kDeep), "thread"};
  for (std::size_t i = 0; i < 3; ++i)
    report.add({.id = "E7",
                .what = fmt::format("{} loader, 2 {} workers, share of the plain loop", work.name, kinds[i]),
                .unit = "x",
                .rounds = ratio(rates[i + 1], rates[0]),
                .must = 0.60,
                .aim = 0.90});
  report.add({.id = "E7",
              .what = fmt::format("{} loader, 2 fork workers, CPU a sample by the plain loop's", work.name),
              .unit = "x",
              .rounds = ratio(match.cpu_us(0), plain_cpu_us),
              .better = Better::kLower});
}

void gather(const Bed& bed, Report& report) {
  constexpr std::int64_t kRows = 50'000;
  constexpr std::size_t kRowBytes = 3072;
  const WarmMemory pixels(kRows * kRowBytes);
  for (std::size_t i = 0; i < pixels.nbytes(); i += 64) pixels.data()[i] = static_cast<std::byte>(i / kRowBytes % 251);
  std::vector<std::int64_t> labels = sequence(kRows);
  const infeed::TensorDataset dataset(
      {{"image", infeed::ArrayView(pixels.data(), infeed::DType::kUInt8, infeed::Shape{kRows, 3, 32, 32})},
       {"label", infeed::ArrayView(labels.data(), infeed::DType::kInt64, infeed::Shape{kRows})}});
  const auto copy_row = [&](std::byte* slot, std::int64_t row) {
    std::memcpy(slot, pixels.data() + static_cast<std::size_t>(row) * kRowBytes, kRowBytes);
    std::memcpy(slot + kRowBytes, &labels[static_cast<std::size_t>(row)], sizeof(std::int64_t));
    return static_cast<std::uint64_t>(slot[0]);
  };
  compare(bed, {"W2", dataset, 256, kRows * bed.size(40, 1), copy_row}, report);
}

__attribute__((target_clones("avx512f", "avx2", "default"))) void widen(const std::uint16_t* in, std::int64_t* out,
                                                                        std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = in[i];
}

void tokens(const Bed& bed, Report& report) {
  constexpr std::int64_t kRows = 65'000;
  constexpr std::int64_t kTokens = 1025;
  const WarmMemory memory(kRows * kTokens * sizeof(std::uint16_t));
  auto* all = reinterpret_cast<std::uint16_t*>(memory.data());
  for (std::int64_t i = 0; i < kRows * kTokens; ++i) all[i] = static_cast<std::uint16_t>(i * 40503 >> 4);
  const infeed::TensorDataset dataset(
      {{"token", infeed::ArrayView(all, infeed::DType::kUInt16, infeed::Shape{kRows, kTokens})}},
      {.widen = {{"token", infeed::DType::kInt64}}});
  const auto copy_row = [&](std::byte* slot, std::int64_t row) {
    widen(all + row * kTokens, reinterpret_cast<std::int64_t*>(slot), kTokens);
    return static_cast<std::uint64_t>(slot[0]);
  };
  compare(bed, {"W3", dataset, 32, kRows * bed.size(16, 1), copy_row}, report);
}

}  // namespace

void native_rows(const Bed& bed, Report& report) {
  gather(bed, report);
  tokens(bed, report);
}

}  // namespace bench
