#include "loader/destination.h"

#include <fmt/format.h>

#include <utility>

#include "infeed/base/error.h"
#include "infeed/device/open.h"

namespace infeed {
namespace {

constexpr int kMaxRegistrations = StagerOptions::kMostInFlight + 1;
constexpr const char* kUsualDevice = "cuda:0";

void check_destination(const LoaderOptions& options) {
  if (options.prefetch_to_device < 0)
    throw ConfigError(fmt::format("prefetch_to_device is {}; it counts batches. Use 0 to copy them yourself.",
                                  options.prefetch_to_device));
  if (options.prefetch_to_device > StagerOptions::kMostInFlight)
    throw ConfigError(fmt::format("prefetch_to_device is {}; up to {} batches are possible.",
                                  options.prefetch_to_device, StagerOptions::kMostInFlight));
  if (options.compute_stream != nullptr && options.device.empty())
    throw ConfigError("compute_stream is given and no device; name the stream's device.");
}

}  // namespace

PinnedSource::PinnedSource(std::unique_ptr<Loader::Engine> engine, std::shared_ptr<Pinning> pinning)
    : engine_(std::move(engine)), pinning_(std::move(pinning)) {
  engine_->keep_memory_warm();
}

PinnedSource::~PinnedSource() { pinning_->close(); }

// Memory may only be short because the device still reads batches that were dropped.
std::optional<Batch> PinnedSource::next() {
  static_cast<void>(pinning_->look());
  for (;;) {
    try {
      std::optional<Batch> batch = engine_->next();
      if (batch) batch = pinning_->pin(std::move(*batch));
      return batch;
    } catch (const MemoryError&) {
      if (!pinning_->wait()) throw;
    }
  }
}

LoaderStats PinnedSource::stats() const {
  LoaderStats stats = engine_->stats();
  StagerStats& locks = stats.staging.emplace();
  locks.registrations = pinning_->registrations();
  locks.registered_bytes = pinning_->registered_bytes();
  return stats;
}

StagedSource::StagedSource(std::unique_ptr<Loader> host, std::shared_ptr<Device> device, const LoaderOptions& options)
    : host_(std::move(host)) {
  DeviceStream* compute = options.compute_stream;
  if (compute == nullptr && device->id().type == DeviceType::kCUDA) {
    default_stream_ = device->borrow_stream(nullptr);
    compute = default_stream_.get();
  }
  stager_.emplace(
      *host_, std::move(device),
      StagerOptions{
          .in_flight = options.prefetch_to_device, .compute_stream = compute, .max_registrations = kMaxRegistrations});
}

std::optional<Batch> StagedSource::next() {
  std::optional<StagedBatch> staged = stager_->next();
  started_ = staged.has_value();
  if (!staged) return std::nullopt;
  return std::move(*staged).take();
}

void StagedSource::reset() {
  started_ = false;
  stager_->reset();
}

void StagedSource::set_epoch(std::uint64_t epoch) {
  started_ = false;
  stager_->set_epoch(epoch);
}

void StagedSource::load_state_dict(const State& state) {
  started_ = false;
  stager_->load_state_dict(state);
}

LoaderStats StagedSource::stats() const {
  LoaderStats stats = host_->stats();
  stats.staging = stager_->stats();
  return stats;
}

void StagedSource::reset_stats() {
  host_->reset_stats();
  stager_->reset_stats();
}

// The workers start before a driver does: a forked one must not inherit it.
std::unique_ptr<Loader::Source> Loader::Source::make(const Dataset* dataset, const Stream* stream,
                                                     LoaderOptions options) {
  check_destination(options);
  if (options.pin_memory && options.device.empty()) options.device = kUsualDevice;
  if (options.device.empty() || options.device == "cpu" || options.device == "cpu:0")
    return std::make_unique<Engine>(dataset, stream, std::move(options));
  LoaderOptions destination;
  destination.device = std::exchange(options.device, {});
  destination.prefetch_to_device = std::exchange(options.pin_memory, false) ? 0 : options.prefetch_to_device;
  destination.compute_stream = std::exchange(options.compute_stream, nullptr);
  if (destination.prefetch_to_device == 0) {
    auto engine = std::make_unique<Engine>(dataset, stream, std::move(options));
    auto pinning = std::make_shared<Pinning>(open_device(destination.device), kMaxRegistrations);
    return std::make_unique<PinnedSource>(std::move(engine), std::move(pinning));
  }
  auto host = dataset != nullptr ? std::make_unique<Loader>(*dataset, std::move(options))
                                 : std::make_unique<Loader>(*stream, std::move(options));
  return std::make_unique<StagedSource>(std::move(host), open_device(destination.device), destination);
}

}  // namespace infeed
