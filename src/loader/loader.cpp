#include "infeed/loader/loader.h"

#include <utility>

#include "loader/source.h"

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
    : source_(Source::make(&dataset, nullptr, std::move(options))) {}
Loader::Loader(const Stream& stream, LoaderOptions options)
    : source_(Source::make(nullptr, &stream, std::move(options))) {}
Loader::~Loader() = default;

std::optional<Batch> Loader::next() { return source_->next(); }
void Loader::reset() { source_->reset(); }
void Loader::set_epoch(std::uint64_t epoch) { source_->set_epoch(epoch); }
std::uint64_t Loader::epoch() const { return source_->epoch(); }
std::optional<std::int64_t> Loader::size() const { return source_->size(); }
State Loader::state_dict() const { return source_->state_dict(); }
void Loader::load_state_dict(const State& state) { source_->load_state_dict(state); }
void Loader::set_num_workers(int num_workers) { source_->set_num_workers(num_workers); }
int Loader::num_workers() const { return source_->num_workers(); }
void Loader::keep_memory_warm() { source_->keep_memory_warm(); }
LoaderStats Loader::stats() const { return source_->stats(); }
void Loader::reset_stats() { source_->reset_stats(); }
Stager* Loader::stager() const noexcept { return source_->stager(); }

Loader::Iterator Loader::begin() {
  if (source_->started()) source_->reset();
  return Iterator(*this);
}

}  // namespace infeed
