#include "decode/baseline.h"

#include <algorithm>
#include <cstring>

// One pass over the MCUs up to the last that the window needs:
//   bytes without stuffing -> block -> (needed?) -> inverse DCT -> the component's plane
// then, row by row of the window: planes -> chroma at full size -> R, G, B, 255.

namespace infeed {
namespace {

constexpr int kBlock = 8;
constexpr int kMaxPaddingBits = 7;  // that end an interval

// Samples left of a plane row, so that a row begins aligned and has a neighbour; and right of it, for whole vectors.
constexpr std::ptrdiff_t kLeft = 64, kRight = 64;

// A row of MCUs is cut into stretches of about that many blocks: 64 pixels of a picture with 4:2:0. Each costs an index
// some 5 bytes, less than 1 in 100 of its own code.
constexpr int kStretchBlocks = 24;
constexpr int kMaxStretchesAcross = 16;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

bool is_ours(const jpeg_decompress_struct& codec) {
  const bool gray = codec.num_components == 1 && codec.jpeg_color_space == JCS_GRAYSCALE;
  const bool colour = codec.num_components == 3 && codec.jpeg_color_space == JCS_YCbCr;
  return (gray || colour) && codec.data_precision == 8 && codec.progressive_mode == FALSE &&
         codec.arith_code == FALSE && codec.comps_in_scan == codec.num_components && codec.Ss == 0 &&
         codec.Se == DCTSIZE2 - 1 && codec.Ah == 0 && codec.Al == 0;
}

HuffmanSpec spec_of(const JHUFF_TBL& table) {
  HuffmanSpec spec;
  std::copy_n(table.bits + 1, spec.counts.size(), spec.counts.begin());
  std::copy_n(table.huffval, spec.symbols.size(), spec.symbols.begin());
  return spec;
}

}  // namespace

std::uint8_t* BaselineDecoder::Component::at(int x, int y) noexcept {
  return plane.data() + kLeft + (y - block_rows.begin * kBlock) * stride + (x - block_columns.begin * kBlock);
}

SamplePlane BaselineDecoder::Component::held() noexcept {
  SamplePlane all;
  all.x0 = block_columns.begin * kBlock;
  all.y0 = block_rows.begin * kBlock;
  all.width = std::min(width, block_columns.end * kBlock) - all.x0;
  all.height = std::min(height, block_rows.end * kBlock) - all.y0;
  all.samples = at(all.x0, all.y0);
  all.stride = stride;
  return all;
}

bool BaselineDecoder::decode(const jpeg_decompress_struct& codec, std::span<const std::byte> coded,
                             const Window& window, PixelBuffer& out) {
  if (!is_ours(codec) || !plan(codec, window) || !decode_scan(coded)) return false;
  out.resize(window.width, window.height);
  for (int i = 0; i < num_components_; ++i) extend_edges(components_[static_cast<std::size_t>(i)]);
  write_rows(window, out);
  return true;
}

bool BaselineDecoder::decode_planes(const jpeg_decompress_struct& codec, std::span<const std::byte> coded,
                                    const Window& window, PlaneWindow& out) {
  if (!is_ours(codec) || !plan(codec, window) || !has_planes() || !decode_scan(coded)) return false;
  out.num_planes = num_components_;
  out.width = static_cast<int>(codec.image_width);
  out.height = static_cast<int>(codec.image_height);
  const Component& last = components_[static_cast<std::size_t>(num_components_ - 1)];
  out.spread_x = last.spread_x;
  out.spread_y = last.spread_y;
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_components_); ++i) out.planes[i] = components_[i].held();
  return true;
}

// Full luma; chroma alike in both components and spread as libjpeg does it by weights, not by repetition.
bool BaselineDecoder::has_planes() const noexcept {
  const Component &y = components_[0], &cb = components_[1], &cr = components_[2];
  if (y.spread_x != 1 || y.spread_y != 1) return false;
  if (num_components_ == 1) return true;
  const bool alike = cb.spread_x == cr.spread_x && cb.spread_y == cr.spread_y;
  return alike && cb.spread_x <= 2 && cb.spread_y <= 2 && (cb.spread_x == 1 || cb.width > 2);
}

