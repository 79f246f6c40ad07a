#include "transform/taps.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace infeed {
namespace {

int round_up(int value, int step) { return (value + step - 1) / step * step; }

}  // namespace

void TapTable::build(const TapSpec& spec, Grouping grouping) {
  if (outputs > 0 && spec == spec_) return;
  spec_ = spec;
  measure();
  outputs = spec.axis.out.size;
  clear(static_cast<std::size_t>(round_up(outputs, kGroup)), taps);
  const GridRange& out = spec.axis.out;
  for (int i = 0; i < outputs; ++i) {
    const int point = out.begin + (spec.reversed ? outputs - 1 - i : i);
    if (point >= out.valid_begin && point < out.valid_end) weigh(i, point);
  }
  quantise(spec.held_size);
  groups.usable = false;
  if (grouping != Grouping::kNone) group(grouping);
}

void TapTable::build_spread(const TapTable& pixels, const SampleRange& samples, Grouping grouping) {
  if (outputs > 0 && pixels.spec_ == spec_ && samples == samples_) return;
  spec_ = pixels.spec_;
  samples_ = samples;
  largest_ = 0;
  outputs = pixels.outputs;
  clear(pixels.start.size(), pixels.taps / 2 + 2);
  for (int i = 0; i < outputs; ++i)
    if (pixels.count[static_cast<std::size_t>(i)] > 0) spread(pixels, i);
  quantise(samples.held_size);
  groups.usable = false;
  if (grouping != Grouping::kNone) group(grouping);
}

void TapTable::clear(std::size_t size, int most_taps) {
  start.assign(size, 0);
  count.assign(size, 0);
  exact_stride = most_taps + kMargin;
  exact.assign(kMargin + static_cast<std::size_t>(outputs) * static_cast<std::size_t>(exact_stride), 0.0);
}

// Coordinates are those of a picture that was cropped to the source, as Pillow sees it: the same rounding everywhere.
void TapTable::measure() {
  const GridRange& source = spec_.axis.source;
  const double num = spec_.scale_num / 8.0;
  const double begin = source.begin * num;
  source_ = static_cast<int>(std::floor(begin));
  origin_ = begin - source_;
  scale_ = source.size * num / spec_.axis.resized;
  support_ = std::max(1.0, scale_);
  limit_ = static_cast<int>(std::ceil(origin_ + source.size * num));
  picture_low_ = static_cast<int>(std::floor(source.valid_begin * num)) - source_;
  picture_high_ = static_cast<int>(std::ceil(source.valid_end * num)) - source_;
  low_ = std::max(picture_low_, spec_.held_begin - source_);
  high_ = std::min(picture_high_, spec_.held_begin + spec_.held_size - source_);
  taps = static_cast<int>(std::ceil(support_)) * 2 + 1;
  largest_ = 0;
}

void TapTable::weigh(int output, int point) {
  const double center = origin_ + (point + 0.5) * scale_;
  // intentional: Pillow's rounding, towards zero. NOLINTBEGIN(bugprone-incorrect-roundings)
  const int from = std::max(0, static_cast<int>(center - support_ + 0.5));
  const int to = std::min(limit_, static_cast<int>(center + support_ + 0.5));
  // NOLINTEND(bugprone-incorrect-roundings)
  double* w = exact_weights(static_cast<std::size_t>(output));
  const double inverse = 1.0 / support_;
  double sum = 0;
  int used = 0, begin = from;
  const bool all_held = from >= low_ && to <= high_;
  for (int x = from; x < to; ++x) {
    const double weight = std::max(0.0, 1.0 - std::abs(x + 0.5 - center) * inverse);
    const bool held = all_held || (x >= low_ && x < high_);
    if (held || x < picture_low_ || x >= picture_high_) sum += weight;
    if (!held || (used == 0 && weight == 0)) continue;
    if (used == 0) begin = x;
    w[used++] = weight;
  }
  while (used > 0 && w[used - 1] == 0) w[--used] = 0;
  for (int j = 0; j < used; ++j) {
    w[j] /= sum;
    largest_ = std::max(largest_, w[j]);
  }
  start[static_cast<std::size_t>(output)] = used == 0 ? 0 : begin + source_ - spec_.held_begin;
  count[static_cast<std::size_t>(output)] = used;
}

