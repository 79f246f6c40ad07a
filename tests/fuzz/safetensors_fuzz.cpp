// Any bytes as a safetensors file: the header must be refused, or its tensors must fill the rest of the file, each byte once.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "infeed/train/saving/error.h"
#include "train/saving/header.h"

using namespace infeed;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  saving::Header header;
  try {
    header = saving::parse_header(std::as_bytes(std::span(data, size)), "input");
  } catch (const SafetensorError&) {
    return 0;
  }
  std::vector<bool> taken(size);
  for (const saving::Entry& entry : header.entries) {
    if (entry.nbytes != static_cast<std::uint64_t>(entry.shape.numel()) * itemsize(entry.dtype)) std::abort();
    for (std::uint64_t i = 0; i < entry.nbytes; ++i) {
      const std::uint64_t at = header.begin + entry.offset + i;
      if (at >= size || taken[at]) std::abort();
      taken[at] = true;
    }
  }
  for (std::uint64_t at = header.begin; at < size; ++at)
    if (!taken[at]) std::abort();
  if (saving::header_text(header).empty()) std::abort();
  return 0;
}