bool BaselineDecoder::plan(const jpeg_decompress_struct& codec, const Window& window) {
  num_components_ = codec.num_components;
  const bool alone = num_components_ == 1;  // then an MCU is a block, whatever the sampling factors
  mcus_across_ = ceil_div(static_cast<int>(codec.image_width), kBlock * (alone ? 1 : codec.max_h_samp_factor));
  mcus_down_ = ceil_div(static_cast<int>(codec.image_height), kBlock * (alone ? 1 : codec.max_v_samp_factor));
  mcus_per_interval_ = static_cast<int>(codec.restart_interval);
  mcu_rows_ = {mcus_down_, 0};
  mcu_columns_ = {mcus_across_, 0};
  int blocks = 0;
  for (int i = 0; i < num_components_; ++i) {
    if (!plan_component(codec, i, window)) return false;
    const Component& component = components_[static_cast<std::size_t>(i)];
    blocks += component.h * component.v;
    mcu_rows_.begin = std::min(mcu_rows_.begin, component.block_rows.begin / component.v);
    mcu_rows_.end = std::max(mcu_rows_.end, ceil_div(component.block_rows.end, component.v));
    mcu_columns_.begin = std::min(mcu_columns_.begin, component.block_columns.begin / component.h);
    mcu_columns_.end = std::max(mcu_columns_.end, ceil_div(component.block_columns.end, component.h));
  }
  const int stretches = std::clamp(mcus_across_ * blocks / kStretchBlocks, 1, kMaxStretchesAcross);
  stretch_mcus_ = ceil_div(mcus_across_, stretches);
  stretches_across_ = ceil_div(mcus_across_, stretch_mcus_);
  if (blocks > static_cast<int>(kMaxBlocksPerMcu)) return false;
  plan_tasks();
  return true;
}

void BaselineDecoder::plan_tasks() noexcept {
  num_tasks_ = 0;
  for (int i = 0; i < num_components_; ++i) {
    Component& component = components_[static_cast<std::size_t>(i)];
    for (int block = 0; block < component.h * component.v; ++block) {
      tasks_[num_tasks_] = {component.dc_table, component.ac_table, &component.dc, nullptr, false};
      places_[num_tasks_++] = {&component, block % component.h, block / component.h};
    }
  }
}

bool BaselineDecoder::plan_component(const jpeg_decompress_struct& codec, int place, const Window& window) {
  const jpeg_component_info& info = *codec.cur_comp_info[place];
  const auto is_slot = [](int table) { return table >= 0 && table < NUM_HUFF_TBLS; };  // libjpeg looks later
  if (info.component_index != place || !is_slot(info.quant_tbl_no) || !is_slot(info.dc_tbl_no) ||
      !is_slot(info.ac_tbl_no))
    return false;
  const JQUANT_TBL* quant = codec.quant_tbl_ptrs[info.quant_tbl_no];
  const JHUFF_TBL* dc = codec.dc_huff_tbl_ptrs[info.dc_tbl_no];
  const JHUFF_TBL* ac = codec.ac_huff_tbl_ptrs[info.ac_tbl_no];
  if (quant == nullptr || dc == nullptr || ac == nullptr) return false;
  Component& component = components_[static_cast<std::size_t>(place)];
  const bool alone = num_components_ == 1;
  component.h = alone ? 1 : info.h_samp_factor;
  component.v = alone ? 1 : info.v_samp_factor;
  const int h_max = alone ? 1 : codec.max_h_samp_factor, v_max = alone ? 1 : codec.max_v_samp_factor;
  if (h_max % component.h != 0 || v_max % component.v != 0) return false;
  component.spread_x = h_max / component.h;
  component.spread_y = v_max / component.v;
  component.width = ceil_div(static_cast<int>(codec.image_width), component.spread_x);
  component.height = ceil_div(static_cast<int>(codec.image_height), component.spread_y);
  // A sample's neighbours take part in what it spreads to.
  const auto samples = [](int begin, int size, int spread, int all) {
    const int beside = spread > 1 ? 1 : 0;
    const int first = std::max(0, begin / spread - beside);
    const int last = std::min(all - 1, (begin + size - 1) / spread + beside);
    return Range{first / kBlock, last / kBlock + 1};
  };
  component.block_columns = samples(window.x, window.width, component.spread_x, component.width);
  component.block_rows = samples(window.y, window.height, component.spread_y, component.height);
  std::transform(quant->quantval, quant->quantval + DCTSIZE2, component.quant.begin(),
                 [](UINT16 step) { return static_cast<std::int16_t>(step); });
  component.dc_table = tables_.dc(spec_of(*dc));
  component.ac_table = tables_.ac(spec_of(*ac));
  if (component.dc_table == nullptr || component.ac_table == nullptr) return false;
  component.stride = kLeft + component.block_columns.size() * kBlock + kRight;
  const auto nbytes = static_cast<std::size_t>(component.stride * component.block_rows.size() * kBlock + kLeft);
  if (component.plane.size() < nbytes) component.plane.resize(nbytes);
  return true;
}

