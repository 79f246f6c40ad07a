#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "batch/reader.h"
#include "infeed/base/error.h"
#include "loader/engine.h"
#include "worker/fault.h"

namespace infeed {
namespace {

// A reader of a shard that fails for so many batches in a row will fail for ever.
constexpr int kBarrenBatches = 64;

}  // namespace

std::optional<Batch> Loader::Engine::next_batch() {
  std::optional<SourceBatch> source;
  if (compactor_) {
    source = compactor_->next([this] { return next_source(); },
                              [this](const Work& work, int rows) { feed_->delivered(work, rows); });
  } else {
    source = next_source();
  }
  if (!source) return std::nullopt;
  Batch batch = hand_out(std::move(*source));
  top_up_quietly();  // the workers go on while the user computes
  return batch;
}

// The next batch with samples, as the workers left it; nullopt at the end of the epoch.
std::optional<SourceBatch> Loader::Engine::next_source() {
  for (;;) {
    if (pending_) std::rethrow_exception(std::exchange(pending_, nullptr));
    top_up();
    if (in_flight_.empty()) {
      if (!unarmed_) return std::nullopt;
      if (cancelled_.empty()) throw MemoryError(shortage_);
      wait_for_a_drained_slot();
      continue;
    }
    const std::size_t position = wait_for_ready();
    SourceBatch source;
    source.work = std::move(in_flight_[position].work);
    source.result = memory_->ring().take(in_flight_[position].slot);
    trace_->taken(source.result.seq);
    in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(position));
    if (source.result.extent != kNoExtent)
      memory_->touch(source.result.extent, std::max<std::size_t>(source.result.nbytes, settings_.batch_bytes));
    largest_batch_ = std::max<std::uint64_t>(largest_batch_, source.result.nbytes);
    if (source.work.shard >= 0) {
      feed_->taken(source.work, source.result.shard_ended);
      number_stream_rows(source);
      feed_dry_ = false;  // a shard may have more, though another ended
    }
    look_at_reports(source);
    const bool dropped = stream_ && options_.drop_last && source.result.shard_ended;
    if (compactor_) return source;
    feed_->delivered(source.work, source.work.rows);
    const int barren = stream_ ? feed_->barren(source.work, !source.good.empty()) : 0;
    if (!source.good.empty() && !dropped) return source;
    memory_->ring().release_extent(source.result.extent);
    if (barren > kBarrenBatches && !source.result.shard_ended) {
      feed_->taken(source.work, true);
      throw DataError(fmt::format(
          "shard {} of the stream gave no good sample in {} batches: it is taken to be damaged, and ends at "
          "row {}.",
          source.work.shard, barren, source.work.end()));
    }
  }
}

// A stream's rows are numbered within their shard; those that were skipped left no row, only a report.
void Loader::Engine::number_stream_rows(SourceBatch& source) {
  std::set<std::int64_t> skipped;
  for (const RowReport& report : source.result.reports) {
    if (report.fault == RowFault::kSkipped) skipped.insert(report.index);
  }
  source.result.indices.clear();
  for (std::int64_t at = source.work.begin; std::cmp_less(source.result.indices.size(), source.result.rows); ++at) {
    if (!skipped.contains(at)) source.result.indices.push_back(at);
  }
}

// The batch is not handed out: its memory is free, and the position moves past it.
void Loader::Engine::give_up(const SourceBatch& source) {
  memory_->ring().release_extent(source.result.extent);
  feed_->delivered(source.work, source.work.rows);
}

