#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "infeed/base/error.h"
#include "loader/feed.h"

namespace infeed {
namespace {

void check_range(std::span<const std::int64_t> indices, std::int64_t dataset_size, std::int64_t position) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < dataset_size) continue;
    throw IndexError(
        fmt::format("the sampler yielded index {} at position {} of the epoch; the dataset has {} samples. Make the "
                    "sampler for this dataset's size.",
                    indices[i], position + static_cast<std::int64_t>(i), dataset_size));
  }
}

// What a state says was delivered out of order: ascending, each a number of `step`s beyond `cursor`.
std::set<std::int64_t> early_batches(const State& state, std::int64_t cursor, std::int64_t step) {
  std::set<std::int64_t> early;
  for (const std::int64_t begin : state.get_ints("delivered_early")) {
    if (begin <= cursor || (begin - cursor) % step != 0 || (!early.empty() && begin <= *early.rbegin()))
      throw StateError(
          fmt::format("the state's delivered_early names {}: from cursor {} on, in steps of {} and ascending, no batch "
                      "begins there. The state was changed, or is of another batch_size.",
                      begin, cursor, step));
    early.insert(early.end(), begin);
  }
  return early;
}

}  // namespace

void Feed::taken(const Work& /*work*/, bool /*shard_ended*/) {}
int Feed::barren(const Work& /*work*/, bool /*any_good*/) { return 0; }

SamplerFeed::SamplerFeed(Sampler& sampler, std::int64_t dataset_size, std::int64_t batch_size, bool drop_last)
    : sampler_(sampler), dataset_size_(dataset_size), batch_size_(batch_size), drop_last_(drop_last) {}

void SamplerFeed::start_epoch(std::uint64_t epoch) {
  sampler_.start_epoch(epoch);
  epoch_start_ = State();
  sampler_.save(epoch_start_);
  origin_ = drawn_ = cursor_ = 0;
  next_number_ = 0;
  at_end_ = resumed_ = false;
  early_.clear();
}

bool SamplerFeed::next(Work& work) {
  for (;;) {
    if (at_end_) return false;
    work.indices.resize(static_cast<std::size_t>(next_ask()));
    const std::size_t got = sampler_.next(work.indices);
    if (got > work.indices.size())
      throw IndexError(fmt::format("the sampler says that it wrote {} indices into room for {}.", got, batch_size_));
    work.indices.resize(got);
    check(work.indices);
    work.number = next_number_++;
    work.begin = drawn_;
    work.rows = static_cast<int>(got);
    work.shard = -1;
    drawn_ += static_cast<std::int64_t>(got);
    if (std::cmp_less(got, batch_size_)) check_end();
    if (got == 0 || (at_end_ && drop_last_ && std::cmp_less(got, batch_size_))) return false;
    if (early_.count(work.begin) == 0) return true;  // else: delivered before the state was saved
  }
}

void SamplerFeed::check(std::span<const std::int64_t> indices) const {
  check_range(indices, dataset_size_, drawn_);
  const auto size = promised_size();
  if (size && drawn_ + static_cast<std::int64_t>(indices.size()) > *size)
    throw IndexError(
        fmt::format("the sampler's size() is {}, but it yielded {} indices. Mend its size() or its next().", *size,
                    drawn_ + static_cast<std::int64_t>(indices.size())));
}

// A batch, or what the sampler still promises and one more, to notice if it breaks its promise.
std::int64_t SamplerFeed::next_ask() const {
  const auto size = promised_size();
  return size ? std::clamp<std::int64_t>(*size - drawn_ + 1, 1, batch_size_) : batch_size_;
}

// After a resume the epoch may be a share of another world size's: size() tells of whole epochs.
std::optional<std::int64_t> SamplerFeed::promised_size() const { return resumed_ ? std::nullopt : sampler_.size(); }

void SamplerFeed::check_end() {
  at_end_ = true;
  const auto size = promised_size();
  if (size && drawn_ < *size)
    throw IndexError(fmt::format(
        "the sampler's size() is {}, but it ended after {} indices. Mend its size() or its next().", *size, drawn_));
}

void SamplerFeed::delivered(const Work& work, int rows) {
  if (work.begin > cursor_) {
    early_.insert(work.begin);
  } else {
    cursor_ = work.begin + rows;
  }
  // A batch that a loaded state names and that the sampler has not come to yet must stay listed, to be passed over.
  while (!early_.empty() && *early_.begin() <= cursor_ && *early_.begin() < drawn_) {
    const std::int64_t begin = *early_.begin();
    early_.erase(early_.begin());
    cursor_ = std::max(cursor_, std::min(begin + batch_size_, std::max(drawn_, begin)));
  }
}

std::optional<std::int64_t> SamplerFeed::size() const {
  const auto size = sampler_.size();
  if (!size) return std::nullopt;
  return drop_last_ ? *size / batch_size_ : (*size + batch_size_ - 1) / batch_size_;
}

