#pragma once
/// The taps of one axis: which source pixels make an output point, and with which fixed-point weights.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transform/plan.h"

namespace infeed {

/// What a table is made from; equal specs give equal tables.
struct TapSpec {
  AxisPlan axis;
  int scale_num = 8;      ///< of the decoder, in eighths
  int held_begin = 0;     ///< first pixel of the decoded window, of the scaled picture
  int held_size = 0;      ///< pixels decoded
  bool reversed = false;  ///< last output first
  int max_shift = 0;      ///< fraction bits of a weight that the accumulators bear
  friend bool operator==(const TapSpec&, const TapSpec&) = default;
};

/// Chroma samples, one for two pixels along this axis: a pixel is 3/4 of its own sample and 1/4 of the nearest other.
struct SampleRange {
  int all = 0;         ///< of the whole picture
  int held_begin = 0;  ///< the first that is held
  int held_size = 0;
  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

/// Pillow's antialiased triangle filter as int16 weights with `shift` fraction bits. Where no padding is under the
/// filter, the weights of an output sum to exactly 1 << shift: flat areas and white stay exact.
///
///     weights   | output 0: stride int16, zero behind its taps | output 1 ... |     outputs rounded up to 16, zero
///
/// Threads: one owner.
struct TapTable {
  static constexpr int kGroup = 16;     ///< outputs are padded to a multiple
  static constexpr int kMaxTaps = 512;  ///< more taps an output need `wide`
  static constexpr int kMargin = 3;     ///< zeros round exact weights
  static constexpr int kLongTaps = 16;  ///< from here on stride is a multiple of 32, below of 4

  int outputs = 0;
  int taps = 0;                     ///< the most that an output has
  int stride = 0;                   ///< weights an output
  int shift = 0;                    ///< 14 .. max_shift: as many as the largest weight leaves
  int first = 0;                    ///< first pixel used, counted from the window's
  int extent = 0;                   ///< pixels from `first` that are used, at least 1
  std::vector<std::int32_t> start;  ///< first tap of each output, counted from `first`
  std::vector<std::int32_t> count;  ///< taps of each output; 0: padding, a zero
  std::vector<std::int16_t> weights;
  std::vector<double> exact;  ///< the weights before rounding: see exact_weights()
  int exact_stride = 0;

  /// The same for kernels that permute registers: groups of neighbouring outputs share one run of pixels.
  enum class Grouping {
    kNone,
    kWords16,  ///< groups of 16; a run of all taps is 64 pixels at most; indices are pairs of 16-bit words
    kBytes4,   ///< groups of 4; a run of one pair of taps is 8 pixels at most; indices are four bytes
  };
  struct Groups {
    bool usable = false;                ///< no run is longer
    bool half_register = false;         ///< kWords16: no run is longer than 32
    int pairs = 0;                      ///< of taps, an output
    std::vector<std::int32_t> base;     ///< of each group: its first pixel, counted from `first`
    std::vector<std::int32_t> index;    ///< of each output: where its first two taps stand, counted from base
    std::vector<std::int16_t> weights;  ///< [block of 16 outputs][pair][output][2]
  };
  Groups groups;

  /// Those of an output; zeros stand behind its taps, kMargin at least, and before them.
  [[nodiscard]] const double* exact_weights(int output) const noexcept {
    return exact.data() + kMargin + std::ptrdiff_t{output} * exact_stride;
  }

  /// Makes the table of `spec`, and `groups` where asked. The table of the same spec is kept.
  void build(const TapSpec& spec, Grouping grouping);
  /// The same sums straight from chroma samples: the taps of `pixels` put together with the spreading of samples.
  void build_spread(const TapTable& pixels, const SampleRange& samples, Grouping grouping);

 private:
  void clear(std::size_t size, int most_taps);
  [[nodiscard]] double* exact_weights(std::size_t output) noexcept {
    return exact.data() + kMargin + output * static_cast<std::size_t>(exact_stride);
  }
  void measure();
  void weigh(int output, int point);
  void spread(const TapTable& pixels, int output);
  void quantise(int held);
  void group(Grouping grouping);
  void weigh_groups();

  TapSpec spec_;
  SampleRange samples_;  ///< of build_spread
  double origin_ = 0, scale_ = 0,
         support_ = 0;                      ///< of the scaled picture: fraction of the source's begin, pixels a point
  int source_ = 0, limit_ = 0;              ///< the source's first pixel and size; what follows counts from it
  int low_ = 0, high_ = 0;                  ///< its pixels that are held
  int picture_low_ = 0, picture_high_ = 0;  ///< its pixels that are no padding
  double largest_ = 0;
};

}  // namespace infeed