// Sample k goes to pixels 2k and 2k + 1 by 3/4, to their neighbours 2k - 1 and 2k + 2 by 1/4; at the picture's edge, where
// there is no other sample, the outermost pixel is all its own.
void TapTable::spread(const TapTable& pixels, int output) {
  const auto i = static_cast<std::size_t>(output);
  const int begin = pixels.start[i] + pixels.first + spec_.held_begin, end = begin + pixels.count[i];
  const int low = std::max(0, (begin - 1) / 2), high = std::min(samples_.all - 1, end / 2), used = high - low + 1;
  const double* from = pixels.exact_weights(output);
  double* w = exact_weights(i);
  const double* p = from + (2 * low - begin);  // up to kMargin before the first weight, and behind the last
  for (int k = 0; k < used; ++k, p += 2) w[k] = 0.75 * (p[0] + p[1]) + 0.25 * (p[-1] + p[2]);
  if (begin == 0) w[0] += 0.25 * from[0];
  if (end == 2 * samples_.all) w[used - 1] += 0.25 * from[end - begin - 1];
  for (int k = 0; k < used; ++k) largest_ = std::max(largest_, w[k]);
  start[i] = low - samples_.held_begin;
  count[i] = used;
}

// A weight is the difference of two rounded prefix sums: what one loses the next gains, and the total is exact.
void TapTable::quantise(int held) {
  int last = 0;
  taps = 1;
  first = held;
  for (std::size_t i = 0; i < static_cast<std::size_t>(outputs); ++i) {
    if (count[i] == 0) continue;
    taps = std::max(taps, count[i]);
    first = std::min(first, start[i]);
    last = std::max(last, start[i] + count[i]);
  }
  first = std::min(first, held - 1);
  extent = std::max(1, last - first);
  for (shift = 14; shift < spec_.max_shift && largest_ * std::ldexp(1.0, shift + 1) < 32766.0;) ++shift;
  stride = round_up(taps, taps > kLongTaps ? 32 : 4);
  weights.assign(start.size() * static_cast<std::size_t>(stride), 0);
  const double unit = std::ldexp(1.0, shift);
  for (std::size_t i = 0; i < static_cast<std::size_t>(outputs); ++i) {
    if (count[i] == 0) continue;
    start[i] -= first;
    const double* w = exact_weights(i);
    std::int16_t* q = weights.data() + i * static_cast<std::size_t>(stride);
    double total = 0.5;
    int before = 0;
    for (int j = 0; j < count[i]; ++j) {
      total += w[j] * unit;
      const int now = static_cast<int>(total);
      q[j] = static_cast<std::int16_t>(now - before);
      before = now;
    }
  }
}

void TapTable::group(Grouping grouping) {
  const bool words = grouping == Grouping::kWords16;
  const std::size_t size = words ? 16 : 4, used = static_cast<std::size_t>(outputs);
  groups.pairs = (taps + 1) / 2;
  groups.base.assign(start.size() / size, 0);
  groups.index.assign(start.size(), 0);
  int longest = 0;
  for (std::size_t i = 0; i < used; i += size) {
    const auto begin = start.begin() + static_cast<std::ptrdiff_t>(i);
    const auto [low, high] = std::minmax_element(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, used - i)));
    longest = std::max(longest, *high - *low);
    groups.base[i / size] = *low;
  }
  longest += words ? 2 * groups.pairs : 2;
  groups.usable = longest <= (words ? 64 : 8);
  groups.half_register = longest <= 32;
  if (!groups.usable) return;
  const int step = words ? 0x10001 : 0x02020202, first_two = words ? 0x10000 : 0x03020100;
  for (std::size_t i = 0; i < used; ++i) groups.index[i] = (start[i] - groups.base[i / size]) * step + first_two;
  weigh_groups();
}

void TapTable::weigh_groups() {
  const auto pairs = static_cast<std::size_t>(groups.pairs);
  groups.weights.resize(start.size() * pairs * 2);
  for (std::size_t i = 0; i < start.size(); ++i) {
    const std::int16_t* from = weights.data() + i * static_cast<std::size_t>(stride);
    std::int16_t* to = groups.weights.data() + (i / kGroup * pairs * kGroup + i % kGroup) * 2;
    for (std::size_t p = 0; p < pairs; ++p, from += 2, to += 2 * kGroup) std::memcpy(to, from, 2 * sizeof *to);
  }
}

}  // namespace infeed
