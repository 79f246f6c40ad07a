#include "infeed/loader/loader.h"

#include <utility>

#include "loader/engine.h"

namespace infeed {

const char* to_string(WorkerKind kind) noexcept {
  switch (kind) {
    case WorkerKind::kAuto: return "auto";
    case WorkerKind::kInline: return "inline";
    case WorkerKind::kThread: return "thread";
    case WorkerKind::kFork: return "fork";
    case WorkerKind::kSpawn: return "spawn";
  }
  return "unknown";
}

Loader::Loader(const Dataset& dataset, LoaderOptions options)
    : engine_(std::make_unique<Engine>(&dataset, nullptr, std::move(options))) {}
Loader::Loader(const Stream& stream, LoaderOptions options)
    : engine_(std::make_unique<Engine>(nullptr, &stream, std::move(options))) {}
Loader::~Loader() = default;

std::optional<Batch> Loader::next() { return engine_->next(); }
void Loader::reset() { engine_->reset(); }
void Loader::set_epoch(std::uint64_t epoch) { engine_->set_epoch(epoch); }
std::uint64_t Loader::epoch() const { return engine_->epoch(); }
std::optional<std::int64_t> Loader::size() const { return engine_->size(); }
State Loader::state_dict() const { return engine_->state_dict(); }
void Loader::load_state_dict(const State& state) { engine_->load_state_dict(state); }
void Loader::set_num_workers(int num_workers) { engine_->set_num_workers(num_workers); }
int Loader::num_workers() const { return engine_->num_workers(); }
void Loader::keep_memory_warm() { engine_->keep_memory_warm(); }
LoaderStats Loader::stats() const { return engine_->stats(); }
void Loader::reset_stats() { engine_->reset_stats(); }

Loader::Iterator Loader::begin() {
  if (engine_->started()) engine_->reset();
  return Iterator(*this);
}

}  // namespace infeed