void BaselineDecoder::use_index(RowIndex* index, std::size_t coded_begin) noexcept {
  index_ = index;
  coded_begin_ = coded_begin;
}

bool BaselineDecoder::decode_scan(std::span<const std::byte> coded) {
  const int first_mcu = mcus_across_ * mcu_rows_.begin, end_mcu = mcus_across_ * mcu_rows_.end;
  start_blocks();
  if (index_ != nullptr && mcus_per_interval_ != 0) *index_ = {.none = true};
  if (index_ == nullptr || mcus_per_interval_ != 0) return decode_mcus(coded, {first_mcu, end_mcu}, {}) && flush();
  if (decode_by_index(coded)) return flush();
  *index_ = {};
  start_blocks();
  if (!decode_stretches(coded, {0, stretches_across_ * mcu_rows_.end})) return false;
  index_->num_stretches = stretches_across_ * mcus_down_;
  return flush();
}

// By the stretches that the window touches, as far as they are known. False: none are, or they are another file's.
bool BaselineDecoder::decode_by_index(std::span<const std::byte> coded) {
  if (index_->num_stretches != stretches_across_ * mcus_down_ ||
      !is_plausible(*index_, coded_begin_, coded_begin_ + coded.size()))
    return false;
  const int num_known = static_cast<int>(index_->entries.size());
  const int left = mcu_columns_.begin / stretch_mcus_, right = ceil_div(mcu_columns_.end, stretch_mcus_);
  const bool whole_rows = right - left == stretches_across_;
  for (int row = mcu_rows_.begin, end_row = row; row < mcu_rows_.end; row = end_row) {
    end_row = whole_rows ? mcu_rows_.end : row + 1;
    Range run{row * stretches_across_ + left, (end_row - 1) * stretches_across_ + right};
    if (run.end >= num_known) {  // from here on in one go
      end_row = mcu_rows_.end;
      run = {std::min(run.begin, num_known - 2), (end_row - 1) * stretches_across_ + right};
    }
    if (!decode_stretches(coded, run)) return false;
  }
  return true;
}

// `coded` as of the whole scan. The first stretch is known, or number 0. What is known must agree, the rest becomes
// known.
bool BaselineDecoder::decode_stretches(std::span<const std::byte> coded, Range run) {
  std::vector<EntryPoint>& entries = index_->entries;
  auto next = static_cast<std::size_t>(run.begin);
  const auto end = static_cast<std::size_t>(run.end);
  const EntryPoint entry =
      entries.empty() ? EntryPoint{static_cast<std::uint32_t>(coded_begin_), 0, {}} : entries[next];
  // No further than the next stretch's first byte, with a zero behind an FF.
  if (end < entries.size()) coded = coded.first(std::min(coded.size(), entries[end].offset + 2 - coded_begin_));
  if (!decode_mcus(coded.subspan(entry.offset - coded_begin_), {first_mcu(run.begin), first_mcu(run.end)}, entry))
    return false;
  for (const Passed& passed : passed_) {
    const std::size_t offset = entry.offset + scan_.source_of(passed.position / 8);
    const EntryPoint seen{static_cast<std::uint32_t>(offset), static_cast<std::uint8_t>(passed.position % 8),
                          passed.dc};
    if (next < entries.size() && entries[next] != seen) return false;
    if (next == entries.size()) entries.push_back(seen);
    ++next;
  }
  return true;
}

