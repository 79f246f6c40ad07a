#include "decode/jpeg_faults.h"

#include "decode/libjpeg.h"

namespace infeed {
namespace {

constexpr int kEndOfImage = 0xD9;
constexpr int kFirstRestart = 0xD0;
constexpr int kLastRestart = 0xD7;

bool is_of_header(int code) noexcept {
  switch (code) {
    case JERR_BAD_COMPONENT_ID:
    case JERR_BAD_DCT_COEF:
    case JERR_BAD_HUFF_TABLE:
    case JERR_BAD_LENGTH:
    case JERR_BAD_MCU_SIZE:
    case JERR_BAD_PROGRESSION:
    case JERR_BAD_SAMPLING:
    case JERR_COMPONENT_COUNT:
    case JERR_DAC_INDEX:
    case JERR_DAC_VALUE:
    case JERR_DHT_INDEX:
    case JERR_DQT_INDEX:
    case JERR_EMPTY_IMAGE:
    case JERR_EOI_EXPECTED:
    case JERR_NO_HUFF_TABLE:
    case JERR_NO_IMAGE:
    case JERR_NO_QUANT_TABLE:
    case JERR_SOF_DUPLICATE:
    case JERR_SOF_NO_SOS:
    case JERR_SOI_DUPLICATE:
    case JERR_SOS_NO_SOF: return true;
    default: return false;
  }
}

}  // namespace

DecodeFault jpeg_error_fault(const jpeg_common_struct& codec, bool input_ended) noexcept {
  if (codec.err->msg_code == kNoArithmeticDecoder) return DecodeFault::kUnsupported;
  switch (codec.err->msg_code) {
    case JERR_BAD_J_COLORSPACE:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED: return DecodeFault::kUnsupported;
    case JERR_IMAGE_TOO_BIG:
    case JERR_NO_BACKING_STORE:
    case JERR_WIDTH_OVERFLOW: return DecodeFault::kTooLarge;
    default: break;
  }
  if (input_ended) return DecodeFault::kTruncated;
  return is_of_header(codec.err->msg_code) ? DecodeFault::kBadHeader : DecodeFault::kCorrupt;
}

bool jpeg_error_is_memory(const jpeg_common_struct& codec) noexcept {
  return codec.err->msg_code == JERR_OUT_OF_MEMORY;
}

bool jpeg_warning_loses_data(const jpeg_common_struct& codec) noexcept {
  switch (codec.err->msg_code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC: return true;
    case JWRN_EXTRANEOUS_DATA: {
      // Before a restart marker the bytes were blocks; between segments or behind a scan they are only in the way.
      const int marker = codec.err->msg_parm.i[1];
      return marker >= kFirstRestart && marker <= kLastRestart;
    }
    default: return false;
  }
}

DecodeFault jpeg_warning_fault(const jpeg_common_struct& codec, bool input_ended) noexcept {
  if (input_ended) return DecodeFault::kTruncated;
  const auto& decompress = reinterpret_cast<const jpeg_decompress_struct&>(codec);  // libjpeg's own idiom
  const bool ends_early = codec.err->msg_code == JWRN_HIT_MARKER && decompress.unread_marker == kEndOfImage;
  return ends_early ? DecodeFault::kTruncated : DecodeFault::kCorrupt;
}

}  // namespace infeed
