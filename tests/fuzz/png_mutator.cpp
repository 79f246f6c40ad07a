// Mends the checksums of the chunks after each mutation: nearly all mutated files would end at the first chunk
// otherwise.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::size_t kChoiceBytes = 8;  // as decode_fuzz.cpp has them
constexpr std::size_t kSignatureBytes =
    8;  // then chunks: length, type (4 bytes each), payload, checksum of type and payload

std::size_t load_big_endian(std::span<const std::uint8_t> bytes) {
  return std::size_t{bytes[0]} << 24 | std::size_t{bytes[1]} << 16 | std::size_t{bytes[2]} << 8 | bytes[3];
}

void mend_checksums(std::span<std::uint8_t> chunks) {
  while (chunks.size() >= 12) {
    const std::size_t length = load_big_endian(chunks);
    if (length > chunks.size() - 12) return;
    const uLong sum = crc32(0, &chunks[4], static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i) chunks[8 + length + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    chunks = chunks.subspan(length + 12);
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  constexpr std::size_t kChunksBegin = kChoiceBytes + kSignatureBytes;
  if (seed % 16 != 0 && size > kChunksBegin) mend_checksums({data + kChunksBegin, size - kChunksBegin});
  return size;
}
