#include "infeed/dataset/synthetic.h"

#include <fmt/format.h>
#include <time.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/half.h"
#include "dataset/index_reader.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

/// Counter-based, so that long fields are written at memory speed; Philox picks where each field's counter starts.
class Filler {
 public:
  explicit Filler(std::uint64_t start) noexcept : counter_(start) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = counter_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  void fill_bits(std::byte* out, std::size_t nbytes) noexcept {
    for (; nbytes >= 8; nbytes -= 8, out += 8) put(out, next());
    const std::uint64_t last = next();
    std::memcpy(out, &last, nbytes);
  }

  template <typename T, typename Make>
  void fill(std::byte* out, std::int64_t count, const Make& make) noexcept {
    for (std::int64_t i = 0; i < count; ++i, out += sizeof(T)) put(out, static_cast<T>(make(next())));
  }

 private:
  template <typename T>
  static void put(std::byte* out, T value) noexcept {
    std::memcpy(out, &value, sizeof(value));
  }
  std::uint64_t counter_;
};

void fill_field(const ArrayView& out, std::uint64_t start) {
  Filler filler(start);
  const auto unit = [](std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24F; };
  const std::int64_t count = out.numel();
  switch (out.dtype) {
    case DType::kBool: return filler.fill<std::uint8_t>(out.data, count, [](std::uint64_t b) { return b & 1; });
    case DType::kFloat16:
      return filler.fill<std::uint16_t>(out.data, count, [&](std::uint64_t b) { return float_to_float16(unit(b)); });
    case DType::kBFloat16:
      return filler.fill<std::uint16_t>(out.data, count, [&](std::uint64_t b) { return float_to_bfloat16(unit(b)); });
    case DType::kFloat32: return filler.fill<float>(out.data, count, unit);
    case DType::kFloat64:
      return filler.fill<double>(out.data, count,
                                 [](std::uint64_t b) { return static_cast<double>(b >> 11) * 0x1p-53; });
    default: return filler.fill_bits(out.data, out.nbytes());
  }
}

std::int64_t thread_cpu_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

/// Computes for that long; other threads on the same core do not make it end sooner.
void spend(std::int64_t ns) noexcept {
  const std::int64_t end = thread_cpu_ns() + ns;
  std::uint64_t value = 1;
  while (thread_cpu_ns() < end) {
    for (int i = 0; i < 1000; ++i) value = value * 6364136223846793005ULL + 1442695040888963407ULL;
    asm volatile("" : : "r"(value));
  }
}

/// Sleeps for that long; it counts as reading.
void wait(std::int64_t ns, StageTimes* stages) {
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  if (stages == nullptr) return;
  const std::chrono::nanoseconds slept = std::chrono::steady_clock::now() - begin;
  stages->read_ns += static_cast<std::uint64_t>(slept.count());
}

bool hits(std::int64_t every, std::int64_t index) noexcept { return every > 0 && index % every == every - 1; }

void check(const char* option, std::int64_t value, std::int64_t least = 0) {
  if (value < least)
    throw ConfigError(fmt::format("{} of a synthetic dataset is {}, it must be {} or more.", option, value, least));
}

void put_options(const SyntheticOptions& options, State& params) {
  params.set("seed", options.seed);
  params.set("augment", options.augment);
  params.set("min_length", options.min_length);
  params.set("max_length", options.max_length);
  params.set("cost_us", options.cost_us);
  params.set("wait_us", options.wait_us);
  params.set("slow_every", options.slow_every);
  params.set("slow_factor", options.slow_factor);
  params.set("fail_every", options.fail_every);
}

SyntheticOptions get_options(const State& params) {
  SyntheticOptions options;
  if (params.contains("seed")) options.seed = params.get_uint("seed");
  if (params.contains("augment")) options.augment = params.get_bool("augment");
  if (params.contains("min_length")) options.min_length = params.get_int("min_length");
  if (params.contains("max_length")) options.max_length = params.get_int("max_length");
  if (params.contains("cost_us")) options.cost_us = params.get_int("cost_us");
  if (params.contains("wait_us")) options.wait_us = params.get_int("wait_us");
  if (params.contains("slow_every")) options.slow_every = params.get_int("slow_every");
  if (params.contains("slow_factor")) options.slow_factor = params.get_double("slow_factor");
  if (params.contains("fail_every")) options.fail_every = params.get_int("fail_every");
  return options;
}

}  // namespace

