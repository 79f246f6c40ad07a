#include "infeed/loader/stager.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "infeed/base/error.h"
#include "loader/staging_line.h"
#include "loader/tracer.h"

namespace infeed {
namespace {

void check_options(const Device* device, const StagerOptions& options) {
  if (device == nullptr) throw ConfigError("the stager has no device. Give a HostDevice to train on the CPU.");
  if (options.in_flight < 1 || options.in_flight > StagerOptions::kMostInFlight)
    throw ConfigError(fmt::format("in_flight is {}; between 1 and {} batches are possible.", options.in_flight,
                                  StagerOptions::kMostInFlight));
  if (options.max_held < 0)
    throw ConfigError(fmt::format("max_held is {}; use 0 for what the device allows.", options.max_held));
  if (options.max_registrations <= options.in_flight)
    throw ConfigError(fmt::format("max_registrations is {}; it must be above in_flight, {}.", options.max_registrations,
                                  options.in_flight));
}

}  // namespace

Stager::Stager(Loader& loader, std::shared_ptr<Device> device, StagerOptions options) {
  check_options(device.get(), options);
  if (loader.stager() != nullptr)
    throw ConfigError("the loader's batches are on a device already (LoaderOptions::device); use them as they come.");
  if (options.register_memory) loader.keep_memory_warm();
  line_ = std::make_shared<Line>(loader, std::move(device), options);
}

Stager::~Stager() {
  if (line_->ours()) {
    line_->close();
  } else {
    static_cast<void>(new std::shared_ptr<Line>(std::move(line_)));  // intentional: its threads are the parent's
  }
}

std::optional<StagedBatch> Stager::next() { return Tracer::running() ? line_->traced_next() : line_->next(); }

void Stager::reset() {
  line_->change([](Loader& loader) { loader.reset(); });
}

void Stager::set_epoch(std::uint64_t epoch) {
  line_->change([epoch](Loader& loader) { loader.set_epoch(epoch); });
}

std::uint64_t Stager::epoch() const { return state_dict().get_uint("epoch"); }

State Stager::state_dict() const { return line_->state_dict(); }

void Stager::load_state_dict(const State& state) {
  line_->change([&state](Loader& loader) { loader.load_state_dict(state); });
}

DeviceStream& Stager::compute_stream() const noexcept { return line_->compute_stream(); }
StagerStats Stager::stats() const { return line_->stats(); }
void Stager::reset_stats() { line_->reset_stats(); }

std::optional<StagedBatch> Stager::Line::traced_next() {
  const std::uint64_t begin = monotonic_ns();
  std::optional<StagedBatch> batch = next();
  const std::uint64_t end = monotonic_ns();
  Tracer& tracer = Tracer::instance();
  tracer.name_track(this_track(), this_thread_name());
  TraceEvent event{.name = "trainer", .category = "consumer", .track = this_track()};
  if (returned_ns_ != 0) {
    event.begin_ns = returned_ns_;
    event.end_ns = begin;
    tracer.add(event);
  }
  event.name = "next";
  event.begin_ns = begin;
  event.end_ns = end;
  if (batch) event.batch = static_cast<std::int64_t>(batch->number());
  tracer.add(event);
  returned_ns_ = end;
  return batch;
}

std::string StagerStats::str() const {
  constexpr double kMib = 1 << 20;
  return fmt::format(
      "{} batches, {:.1f} MiB staged in {:.2f} s; copies: {:.0f} MiB/s, {:.1f} % of the time\n"
      "waiting: next() for a batch {:.1f} %\n"
      "memory: {:.1f} MiB on the device, {} batches held; {:.1f} MiB of the host's page-locked in {} ranges\n",
      batches, static_cast<double>(bytes) / kMib, elapsed_s, copy_bytes_per_s / kMib, copy_share * 100,
      starved_share * 100, static_cast<double>(device_bytes) / kMib, batches_held,
      static_cast<double>(registered_bytes) / kMib, registrations);
}

}  // namespace infeed
