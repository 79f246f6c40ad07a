/// infeed-gpu-check: what a device does with our batches, as JSON. Run by bench/gpu_check.sh on a machine with a GPU; elsewhere over
/// the stand-in for CUDA's runtime (--quick), where the times mean nothing.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "infeed/dataset/tensor_dataset.h"
#include "infeed/device/open.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/stager.h"

namespace {

using infeed::CopyDirection;
using infeed::Device;
using infeed::DeviceStream;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMiB = std::size_t{1} << 20;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// --- bandwidth ---

/// Seconds of one copy, as the caller sees it: until the device is done.
double copy_s(DeviceStream& stream, void* dst, const void* src, std::size_t bytes, CopyDirection direction, int times) {
  std::vector<double> seconds;
  for (int i = 0; i <= times; ++i) {
    const auto begin = Clock::now();
    stream.copy_async(dst, src, bytes, direction);
    stream.synchronize();
    if (i > 0) seconds.push_back(seconds_since(begin));
  }
  return median(seconds);
}

json bandwidth(const std::shared_ptr<Device>& device, bool quick) {
  json rows = json::array();
  const auto stream = device->create_stream();
  for (const std::size_t mib : quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 16, 64}) {
    std::vector<std::byte> host(mib * kMiB, std::byte{1});
    const infeed::DeviceBuffer buffer(device, host.size());
    for (const bool pinned : {false, true}) {
      const auto begin = Clock::now();
      infeed::HostRegistration locked;
      if (pinned) locked = infeed::HostRegistration(device, host.data(), host.size());
      const double lock_ms = seconds_since(begin) * 1e3 / static_cast<double>(mib);
      const auto rate = [&](void* dst, const void* src, CopyDirection direction) {
        return static_cast<double>(host.size()) * 1e-9 /
               copy_s(*stream, dst, src, host.size(), direction, quick ? 1 : 10);
      };
      json row{{"mib", mib}, {"pinned", pinned}};
      row["h2d_gb_per_s"] = rate(buffer.data(), host.data(), CopyDirection::kHostToDevice);
      row["d2h_gb_per_s"] = rate(host.data(), buffer.data(), CopyDirection::kDeviceToHost);
      if (pinned) row["page_lock_ms_per_mib"] = lock_ms;
      rows.push_back(row);
    }
  }
  return rows;
}

// --- loaders ---

/// Rows that differ, of `row_bytes` each.
class Rows {
 public:
  Rows(std::int64_t rows, std::int64_t row_bytes)
      : memory_(static_cast<std::size_t>(rows * row_bytes)),
        dataset_({{"x", infeed::ArrayView(memory_.data(), infeed::DType::kUInt8, infeed::Shape({rows, row_bytes}))}}) {
    for (std::int64_t row = 0; row < rows; ++row)
      std::memset(memory_.data() + row * row_bytes, static_cast<int>(row % 251), static_cast<std::size_t>(row_bytes));
  }
  [[nodiscard]] const infeed::Dataset& dataset() const { return dataset_; }

 private:
  std::vector<std::byte> memory_;
  infeed::TensorDataset dataset_;
};

/// Batches of which a byte is not as it should be.
class Checker {
 public:
  Checker(std::shared_ptr<Device> device, std::int64_t row_bytes) : device_(std::move(device)), row_bytes_(row_bytes) {}

  /// Looks at device memory when the stream has reached it.
  void check(DeviceStream& stream, const std::byte* on_device, const std::vector<std::int64_t>& indices) {
    host_.resize(indices.size() * static_cast<std::size_t>(row_bytes_));
    stream.copy_async(host_.data(), on_device, host_.size(), CopyDirection::kDeviceToHost);  // waits: it is not locked
    bool good = true;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto first = host_.begin() + static_cast<std::ptrdiff_t>(i) * row_bytes_;
      const auto expected = static_cast<std::byte>(indices[i] % 251);
      good = good && std::all_of(first, first + row_bytes_, [expected](std::byte value) { return value == expected; });
    }
    ++checked_;
    wrong_ += good ? 0 : 1;
  }
  [[nodiscard]] json result() const { return {{"batches", checked_}, {"wrong", wrong_}}; }
  [[nodiscard]] bool good() const { return checked_ > 0 && wrong_ == 0; }

 private:
  std::shared_ptr<Device> device_;
  std::int64_t row_bytes_;
  std::vector<std::byte> host_;
  int checked_ = 0;
  int wrong_ = 0;
};

json check_staging(const std::string& name, bool quick) {
  const std::int64_t row_bytes = quick ? 4096 : 1 << 19;
  const Rows rows(64, row_bytes);
  const auto device = infeed::open_device(name);
  const auto stream = device->create_stream();
  infeed::Loader loader(
      rows.dataset(),
      {.batch_size = 8, .shuffle = true, .num_workers = 2, .device = name, .compute_stream = stream.get()});
  Checker checker(device, row_bytes);
  for (int epoch = 0; epoch < 3; ++epoch)
    while (const auto batch = loader.next()) checker.check(*stream, batch->at("x").data, batch->indices());
  return checker.result();
}