SyntheticDataset::SyntheticDataset(std::int64_t size, Schema schema, SyntheticOptions options)
    : size_(size), schema_(std::move(schema)), options_(options) {
  check("size", size);
  check("min_length", options.min_length);
  check("max_length", options.max_length, options.min_length);
  check("cost_us", options.cost_us);
  check("wait_us", options.wait_us);
  check("slow_every", options.slow_every);
  check("fail_every", options.fail_every);
  if (!(options.slow_factor >= 0.0 && options.slow_factor <= 1e6))
    throw ConfigError(fmt::format("slow_factor of a synthetic dataset is {}, outside [0, 1e6].", options.slow_factor));
}

void SyntheticDataset::read(Row& row) const {
  const std::int64_t index = row.index();
  if (index < 0 || index >= size_)
    throw IndexError(fmt::format("sample {} was asked of a SyntheticDataset of {}.", index, size_));
  if (hits(options_.fail_every, index))
    throw DataError(fmt::format("sample {} fails, as fail_every ({}) asks.", index, options_.fail_every));
  const double factor = hits(options_.slow_every, index) ? options_.slow_factor : 1.0;
  const auto times = [factor](std::int64_t us) {
    return static_cast<std::int64_t>(static_cast<double>(us) * 1e3 * factor);
  };
  if (options_.wait_us > 0) wait(times(options_.wait_us), row.context().times);
  if (options_.cost_us > 0) spend(times(options_.cost_us));
  Philox random(options_.seed, 0, static_cast<std::uint64_t>(index));
  const std::uint64_t shift = options_.augment ? row.context().rng().next_u64() : 0;
  for (std::size_t f = 0; f < schema_.size(); ++f) {
    const Field& field = schema_[f];
    if (field.variable()) {
      Shape shape = field.shape;
      for (int dim = 0; dim < shape.ndim(); ++dim) {
        const auto lengths = static_cast<std::uint64_t>(options_.max_length - options_.min_length) + 1;
        if (shape[dim] < 0) shape[dim] = options_.min_length + static_cast<std::int64_t>(random.below(lengths));
      }
      row.resize(f, shape);
    }
    if (field.dtype == DType::kInt64 && field.shape.empty())
      row.set(f, index);
    else
      fill_field(row[f], random.next_u64() + shift);
  }
}

std::optional<DatasetSpec> SyntheticDataset::spec() const {
  State params;
  params.set("size", size_);
  params.set("schema", schema_.to_state());
  put_options(options_, params);
  return DatasetSpec{"synthetic", std::move(params), {}};
}

std::string SyntheticDataset::describe(std::int64_t index) const { return fmt::format("synthetic sample {}", index); }

std::unique_ptr<SyntheticDataset> SyntheticDataset::from_params(const State& params) {
  return std::make_unique<SyntheticDataset>(params.get_int("size"), Schema::from_state(params.get_state("schema")),
                                            get_options(params));
}

SyntheticStream::SyntheticStream(std::int64_t size, Schema schema, SyntheticOptions options, bool size_known)
    : dataset_(size, std::move(schema), options), size_known_(size_known) {}

std::unique_ptr<StreamReader> SyntheticStream::open(std::uint64_t /*epoch*/, std::int64_t shard,
                                                    std::int64_t num_shards) const {
  return std::make_unique<IndexReader>(dataset_, shard, num_shards);
}

std::optional<std::int64_t> SyntheticStream::size() const {
  return size_known_ ? std::optional(dataset_.size()) : std::nullopt;
}

std::optional<DatasetSpec> SyntheticStream::spec() const {
  State params = dataset_.spec()->params;
  params.set("size_known", size_known_);
  return DatasetSpec{"synthetic_stream", std::move(params), {}};
}

std::unique_ptr<SyntheticStream> SyntheticStream::from_params(const State& params) {
  return std::make_unique<SyntheticStream>(params.get_int("size"), Schema::from_state(params.get_state("schema")),
                                           get_options(params), params.get_bool("size_known"));
}

}  // namespace infeed
