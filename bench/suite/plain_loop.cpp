#include "plain_loop.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>

#include "infeed/batch/row.h"
#include "machine.h"

namespace bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kRowsATake = 8;

}  // namespace

PlainLoop::PlainLoop(const infeed::Dataset& dataset, int threads, int slot_rows)
    : dataset_(dataset),
      row_bytes_((dataset.schema().row_bytes() + 64 * dataset.schema().size() + kPage - 1) / kPage * kPage),
      slot_rows_(static_cast<std::size_t>(slot_rows)) {
  for (int i = 0; i < threads; ++i) slots_.push_back(std::make_unique<WarmMemory>(row_bytes_ * slot_rows_));
}

std::uint64_t PlainLoop::read_row(std::byte* memory, std::int64_t index, std::uint64_t epoch) const {
  const infeed::Schema& schema = dataset_.schema();
  std::vector<infeed::ArrayView> arrays;
  std::size_t at = 0;
  for (const infeed::Field& field : schema.fields()) {
    arrays.emplace_back(memory + at, field.dtype, field.shape);
    at += (arrays.back().nbytes() + 63) / 64 * 64;
  }
  infeed::Row row(schema, arrays, {.seed = 0, .epoch = epoch, .index = index}, nullptr);
  dataset_.read(row);
  return touch(memory, arrays.front().nbytes());
}

TurnResult PlainLoop::run(std::span<const std::int64_t> order, std::uint64_t epoch) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  TurnResult result{.rows = order.size()};
  const auto work = [&](std::byte* slot) {
    const double before = thread_cpu_s();
    std::uint64_t sum = 0;
    std::size_t place = 0;
    for (std::size_t begin; (begin = next.fetch_add(kRowsATake)) < order.size();) {
      for (const std::int64_t index : order.subspan(begin, std::min(kRowsATake, order.size() - begin))) {
        sum += read_row(slot + place * row_bytes_, index, epoch);
        place = (place + 1) % slot_rows_;
      }
    }
    const std::lock_guard lock(mutex);
    result.checksum += sum;
    result.cpu_s += thread_cpu_s() - before;
  };
  const double before = wall_s();
  {
    std::vector<std::jthread> threads;
    for (const auto& slot : slots_) threads.emplace_back(work, slot->data());
  }
  result.seconds = wall_s() - before;
  return result;
}

std::vector<std::int64_t> sequence(std::int64_t size) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace bench
