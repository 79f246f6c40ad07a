#include "decode/coefficients.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "decode/libjpeg.h"

namespace infeed::testing {
namespace {

HuffmanSpec spec_of(const JHUFF_TBL& table) {
  HuffmanSpec spec;
  std::copy_n(table.bits + 1, spec.counts.size(), spec.counts.begin());
  std::copy_n(table.huffval, spec.symbols.size(), spec.symbols.begin());
  return spec;
}

/// Decompression with libjpeg's own error exit: only files that it reads.
class Codec {
 public:
  explicit Codec(std::span<const std::byte> file) {
    codec.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, reinterpret_cast<const unsigned char*>(file.data()), static_cast<unsigned long>(file.size()));
    jpeg_read_header(&codec, TRUE);
  }
  ~Codec() { jpeg_destroy_decompress(&codec); }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  [[nodiscard]] bool is_alone() const noexcept { return codec.comps_in_scan == 1; }
  [[nodiscard]] int h(int i) const noexcept { return is_alone() ? 1 : codec.comp_info[i].h_samp_factor; }
  [[nodiscard]] int v(int i) const noexcept { return is_alone() ? 1 : codec.comp_info[i].v_samp_factor; }
  [[nodiscard]] int mcus_across() const noexcept {
    const int side = 8 * (is_alone() ? 1 : codec.max_h_samp_factor);
    return (static_cast<int>(codec.image_width) + side - 1) / side;
  }
  [[nodiscard]] int mcus_down() const noexcept {
    const int side = 8 * (is_alone() ? 1 : codec.max_v_samp_factor);
    return (static_cast<int>(codec.image_height) + side - 1) / side;
  }

  jpeg_decompress_struct codec;

 private:
  jpeg_error_mgr errors_;
};

}  // namespace

bool CoefficientReader::read(std::span<const std::byte> file) {
  const Codec source(file);
  const jpeg_decompress_struct& codec = source.codec;
  std::array<std::int32_t, MAX_COMPS_IN_SCAN> dc{};
  std::vector<BlockTask> tasks;
  for (int i = 0; i < codec.comps_in_scan; ++i) {
    const jpeg_component_info& info = *codec.cur_comp_info[i];
    const AcTable* ac = tables_.ac(spec_of(*codec.ac_huff_tbl_ptrs[info.ac_tbl_no]));
    const DcTable* dc_table = tables_.dc(spec_of(*codec.dc_huff_tbl_ptrs[info.dc_tbl_no]));
    const auto count = static_cast<std::size_t>(source.h(i) * source.v(i));
    tasks.insert(tasks.end(), count, {dc_table, ac, &dc[static_cast<std::size_t>(i)], nullptr, false});
  }
  const auto mcus = static_cast<std::size_t>(source.mcus_across() * source.mcus_down());
  const std::size_t per_interval = codec.restart_interval == 0 ? mcus : codec.restart_interval;
  const std::size_t intervals = (mcus + per_interval - 1) / per_interval;
  if (!scan_.read(file.last(codec.src->bytes_in_buffer), 0, intervals)) return false;
  blocks_.resize(mcus * tasks.size());
  std::memset(blocks_.data(), 0, blocks_.size() * sizeof(CoefficientBlock));
  CoefficientBlock* next = blocks_.data();
  for (std::size_t interval = 0, mcu = 0; interval < intervals; ++interval) {
    BitReader reader{scan_.data() + scan_.begin(interval)};
    dc.fill(0);
    for (const std::size_t end = std::min(mcus, mcu + per_interval); mcu < end; ++mcu) {
      for (BlockTask& task : tasks) task.block = next++;
      if (!decode_blocks(reader, tasks) || reader.position(scan_.data()) > scan_.end(interval) * 8) return false;
    }
  }
  return true;
}

void read_by_libjpeg(std::span<const std::byte> file, std::vector<CoefficientBlock>* blocks) {
  Codec source(file);
  jpeg_decompress_struct& codec = source.codec;
  jvirt_barray_ptr* arrays = jpeg_read_coefficients(&codec);
  const int rows = blocks == nullptr ? 0 : source.mcus_down();
  if (blocks != nullptr) blocks->clear();
  for (int mcu_y = 0; mcu_y < rows; ++mcu_y) {
    for (int mcu_x = 0; mcu_x < source.mcus_across(); ++mcu_x) {
      for (int i = 0; i < codec.num_components; ++i) {
        for (int at = 0; at < source.h(i) * source.v(i); ++at) {
          const auto y = static_cast<JDIMENSION>(mcu_y * source.v(i) + at / source.h(i));
          const JBLOCKARRAY row =
              codec.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&codec), arrays[i], y, 1, FALSE);
          std::memcpy(blocks->emplace_back().values, row[0][mcu_x * source.h(i) + at % source.h(i)], sizeof(JBLOCK));
        }
      }
    }
  }
  jpeg_finish_decompress(&codec);
}

std::vector<std::byte> to_baseline(std::span<const std::byte> file) {
  Codec source(file);
  jvirt_barray_ptr* arrays = jpeg_read_coefficients(&source.codec);
  jpeg_compress_struct target;
  jpeg_error_mgr errors;
  target.err = jpeg_std_error(&errors);
  jpeg_create_compress(&target);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&target, &memory, &size);
  jpeg_copy_critical_parameters(&source.codec, &target);
  jpeg_write_coefficients(&target, arrays);
  jpeg_finish_compress(&target);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> result(begin, begin + size);
  jpeg_destroy_compress(&target);
  std::free(memory);
  jpeg_finish_decompress(&source.codec);
  return result;
}

}  // namespace infeed::testing