/// Batches are copied in two streams in turn and dropped at once; all is looked at when the epoch has ended.
json check_pinning(const std::string& name, bool quick) {
  const std::int64_t row_bytes = quick ? 4096 : 1 << 19;
  const Rows rows(64, row_bytes);
  const auto device = infeed::open_device(name);
  const std::unique_ptr<DeviceStream> streams[] = {device->create_stream(), device->create_stream()};
  infeed::Loader loader(rows.dataset(), {.batch_size = 8, .num_workers = 2, .device = name, .prefetch_to_device = 0});
  Checker checker(device, row_bytes);
  bool locked = true;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::pair<infeed::DeviceBuffer, std::vector<std::int64_t>>> kept;
    while (const auto batch = loader.next()) {
      const infeed::ArrayView& x = batch->at("x");
      locked = locked && device->is_registered(x.data, x.nbytes());
      kept.emplace_back(infeed::DeviceBuffer(device, x.nbytes()), batch->indices());
      streams[kept.size() % 2]->copy_async(kept.back().first.data(), x.data, x.nbytes(), CopyDirection::kHostToDevice);
    }
    device->synchronize();
    for (const auto& [buffer, indices] : kept) checker.check(*streams[0], buffer.data(), indices);
  }
  json result = checker.result();
  result["is_registered"] = locked;
  return result;
}

// --- overlap ---

struct Overlap {
  double step_ms = 0;   ///< of the compute stream alone
  double copy_ms = 0;   ///< device time of a batch's copies
  double both_ms = 0;   ///< a step of the loop
  double gb_per_s = 0;  ///< of batches through the loop
};

/// A loop whose step is `fills` fills of device memory.
Overlap overlap(const std::string& name, bool quick, int fills) {
  const std::int64_t row_bytes = quick ? 64 << 10 : 4 << 20;
  const int steps = quick ? 6 : 60;
  const Rows rows(64, row_bytes);
  const auto device = infeed::open_device(name);
  const auto stream = device->create_stream();
  const infeed::DeviceBuffer work(device, quick ? kMiB : 512 * kMiB);
  const auto step = [&] {
    for (int i = 0; i < fills; ++i) stream->fill_async(work.data(), 1, work.size_bytes());
  };
  Overlap result;
  step();
  stream->synchronize();
  auto begin = Clock::now();
  for (int i = 0; i < 10; ++i) step();
  stream->synchronize();
  result.step_ms = seconds_since(begin) * 100;

  infeed::Loader loader(
      rows.dataset(),
      {.batch_size = 8, .num_workers = quick ? 1 : 8, .prefetch = 4, .device = name, .compute_stream = stream.get()});
  for (int i = -4; i < steps; ++i) {
    if (i == 0) {
      stream->synchronize();
      loader.reset_stats();
      begin = Clock::now();
    }
    auto batch = loader.next();
    if (!batch) batch = loader.next();  // the next epoch
    step();
  }
  stream->synchronize();
  result.both_ms = seconds_since(begin) * 1e3 / steps;
  const infeed::StagerStats stats = loader.stager()->stats();
  result.copy_ms = stats.batches == 0 ? 0 : stats.copy_s * 1e3 / static_cast<double>(stats.batches);
  result.gb_per_s = static_cast<double>(8 * row_bytes) / result.both_ms * 1e-6;
  return result;
}

json measure_overlap(const std::string& name, bool quick) {
  json rows = json::array();
  const Overlap alone = overlap(name, quick, 0);
  rows.push_back({{"fills", 0}, {"copy_ms", alone.copy_ms}, {"loop_ms", alone.both_ms}, {"gb_per_s", alone.gb_per_s}});
  const double one_fill_ms = std::max(overlap(name, quick, 1).step_ms, 1e-3);
  for (const double share : {0.5, 1.0, 2.0}) {
    const int fills = std::clamp(static_cast<int>(share * alone.copy_ms / one_fill_ms), 1, 1000);
    const Overlap found = overlap(name, quick, fills);
    rows.push_back({{"fills", fills},
                    {"step_ms", found.step_ms},
                    {"copy_ms", found.copy_ms},
                    {"loop_ms", found.both_ms},
                    {"loop_by_longer", found.both_ms / std::max(found.step_ms, found.copy_ms)},
                    {"gb_per_s", found.gb_per_s}});
  }
  return rows;
}

int run(const std::string& name, bool quick) {
  json result;
  {
    const auto device = infeed::open_device(name);
    result["device"] = {{"id", infeed::to_string(device->id())},
                        {"name", device->name()},
                        {"total_bytes", device->memory_info().total_bytes}};
    result["quick"] = quick;
    result["bandwidth"] = bandwidth(device, quick);
  }
  result["device_batches"] = check_staging(name, quick);
  result["pinned_batches"] = check_pinning(name, quick);
  result["overlap"] = measure_overlap(name, quick);
  fmt::print("{}\n", result.dump(2));
  const bool good = result["device_batches"]["wrong"] == 0 && result["pinned_batches"]["wrong"] == 0 &&
                    result["pinned_batches"]["is_registered"];
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "cuda:0";
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--quick") {
      quick = true;
    } else {
      name = argv[i];
    }
  }
  try {
    return run(name, quick);
  } catch (const std::exception& error) {
    fmt::print(stderr, "infeed-gpu-check: {}\n", error.what());
    return 2;
  }
}
