#include "loader_turn.h"

#include <fmt/format.h>
#include <unistd.h>

#include <set>
#include <stdexcept>

#include "machine.h"

namespace bench {

double workers_cpu_s(const infeed::Loader& loader) {
  double total = 0;
  std::set<std::int64_t> seen = {getpid()};
  for (const infeed::WorkerStats& worker : loader.stats().workers) {
    if (seen.insert(worker.pid).second) total += cpu_s_of(static_cast<pid_t>(worker.pid));
  }
  return total;
}

double loader_cpu_s(const infeed::Loader& loader) { return process_cpu_s() + workers_cpu_s(loader); }

TurnResult run_epoch(infeed::Loader& loader) {
  TurnResult result;
  const double cpu_before = loader_cpu_s(loader);
  const double before = wall_s();
  while (const auto batch = loader.next()) {
    const infeed::ArrayView& array = batch->arrays().front().array;
    const auto rows = static_cast<std::size_t>(batch->size());
    const std::size_t row_bytes = array.nbytes() / rows;
    for (std::size_t row = 0; row < rows; ++row) result.checksum += touch(array.data + row * row_bytes, row_bytes);
    result.rows += rows;
  }
  result.seconds = wall_s() - before;
  result.cpu_s = loader_cpu_s(loader) - cpu_before;
  return result;
}

Turn Match::contestant(std::string who, std::function<TurnResult(std::uint64_t)> turn) {
  const std::size_t place = cpu_us_.size();
  cpu_us_.emplace_back();
  return [this, place, who = std::move(who), turn = std::move(turn)](std::uint64_t round) {
    const TurnResult result = turn(round);
    check(round, result, who);
    const auto rows = static_cast<double>(result.rows);
    if (round > 0) cpu_us_[place].push_back(result.cpu_s / rows * 1e6);
    return rows / result.seconds;
  };
}

void Match::check(std::uint64_t round, const TurnResult& turn, const std::string& who) {
  const auto [it, is_first] = first_.emplace(round, turn);
  if (is_first || (it->second.rows == turn.rows && it->second.checksum == turn.checksum)) return;
  throw std::runtime_error(fmt::format("round {}: {} delivered {} rows with checksum {}, the first {} rows with {}",
                                       round, who, turn.rows, turn.checksum, it->second.rows, it->second.checksum));
}

}  // namespace bench