int BaselineDecoder::first_mcu(int stretch) const noexcept {
  return stretch / stretches_across_ * mcus_across_ + stretch % stretches_across_ * stretch_mcus_;
}

// `coded` begins with `mcus`, at entry.bit of its first byte; without an index, with the scan.
bool BaselineDecoder::decode_mcus(std::span<const std::byte> coded, Range mcus, const EntryPoint& entry) {
  const int total = mcus_across_ * mcus_down_;
  const int per_interval = mcus_per_interval_ == 0 ? total : mcus_per_interval_;
  const Range intervals{mcus.begin / per_interval, ceil_div(mcus.end, per_interval)};
  if (!scan_.read(coded, static_cast<std::size_t>(intervals.begin), static_cast<std::size_t>(intervals.end)))
    return false;
  passed_.clear();
  for (int interval = intervals.begin; interval < intervals.end; ++interval) {
    reader_ = {scan_.data() + scan_.begin(static_cast<std::size_t>(interval))};
    reader_.refill();
    reader_.skip(entry.bit);
    for (std::size_t i = 0; i < components_.size(); ++i) components_[i].dc = entry.dc[i];
    const std::size_t limit = scan_.end(static_cast<std::size_t>(interval)) * 8;
    const int begin = index_used() ? mcus.begin : interval * per_interval;
    const int end = std::min(total - interval * per_interval, per_interval) + interval * per_interval;
    const Range run = needed_of({begin, std::min(end, mcus.end)});
    if (!decode_run(run, limit)) return false;
    const bool another = end <= run.end && end < total;
    if (another && reader_.position(scan_.data()) + kMaxPaddingBits < limit) return false;
  }
  pass_stretch();
  return true;
}

// Between restart markers what stands right of the window's last column is nobody's beginning.
BaselineDecoder::Range BaselineDecoder::needed_of(Range mcus) const noexcept {
  if (mcus_per_interval_ == 0) return mcus;
  const int x = (mcus.end - 1) % mcus_across_, row = mcus.end - 1 - x;
  int end = mcus.end;
  if (x >= mcu_columns_.end) end = row + mcu_columns_.end;
  if (x < mcu_columns_.begin) end = row - mcus_across_ + mcu_columns_.end;
  return {mcus.begin, std::max(mcus.begin, end)};
}

// `limit`: bits from the scan's first byte.
bool BaselineDecoder::decode_run(Range mcus, std::size_t limit) {
  int x = mcus.begin % mcus_across_, y = mcus.begin / mcus_across_;
  int left = 0;  // of the stretch
  for (int mcu = mcus.begin; mcu < mcus.end; ++mcu, --left) {
    if (x == 0 || left == 0) {
      pass_stretch();
      left = stretch_mcus_;
    }
    if (!decode_mcu(x, y)) return false;
    if (reader_.position(scan_.data()) > limit) return false;
    if (++x == mcus_across_) x = 0, ++y;
  }
  return true;
}

void BaselineDecoder::pass_stretch() {
  if (!index_used()) return;
  Passed& stretch = passed_.emplace_back();
  stretch.position = reader_.position(scan_.data());
  for (std::size_t i = 0; i < components_.size(); ++i) stretch.dc[i] = static_cast<std::int16_t>(components_[i].dc);
}

bool BaselineDecoder::decode_mcu(int mcu_x, int mcu_y) {
  if (num_queued_ != 0) turn_ = 1 - queued_turn_;
  const std::span<BlockTask> tasks = std::span(tasks_).first(num_tasks_);
  for (std::size_t i = 0; i < num_tasks_; ++i) {
    const BlockPlace& place = places_[i];
    const Component& component = *place.component;
    const bool needed = component.block_columns.contains(mcu_x * component.h + place.x) &&
                        component.block_rows.contains(mcu_y * component.v + place.y);
    tasks[i].block = needed ? &blocks_[turn_][i] : nullptr;
  }
  if (!decode_blocks(reader_, tasks)) return false;
  for (std::size_t i = 0; i < num_tasks_; ++i) {
    const BlockPlace& place = places_[i];
    const Component& component = *place.component;
    if (tasks[i].block != nullptr)
      queue(tasks[i], *place.component, mcu_x * component.h + place.x, mcu_y * component.v + place.y);
  }
  return true;
}

