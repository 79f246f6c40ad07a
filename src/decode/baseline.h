#pragma once
/// Baseline JPEG without libjpeg's entropy decoder: the same pixels in half the time, or no answer. See docs/decode.md.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/decoder.h"
#include "decode/entropy.h"
#include "decode/huffman_table.h"
#include "decode/jpeg_kernels.h"
#include "decode/libjpeg.h"
#include "decode/pixel_buffer.h"
#include "decode/plane_window.h"
#include "decode/row_index.h"
#include "decode/scan_bytes.h"

namespace infeed {

/// Takes files of 8 bits, one interleaved Huffman scan, and one gray or three YCbCr components; anything odd in them
/// (a marker where none belongs, a code that does not exist, an interval that ends early or late) is left to libjpeg,
/// so that its errors and its repairs stay what they are. One owner, one thread.
class BaselineDecoder {
 public:
  /// `codec` has just read the header, `coded` is what follows. Decodes `window` of the picture at full size to `out`
  /// (R, G, B, 255), from its first column and row on. False: nothing is known; ask libjpeg.
  [[nodiscard]] bool decode(const jpeg_decompress_struct& codec, std::span<const std::byte> coded, const Window& window,
                            PixelBuffer& out);

  /// Of the next file: where its rows begin, as far as that is known. A decode reads what the window needs, and adds
  /// the stretches that it passes; entries that are not the file's are dropped. Files with restart markers need none. `coded_begin`: where `coded` begins in the file. Null: no index, from here on.
  void use_index(RowIndex* index, std::size_t coded_begin) noexcept;

  /// The same window's samples, without upsampling and colour; `out` holds until the next decode. False too where
  /// planes of such a file are not served: see PlaneWindow.
  [[nodiscard]] bool decode_planes(const jpeg_decompress_struct& codec, std::span<const std::byte> coded,
                                   const Window& window, PlaneWindow& out);

 private:
  static constexpr int kMaxComponents = 3;
  static constexpr std::size_t kMaxBlocksPerMcu = 10;  // T.81, B.2.3

  /// Half-open.
  struct Range {
    int begin = 0, end = 0;
    [[nodiscard]] bool contains(int x) const noexcept { return begin <= x && x < end; }
    [[nodiscard]] int size() const noexcept { return end - begin; }
  };

  struct Component {
    int h = 1, v = 1;                 ///< blocks an MCU, across and down
    int spread_x = 1, spread_y = 1;   ///< pixels a sample
    int width = 0, height = 0;        ///< samples
    Range block_columns, block_rows;  ///< that the window needs
    QuantTable quant{};
    const DcTable* dc_table = nullptr;
    const AcTable* ac_table = nullptr;
    std::int32_t dc = 0;
    std::vector<std::uint8_t> plane;  ///< the needed blocks' samples; kept for its memory
    std::ptrdiff_t stride = 0;

    /// Sample row `y` of the picture from its column `x` on; one sample further left may be read too.
    [[nodiscard]] std::uint8_t* at(int x, int y) noexcept;
    /// All that is held, within the picture.
    [[nodiscard]] SamplePlane held() noexcept;
  };

  /// A block of an MCU: blocks from the MCU's first of that component.
  struct BlockPlace {
    Component* component = nullptr;
    int x = 0, y = 0;
  };

  [[nodiscard]] bool plan(const jpeg_decompress_struct& codec, const Window& window);
  void plan_tasks() noexcept;
  [[nodiscard]] bool plan_component(const jpeg_decompress_struct& codec, int place, const Window& window);
  /// Between two stretches, as decoded.
  struct Passed {
    std::size_t position = 0;  ///< bits from the scan's first byte
    std::array<std::int16_t, kMaxComponents> dc{};
  };

  [[nodiscard]] bool decode_scan(std::span<const std::byte> coded);
  [[nodiscard]] bool decode_by_index(std::span<const std::byte> coded);
  [[nodiscard]] bool decode_stretches(std::span<const std::byte> coded, Range run);
  [[nodiscard]] bool decode_mcus(std::span<const std::byte> coded, Range mcus, const EntryPoint& entry);
  [[nodiscard]] bool decode_run(Range mcus, std::size_t limit);
  [[nodiscard]] Range needed_of(Range mcus) const noexcept;
  [[nodiscard]] int first_mcu(int stretch) const noexcept;
  [[nodiscard]] bool index_used() const noexcept { return index_ != nullptr && mcus_per_interval_ == 0; }
  void pass_stretch();
  [[nodiscard]] bool decode_mcu(int mcu_x, int mcu_y);
  void queue(const BlockTask& task, Component& component, int block_x, int block_y);
  void start_blocks() noexcept;
  bool flush();  ///< true
  [[nodiscard]] bool has_planes() const noexcept;
  void extend_edges(Component& component) noexcept;
  void write_rows(const Window& window, PixelBuffer& out);
  [[nodiscard]] const std::uint8_t* row_of(int place, const Window& window, int y);

  HuffmanCache tables_;
  ScanBytes scan_;
  std::array<Component, kMaxComponents> components_;
  int num_components_ = 0;
  int mcus_across_ = 0, mcus_down_ = 0;
  int stretch_mcus_ = 0, stretches_across_ = 0;  ///< of an index; a row's last stretch may be shorter
  Range mcu_rows_, mcu_columns_;                 ///< that the window needs
  int mcus_per_interval_ = 0;                    ///< 0: no restart markers
  RowIndex* index_ = nullptr;
  std::size_t coded_begin_ = 0;  ///< in the file
  std::vector<Passed> passed_;   ///< with an index: before each stretch decoded, and behind the last
  BitReader reader_;
  std::size_t num_tasks_ = 0;  ///< blocks of an MCU
  std::array<BlockTask, kMaxBlocksPerMcu> tasks_;
  std::array<BlockPlace, kMaxBlocksPerMcu> places_;
  /// Of an MCU, and of the one before, whose last block may wait for a partner. Zero but for what waits.
  std::array<std::array<CoefficientBlock, kMaxBlocksPerMcu>, 2> blocks_;
  std::size_t turn_ = 0, queued_turn_ = 0;
  std::array<IdctJob, 2> jobs_;
  std::array<std::ptrdiff_t, 2> strides_{};
  std::size_t num_queued_ = 0;
  std::array<std::vector<std::uint8_t>, kMaxComponents> rows_;  ///< a row at full size, by component
};

}  // namespace infeed