// Raises what on_error says, lists the rest, and tells the rows that hold samples.
void Loader::Engine::look_at_reports(SourceBatch& source) {
  const bool any = !source.result.reports.empty();  // in nearly every batch there are none
  std::vector<bool> skipped(any ? static_cast<std::size_t>(std::max(source.result.rows, source.work.rows)) : 0, false);
  const RowReport* raised = nullptr;
  for (const RowReport& report : source.result.reports) {
    if (report.fault == RowFault::kRaised) {
      if (!raised || report.row < raised->row) raised = &report;
      continue;
    }
    const bool in_batch = report.row >= 0 && std::cmp_less(report.row, skipped.size());
    if (report.fault == RowFault::kSkipped && in_batch) skipped[static_cast<std::size_t>(report.row)] = true;
    const bool known = in_batch && std::cmp_less(report.row, source.result.indices.size());
    const std::lock_guard lock(stats_mutex_);
    recorder_.faulty(report, known ? source.result.indices[static_cast<std::size_t>(report.row)] : -1,
                     describe_sample(report.index));
  }
  if (raised) {
    const std::string where = raised->row < 0 ? fmt::format("batch {}", source.work.number)
                                              : fmt::format("sample {} of batch {}", raised->index, source.work.number);
    const RowReport report = *raised;
    give_up(source);
    throw_fault(report.error_code,
                fmt::format("{} (worker {}): {}", where, report.claimant / options_.threads_per_worker, report.text));
  }
  if (source.result.reports_lost > 0) {  // which rows they were is not known: the batch cannot be trusted
    give_up(source);
    throw DataError(fmt::format(
        "batch {} has {} faulty samples, more than can be listed. Lower batch_size ({}), or look at the data.",
        source.work.number, source.result.reports.size() + static_cast<std::size_t>(source.result.reports_lost),
        settings_.max_rows));
  }
  // With a collate, and of a stream, the worker left skipped rows out itself.
  const bool may_have_gaps = any && settings_.layout.has_value() && !stream_;
  source.good.reserve(static_cast<std::size_t>(source.result.rows));
  for (int row = 0; row < source.result.rows; ++row) {
    if (!may_have_gaps || !skipped[static_cast<std::size_t>(row)]) source.good.push_back(row);
  }
}

// Moves rows up over skipped ones, in place.
void Loader::Engine::close_gaps(SourceBatch& source) const {
  std::byte* extent = memory_->arena().extent(source.result.extent);
  for (std::size_t to = 0; to < source.good.size(); ++to) {
    const auto from = static_cast<std::size_t>(source.good[to]);
    if (from == to) continue;
    for (std::size_t field = 0; field < settings_.layout->schema().size(); ++field) {
      const std::size_t row_bytes = settings_.layout->row_bytes(field);
      std::byte* base = extent + settings_.layout->offset(field);
      std::memcpy(base + to * row_bytes, base + from * row_bytes, row_bytes);
    }
    source.result.indices[to] = source.result.indices[from];
  }
  source.result.rows = static_cast<int>(source.good.size());
}

Batch Loader::Engine::hand_out(SourceBatch source) {
  if (std::cmp_less(source.good.size(), source.result.rows)) close_gaps(source);
  const int extent = source.result.extent;
  std::byte* bytes = memory_->arena().extent(extent);
  // The last extents serve the batches to come: what is held from here on is copied.
  const bool scarce = memory_->ring().free_extents() < depth_ + 2;
  std::vector<NamedArray> arrays;
  std::shared_ptr<void> owner;
  try {
    arrays = settings_.layout ? settings_.layout->arrays(bytes, source.result.rows)
                              : read_batch({bytes, std::min(source.result.nbytes, memory_->arena().extent_bytes())});
    source.result.indices.resize(static_cast<std::size_t>(source.result.rows));
    owner = scarce ? memory_->copy_out(extent, arrays) : memory_->lend(extent);
  } catch (...) {
    memory_->ring().release_extent(extent);
    throw;
  }
  memory_->trim();
  const std::uint64_t number = settings_.in_order ? delivered_ : source.work.number;
  ++delivered_;
  const std::lock_guard lock(stats_mutex_);
  recorder_.handed_out(source.result.rows, scarce);
  return Batch(std::move(arrays), std::move(source.result.indices), epoch_, number, std::move(owner));
}

// The user's code may throw here too, and must not spoil what the description is for.
std::string Loader::Engine::describe_sample(std::int64_t index) const noexcept try {
  return dataset_ && index >= 0 && index < dataset_->size() ? dataset_->describe(index) : std::string();
} catch (...) {
  return {};
}

}  // namespace infeed