void BaselineDecoder::queue(const BlockTask& task, Component& component, int block_x, int block_y) {
  queued_turn_ = turn_;
  jobs_[num_queued_] = {task.block->values, &component.quant, task.flat,
                        component.at(block_x * kBlock, block_y * kBlock)};
  strides_[num_queued_] = component.stride;
  if (++num_queued_ == jobs_.size()) flush();
}

void BaselineDecoder::start_blocks() noexcept {
  num_queued_ = 0;
  blocks_ = {};
}

bool BaselineDecoder::flush() {
  if (num_queued_ == 0) return true;
  const std::size_t other = num_queued_ - 1;  // a single block twice
  jpeg_kernels().idct_pair(jobs_[0], strides_[0], jobs_[other], strides_[other]);
  for (std::size_t i = 0; i < num_queued_; ++i) std::memset(jobs_[i].coefficients, 0, 64 * sizeof(std::int16_t));
  num_queued_ = 0;
  return true;
}

// Beyond its edge the picture goes on with its last sample, not with what the encoder padded it with.
void BaselineDecoder::extend_edges(Component& component) noexcept {
  const int first_column = component.block_columns.begin * kBlock;
  const bool has_end = component.block_columns.end * kBlock >= component.width;
  for (int y = component.block_rows.begin * kBlock; y < component.block_rows.end * kBlock; ++y) {
    if (first_column == 0) *(component.at(0, y) - 1) = *component.at(0, y);
    if (has_end) *component.at(component.width, y) = *component.at(component.width - 1, y);
  }
}

// The component's samples at full size for row `y` of the picture, from the window's first column on.
const std::uint8_t* BaselineDecoder::row_of(int place, const Window& window, int y) {
  Component& component = components_[static_cast<std::size_t>(place)];
  std::vector<std::uint8_t>& scratch = rows_[static_cast<std::size_t>(place)];
  const int spread_x = component.spread_x, spread_y = component.spread_y;
  const int row = y / spread_y;
  if (spread_x == 1 && spread_y == 1) return component.at(window.x, row);
  const int first = window.x / spread_x;
  const int count = (window.x + window.width - 1) / spread_x + 1 - first;
  scratch.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(spread_x) + kKernelSlack);
  std::uint8_t* out = scratch.data();
  const std::uint8_t* near = component.at(first, row);
  const bool upper = y % spread_y == 0;
  const int beside = std::clamp(upper ? row - 1 : row + 1, 0, component.height - 1);
  const bool fancy_x = spread_x == 2 && component.width > 2;
  if (fancy_x && spread_y == 1) {
    jpeg_kernels().double_row(near, count, out);
  } else if (fancy_x && spread_y == 2) {
    jpeg_kernels().double_both(near, component.at(first, beside), count, out);
  } else if (spread_x == 1 && spread_y == 2) {
    const std::uint8_t* far = component.at(first, beside);
    for (int i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>((3 * near[i] + far[i] + (upper ? 1 : 2)) >> 2);
  } else {
    for (int i = 0; i < count; ++i) std::fill_n(out + i * spread_x, spread_x, near[i]);
  }
  return out + (window.x - first * spread_x);
}

void BaselineDecoder::write_rows(const Window& window, PixelBuffer& out) {
  for (int y = 0; y < window.height; ++y) {
    std::uint8_t* pixels = out.row(y);
    const std::uint8_t* luma = row_of(0, window, window.y + y);
    if (num_components_ == 1) {
      for (int x = 0; x < window.width; ++x) {
        const std::uint8_t pixel[4] = {luma[x], luma[x], luma[x], 255};
        std::memcpy(pixels + std::ptrdiff_t{4} * x, pixel, sizeof pixel);
      }
      continue;
    }
    const std::uint8_t* cb = row_of(1, window, window.y + y);
    const std::uint8_t* cr = row_of(2, window, window.y + y);
    jpeg_kernels().colour(luma, cb, cr, window.width, pixels);
  }
}

}  // namespace infeed
