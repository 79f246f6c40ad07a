// The bytes of an index: what is written is read, what is damaged is passed over.

#include "dataset/index_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>

#include "dataset/index_merge.h"
#include "infeed/base/error.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

using testing::TempFolder;

IndexRecord record_of(std::uint64_t name, int num_entries, std::int64_t mtime_ns = 5) {
  std::mt19937 random(static_cast<unsigned>(name));
  IndexRecord record{.name = name, .key = {1000 + name, mtime_ns, name * 7}, .width = 500, .height = 375};
  record.rows.num_stretches = 1 + num_entries;
  std::uint32_t offset = 623;
  for (int i = 0; i < num_entries; ++i) {
    record.rows.entries.push_back({offset, static_cast<std::uint8_t>(random() % 8), {}});
    for (std::int16_t& dc : record.rows.entries.back().dc) dc = static_cast<std::int16_t>(random());
    offset += 1 + static_cast<std::uint32_t>(random() % 5000);
  }
  return record;
}

bool equal(const IndexRecord& a, const IndexRecord& b) {
  return a.name == b.name && a.offset == b.offset && a.key == b.key && a.width == b.width && a.height == b.height &&
         a.rows.none == b.rows.none && a.rows.num_stretches == b.rows.num_stretches && a.rows.entries == b.rows.entries;
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(IndexRecordTest, ComesBackAsItWas) {
  for (const int num_entries : {1, 2, 24, 193, 3009}) {
    const IndexRecord record = record_of(static_cast<std::uint64_t>(num_entries), num_entries);
    IndexRecord back;
    ASSERT_TRUE(decode(encode(record), back));
    EXPECT_TRUE(equal(back, record)) << num_entries;
  }
  IndexRecord none{.name = 3}, back;
  none.rows.none = true;
  ASSERT_TRUE(decode(encode(none), back));
  EXPECT_TRUE(equal(back, none) && back.is_complete());
}

TEST(IndexRecordTest, TakesFewBytesAnEntry) {
  IndexRecord record = record_of(1, 193);
  for (std::size_t i = 0; i < 193; ++i) record.rows.entries[i].dc = {static_cast<std::int16_t>(i % 60), 3, -2};
  EXPECT_LT(encode(record).size(), 72 + 193 * 6U);
}

TEST(IndexRecordTest, IsRefusedWhereABitIsWrong) {
  const std::vector<std::byte> good = encode(record_of(9, 40));
  IndexRecord ignored;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= std::byte(1 << bit % 8);
    ASSERT_FALSE(decode(bad, ignored)) << "bit " << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    ASSERT_FALSE(decode(std::span(good).first(size), ignored)) << size;
}

class IndexFileTest : public ::testing::Test {
 protected:
  void write_part(const std::string& name, const std::vector<IndexRecord>& records) {
    std::string bytes = text_of(part_header());
    for (const IndexRecord& record : records) bytes += text_of(encode(record));
    folder.write(name, bytes);
  }
  /// Names of the records that the index has and gives.
  std::vector<std::uint64_t> names() {
    const int fd = open(index.c_str(), O_RDONLY);
    std::vector<std::uint64_t> found;
    for (const IndexName& entry : read_directory(fd)) {
      IndexRecord record;
      if (read_record(fd, IndexPlace(entry.place), record) && record.name == entry.name) found.push_back(entry.name);
    }
    close(fd);
    return found;
  }
  IndexRecord get(std::uint64_t name) {
    const int fd = open(index.c_str(), O_RDONLY);
    IndexRecord record;
    for (const IndexName& entry : read_directory(fd)) {
      if (entry.name == name) static_cast<void>(read_record(fd, IndexPlace(entry.place), record));
    }
    close(fd);
    return record;
  }
  std::string bytes() {
    std::ifstream file(index, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TempFolder folder;
  std::string index = folder.at("x.index");
  std::string part = folder.at("x.index.abcdef.part");
};

TEST_F(IndexFileTest, HoldsWhatPartsHeld) {
  write_part("x.index.abcdef.part", {record_of(7, 3), record_of(2, 9)});
  EXPECT_EQ(abandoned_parts(index), std::vector<std::string>{part});
  merge_parts(index, {part});
  EXPECT_EQ(names(), (std::vector<std::uint64_t>{2, 7}));
  EXPECT_TRUE(equal(get(2), record_of(2, 9)));
  EXPECT_TRUE(abandoned_parts(index).empty());
}

TEST_F(IndexFileTest, KeepsOfANameTheRecordThatKnowsMost) {
  write_part("x.index.abcdef.part", {record_of(1, 9), record_of(1, 4), record_of(2, 5, 10)});
  merge_parts(index, {part});
  write_part("x.index.abcdef.part", {record_of(1, 8), record_of(2, 3, 11)});
  merge_parts(index, {part});
  EXPECT_EQ(get(1).rows.entries.size(), 9U);
  EXPECT_EQ(get(2).rows.entries.size(), 3U) << "the file was replaced since";
}

TEST_F(IndexFileTest, PassesOverHolesAndDamage) {
  std::string bytes = text_of(part_header()) + text_of(encode(record_of(1, 5))) + std::string(512, '\0');
  std::string damaged = text_of(encode(record_of(2, 50)));
  damaged[100] ^= 1;
  bytes += damaged + text_of(encode(record_of(3, 5))) + text_of(encode(record_of(4, 500))).substr(0, 300);
  folder.write("x.index.abcdef.part", bytes);
  merge_parts(index, {part});
  EXPECT_EQ(names(), (std::vector<std::uint64_t>{1, 3}));
}

TEST_F(IndexFileTest, IsNoIndexWhereHeaderDirectoryOrLengthAreDamaged) {
  write_part("x.index.abcdef.part", {record_of(1, 5), record_of(2, 6)});
  merge_parts(index, {part});
  const std::string good = bytes();
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 4;
    folder.write("x.index", bad);
    ASSERT_LE(names().size(), at < 64 || at >= good.size() - 32 ? 0U : 1U) << at;
    folder.write("x.index", good.substr(0, at));
    ASSERT_TRUE(names().empty()) << at;
  }
}

TEST_F(IndexFileTest, SavesTheRecordsOfADamagedIndex) {
  write_part("x.index.abcdef.part", {record_of(1, 5), record_of(2, 6)});
  merge_parts(index, {part});
  std::string bad = bytes();
  bad[bad.size() - 5] ^= 1;
  folder.write("x.index", bad);
  EXPECT_TRUE(names().empty());
  merge_parts(index, {});
  EXPECT_EQ(names(), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(IndexFileTest, LeavesThePartsOfTheLivingAndStrangersAlone) {
  const IndexPart living = make_part(index);
  folder.write("x.index.qwerty.part", "a text of somebody else's");
  EXPECT_TRUE(abandoned_parts(index).empty());
  close(living.fd);
  EXPECT_EQ(abandoned_parts(index), std::vector<std::string>{living.path});
}

TEST_F(IndexFileTest, KeepsTheOldIndexWhereTheNewOneCannotBeWritten) {
  write_part("x.index.abcdef.part", {record_of(1, 5)});
  merge_parts(index, {part});
  write_part("x.index.abcdef.part", {record_of(2, 5)});
  std::filesystem::create_directory(index + ".new");
  EXPECT_THROW(merge_parts(index, {part}), DataError);
  EXPECT_EQ(names(), std::vector<std::uint64_t>{1});
  std::filesystem::remove(index + ".new");
  merge_parts(index, {part});
  EXPECT_EQ(names(), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(IndexFileTest, WritesOverWhatAKilledWriterLeft) {
  folder.write("x.index.new", std::string(100000, 'x'));
  write_part("x.index.abcdef.part", {record_of(1, 5)});
  merge_parts(index, {part});
  EXPECT_EQ(names(), std::vector<std::uint64_t>{1});
  EXPECT_FALSE(std::filesystem::exists(index + ".new"));
}

TEST_F(IndexFileTest, IsLockedForOneAtATime) {
  auto lock = FolderLock::take(folder.str());
  ASSERT_NE(lock, nullptr);
  EXPECT_EQ(FolderLock::take(folder.str(), {}), nullptr);
  lock.reset();
  EXPECT_NE(FolderLock::take(folder.str()), nullptr);
}

}  // namespace
}  // namespace infeed
