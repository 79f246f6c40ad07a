#include "worker/consumer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

#include "batch/reader.h"

namespace infeed::testing {
namespace {

constexpr int kNumSlots = 24;
constexpr int kNumExtents = 8;
constexpr int kMaxTestClaimants = 32;

ArenaOptions geometry(const RingConfig& config) {
  return {.control_bytes = Ring::bytes(config),
          .extent_bytes = 1 << 20,
          .num_extents = config.num_extents,
          .min_extents = config.num_extents};
}

PoolOptions pool_options(const Scene& scene, int ready_fd) {
  PoolOptions options{.kind = scene.kind,
                      .num_workers = scene.workers,
                      .threads_per_worker = scene.threads_per_worker,
                      .ready_eventfd = ready_fd,
                      .cpu_affinity = scene.cpu_affinity,
                      .worker_executable = scene.executable};
  if (scene.kind == WorkerKind::kSpawn)
    options.worker_init_name = scene.init;
  else if (!scene.init.empty())
    options.worker_init = scene.init == "fail" ? failing_init : log_init;
  return options;
}

}  // namespace

Consumer::Consumer(const Scene& scene)
    : scene_(scene),
      dataset_(scene.behaviour),
      stream_(scene.behaviour),
      ready_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      config_{.num_slots = kNumSlots,
              .max_rows = scene.rows,
              .max_claimants = kMaxTestClaimants,
              .num_extents = kNumExtents},
      arena_(Arena::create(geometry(config_))),
      ring_(Ring::format(arena_.control(), config_)) {
  if (scene.behaviour.variable)
    collate_ = make_collate("ragged", {});
  else
    layout_.emplace(dataset_.schema(), scene.rows);
  plan_ = {.dataset = scene.stream ? nullptr : &dataset_,
           .stream = scene.stream ? &stream_ : nullptr,
           .collate = collate_.get(),
           .layout = layout_ ? &*layout_ : nullptr,
           .seed = 7,
           .max_rows = scene.rows,
           .on_error = scene.on_error,
           .any_claimant = !scene.whole};
  pool_ = WorkerPool::start(pool_options(scene, ready_fd_), ring_, arena_, plan_);
}

Consumer::~Consumer() {
  pool_.reset();
  ::close(ready_fd_);
}

bool Consumer::arm(Order order) {
  order.seq = next_seq_;
  order.rows = scene_.rows;
  order.whole = scene_.whole || scene_.stream || scene_.behaviour.variable;
  if (order.whole && pool_->num_workers() > 0) {
    const int claimants = pool_->num_workers() * scene_.threads_per_worker;
    order.assigned = static_cast<int>(order.number) % claimants;
  }
  if (!order.whole && (order.extent = ring_.acquire_extent()) == kNoExtent) return false;
  const int slot = ring_.arm(order);
  if (slot < 0) return false;
  ++next_seq_;
  armed_.push_back(slot);
  if (order.assigned != kAnyone)
    pool_->notify_claimant(order.assigned);
  else
    pool_->notify(ring_.open_runs());
  return true;
}

bool Consumer::arm(std::uint64_t number) {
  std::vector<std::int64_t> indices;
  for (int row = 0; row < scene_.rows; ++row)
    indices.push_back((static_cast<std::int64_t>(number) * scene_.rows + row) % scene_.behaviour.size);
  return arm(Order{.number = number, .indices = indices});
}

bool Consumer::arm_shard(int shard, std::int64_t first_row) {
  return arm(Order{.number = static_cast<std::uint64_t>(shard),
                   .shard = shard,
                   .num_shards = scene_.num_shards,
                   .first_row = first_row});
}

std::optional<Taken> Consumer::take() {
  const int slot = armed_.front();
  while (!ring_.ready(slot)) {
    if (pool_->help()) continue;
    if (!start_failure().empty()) return std::nullopt;
    wait_a_moment();
  }
  armed_.pop_front();
  Taken taken{.result = ring_.take(slot), .rows = {}};
  taken.rows = read_rows(taken.result);
  if (taken.result.extent != kNoExtent) ring_.release_extent(taken.result.extent);
  return taken;
}

void Consumer::wait_a_moment() {
  ring_.begin_wait();
  if (!ring_.ready(armed_.front())) {
    std::vector<pollfd> entries{{.fd = ready_fd_, .events = POLLIN, .revents = 0}};
    for (const int fd : pool_->death_fds()) entries.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    ::poll(entries.data(), entries.size(), 50);
  }
  ring_.end_wait();
  std::uint64_t rings = 0;
  [[maybe_unused]] const auto got = ::read(ready_fd_, &rings, sizeof rings);
  look_after_workers();
  if (ring_.open_runs() > 0) pool_->notify(ring_.open_runs());
}

void Consumer::look_after_workers() {
  for (const Death& death : pool_->reap()) {
    deaths_.push_back(death);
    const int first = death.worker_id * scene_.threads_per_worker;
    for (int i = 0; i < scene_.threads_per_worker; ++i) ring_.bury(first + i);
    if (start_failure().empty()) pool_->restart(death.worker_id);
    ring_.ring_workers(true);
  }
}

std::vector<Taken> Consumer::run(int batches, std::uint64_t first) {
  std::vector<Taken> taken;
  std::uint64_t armed = first;
  const std::uint64_t end = first + static_cast<std::uint64_t>(batches);
  while (taken.size() < static_cast<std::size_t>(batches)) {
    while (armed < end && armed_.size() < 3 && arm(armed)) ++armed;
    auto batch = take();
    if (!batch) return taken;
    taken.push_back(std::move(*batch));
  }
  return taken;
}

std::string Consumer::start_failure() const {
  for (int claimant = 0; claimant < kMaxTestClaimants; ++claimant) {
    if (ring_.start_error_code(claimant) != 0) return ring_.start_failure(claimant);
  }
  return {};
}

ClaimantStats Consumer::total() const {
  ClaimantStats sum;
  for (int claimant = 0; claimant < kMaxTestClaimants; ++claimant) {
    const ClaimantStats stats = ring_.stats(claimant);
    sum.rows += stats.rows;
    sum.runs += stats.runs;
    sum.read_ns += stats.read_ns;
    sum.busy_ns += stats.busy_ns;
  }
  return sum;
}

std::vector<std::vector<std::int64_t>> Consumer::read_rows(const SlotResult& result) const {
  std::vector<std::vector<std::int64_t>> rows;
  if (result.extent == kNoExtent || result.rows == 0) return rows;
  std::byte* extent = arena_.extent(result.extent);
  if (layout_) {
    const auto* values = layout_->arrays(extent, result.rows).front().array.as<std::int64_t>();
    for (int row = 0; row < result.rows; ++row) rows.emplace_back(values + 4 * row, values + 4 * row + 4);
    return rows;
  }
  const auto arrays = read_batch(std::span(extent, arena_.extent_bytes()));
  const auto* values = arrays.at(0).array.as<std::int64_t>();
  const auto* offsets = arrays.at(1).array.as<std::int64_t>();
  for (int row = 0; row < result.rows; ++row) rows.emplace_back(values + offsets[row], values + offsets[row + 1]);
  return rows;
}

std::vector<std::int64_t> expected_row(const Scene& scene, std::int64_t index) {
  std::vector<std::int64_t> row(static_cast<std::size_t>(scene.behaviour.variable ? index % 5 + 1 : 4));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = index * 10 + static_cast<std::int64_t>(i);
  return row;
}

std::vector<std::vector<std::int64_t>> expected_rows(const Scene& scene, std::uint64_t number) {
  std::vector<std::vector<std::int64_t>> rows;
  for (int row = 0; row < scene.rows; ++row)
    rows.push_back(expected_row(scene, (static_cast<std::int64_t>(number) * scene.rows + row) % scene.behaviour.size));
  return rows;
}

}  // namespace infeed::testing