void SamplerFeed::save(State& state) const {
  state.set("kind", "sampler");
  State here;
  const bool can_tell = early_.empty() && sampler_.save_at(cursor_ - origin_, here);
  state.set("sampler", can_tell ? here : epoch_start_);
  state.set("origin", can_tell ? cursor_ : origin_);
  state.set("cursor", cursor_);
  state.set("delivered_early", std::vector<std::int64_t>(early_.begin(), early_.end()));
}

void SamplerFeed::load(const State& state) {
  if (state.get_string("kind") != "sampler")
    throw StateError("the state is of another kind of loader (batch sampler or stream): load it there.");
  const std::int64_t origin = state.get_int("origin");
  const std::int64_t cursor = state.get_int("cursor");
  constexpr std::int64_t kLargest = std::int64_t{1} << 53;  // far beyond any data set, far below overflow
  if (origin < 0 || cursor < origin || cursor > kLargest)
    throw StateError(fmt::format("the state's position {} is before its origin {}.", cursor, origin));
  epoch_start_ = state.get_state("sampler");
  sampler_.load(epoch_start_);
  const std::int64_t passed = sampler_.skip(cursor - origin);
  if (passed != cursor - origin)
    throw StateError(fmt::format("the saved position {} is past the sampler's end ({}).", cursor, origin + passed));
  origin_ = origin;
  drawn_ = cursor_ = cursor;
  next_number_ = static_cast<std::uint64_t>(cursor / batch_size_);
  at_end_ = false;
  resumed_ = true;
  load_early(state);
}

// Batches beyond the cursor begin a whole number of batches after it. One that cannot be would drop samples unseen.
void SamplerFeed::load_early(const State& state) {
  early_ = early_batches(state, cursor_, batch_size_);
  const auto size = sampler_.size();
  if (!size || early_.empty()) return;
  const std::int64_t longest = std::max(*size, dataset_size_);  // in any world size
  if (*early_.rbegin() >= longest)
    throw StateError(fmt::format("the state's delivered_early names position {}, the epoch has at most {}.",
                                 *early_.rbegin(), longest));
}

BatchFeed::BatchFeed(BatchSampler& sampler, std::int64_t dataset_size)
    : sampler_(sampler), dataset_size_(dataset_size) {}

void BatchFeed::start_epoch(std::uint64_t epoch) {
  sampler_.start_epoch(epoch);
  epoch_start_ = State();
  sampler_.save(epoch_start_);
  next_number_ = low_ = 0;
  early_.clear();
}

bool BatchFeed::next(Work& work) {
  for (;;) {
    if (!sampler_.next(work.indices)) {
      const auto size = sampler_.size();
      if (size && std::cmp_less(next_number_, *size))
        throw IndexError(
            fmt::format("the batch sampler's size() is {}, but it ended after {} batches.", *size, next_number_));
      return false;
    }
    const std::uint64_t number = next_number_++;
    if (work.indices.empty() || std::cmp_greater(work.indices.size(), sampler_.max_batch_size()))
      throw IndexError(fmt::format(
          "batch {} of the batch sampler has {} indices; between 1 and its max_batch_size() of {} are possible.",
          number, work.indices.size(), sampler_.max_batch_size()));
    check_range(work.indices, dataset_size_, 0);
    const auto size = sampler_.size();
    if (size && std::cmp_greater_equal(number, *size))
      throw IndexError(fmt::format("the batch sampler's size() is {}, but it yielded more batches.", *size));
    work.number = number;
    work.begin = static_cast<std::int64_t>(number);
    work.rows = static_cast<int>(work.indices.size());
    work.shard = -1;
    if (early_.count(work.begin) == 0) return true;
  }
}

void BatchFeed::delivered(const Work& work, int /*rows*/) {
  early_.insert(static_cast<std::int64_t>(work.number));
  while (!early_.empty() && std::cmp_equal(*early_.begin(), low_)) {
    early_.erase(early_.begin());
    ++low_;
  }
}

void BatchFeed::save(State& state) const {
  state.set("kind", "batch_sampler");
  state.set("sampler", epoch_start_);
  state.set("cursor", low_);
  state.set("delivered_early", std::vector<std::int64_t>(early_.begin(), early_.end()));
}

void BatchFeed::load(const State& state) {
  if (state.get_string("kind") != "batch_sampler")
    throw StateError("the state is of another kind of loader (sampler or stream): load it there.");
  epoch_start_ = state.get_state("sampler");
  sampler_.load(epoch_start_);
  const std::uint64_t cursor = state.get_uint("cursor");
  std::vector<std::int64_t> dropped;
  for (std::uint64_t i = 0; i < cursor; ++i) {
    if (!sampler_.next(dropped))
      throw StateError(fmt::format("the saved position, batch {}, is past the batch sampler's end ({}).", cursor, i));
  }
  next_number_ = low_ = cursor;
  early_ = early_batches(state, static_cast<std::int64_t>(cursor), 1);
  const auto size = sampler_.size();
  if (size && !early_.empty() && *early_.rbegin() >= *size)
    throw StateError(
        fmt::format("the state's delivered_early names batch {}, the epoch has {}.", *early_.rbegin(), *size));
}

}  // namespace infeed
