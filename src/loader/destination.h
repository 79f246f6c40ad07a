#pragma once
/// Loaders whose batches are for a device.

#include <memory>
#include <optional>

#include "infeed/loader/stager.h"
#include "loader/engine.h"
#include "loader/pinning.h"
#include "loader/source.h"

namespace infeed {

/// Batches stay on the host, page-locked; the user copies them.
class PinnedSource final : public Loader::Source {
 public:
  PinnedSource(std::unique_ptr<Loader::Engine> engine, std::shared_ptr<Pinning> pinning);
  ~PinnedSource() override;
  PinnedSource(const PinnedSource&) = delete;
  PinnedSource& operator=(const PinnedSource&) = delete;

  std::optional<Batch> next() override;
  void reset() override { engine_->reset(); }
  void set_epoch(std::uint64_t epoch) override { engine_->set_epoch(epoch); }
  [[nodiscard]] std::uint64_t epoch() const override { return engine_->epoch(); }
  [[nodiscard]] std::optional<std::int64_t> size() const override { return engine_->size(); }
  [[nodiscard]] State state_dict() const override { return engine_->state_dict(); }
  void load_state_dict(const State& state) override { engine_->load_state_dict(state); }
  void set_num_workers(int num_workers) override { engine_->set_num_workers(num_workers); }
  [[nodiscard]] int num_workers() const override { return engine_->num_workers(); }
  void keep_memory_warm() override { engine_->keep_memory_warm(); }
  [[nodiscard]] LoaderStats stats() const override;
  void reset_stats() override { engine_->reset_stats(); }
  [[nodiscard]] bool started() const override { return engine_->started(); }

 private:
  std::unique_ptr<Loader::Engine> engine_;
  std::shared_ptr<Pinning> pinning_;
};

/// Batches arrive on the device.
class StagedSource final : public Loader::Source {
 public:
  /// `host` gives the batches; of the options only those of the destination count.
  StagedSource(std::unique_ptr<Loader> host, std::shared_ptr<Device> device, const LoaderOptions& options);

  std::optional<Batch> next() override;
  void reset() override;
  void set_epoch(std::uint64_t epoch) override;
  [[nodiscard]] std::uint64_t epoch() const override { return stager_->epoch(); }
  [[nodiscard]] std::optional<std::int64_t> size() const override { return host_->size(); }
  [[nodiscard]] State state_dict() const override { return stager_->state_dict(); }
  void load_state_dict(const State& state) override;
  void set_num_workers(int num_workers) override { host_->set_num_workers(num_workers); }
  [[nodiscard]] int num_workers() const override { return host_->num_workers(); }
  void keep_memory_warm() override { host_->keep_memory_warm(); }
  [[nodiscard]] LoaderStats stats() const override;
  void reset_stats() override;
  [[nodiscard]] bool started() const override { return started_; }
  [[nodiscard]] Stager* stager() noexcept override { return &*stager_; }

 private:
  std::unique_ptr<Loader> host_;
  std::unique_ptr<DeviceStream> default_stream_;  ///< the driver's, where it has one and no other is named
  std::optional<Stager> stager_;
  bool started_ = false;
};

}  // namespace infeed
