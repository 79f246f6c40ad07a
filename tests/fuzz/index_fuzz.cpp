// Any bytes as an index or a part: records are read without a step outside, and what is read can be written. The first
// byte chooses which of both.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/file_io.h"
#include "base/hash.h"
#include "dataset/index_file.h"
#include "decode/row_index.h"

namespace {

using infeed::IndexRecord;

void use(const IndexRecord& record) {
  static_cast<void>(infeed::is_plausible(record.rows, 600, record.key.file_bytes));
  IndexRecord again;
  const auto bytes = infeed::encode(record);
  if (!bytes.empty() && (!decode(bytes, again) || again.rows.entries != record.rows.entries)) std::abort();
}

// With a checksum that fits, or no mutation would get past it.
void read_record_of(std::span<const std::byte> bytes) {
  std::vector<std::byte> record(bytes.begin(), bytes.end());
  record.resize((record.size() + 7) / 8 * 8 + infeed::kMinRecordBytes);
  const std::uint32_t words[2] = {0x31525849, static_cast<std::uint32_t>(record.size())};
  std::memcpy(record.data(), words, sizeof words);
  const std::uint64_t checksum = infeed::hash64(std::span(record).first(record.size() - 8));
  std::memcpy(record.data() + record.size() - 8, &checksum, sizeof checksum);
  IndexRecord out;
  if (decode(record, out)) use(out);
}

void read_file_of(std::span<const std::byte> bytes) {
  static const int fd = memfd_create("index", MFD_CLOEXEC);
  if (ftruncate(fd, 0) != 0 || !infeed::write_all(fd, bytes, 0)) return;
  static_cast<void>(infeed::is_part(fd));
  IndexRecord record;
  for (const infeed::IndexName& name : infeed::read_directory(fd)) {
    if (read_record(fd, infeed::IndexPlace(name.place), record)) use(record);
  }
  infeed::RecordScan scan(fd);
  while (scan.next()) use(scan.record());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  (data[0] & 1) == 0 ? read_record_of(bytes) : read_file_of(bytes);
  return 0;
}
