#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "infeed/train/train.h"
#include "train/saving/atomic_file.h"
#include "train/saving/atomic_folder.h"
#include "train/saving/header.h"
#include "train/values.h"

namespace infeed {
namespace {

namespace fs = std::filesystem;

class SavingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "infeed-saving-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename());
    return found;
  }
  void write(const fs::path& path, const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
  [[nodiscard]] std::string read(const fs::path& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder;
};

Tensor counting(std::int64_t n, DType dtype) { return Tensor::arange(n).to(dtype); }

// ---- One file ----

TEST_F(SavingTest, KeepsValuesOfEveryDtypeInOrderAndAligned) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < kNumDTypes; ++i)
    tensors.push_back({std::to_string(i), counting(i == 0 ? 2 : i, static_cast<DType>(i))});
  save(folder / "x", tensors, {{"note", "\xc3\xa4 \"quoted\""}});
  for (const bool mmap : {true, false}) {
    const TensorFile file = load(folder / "x", {.mmap = mmap});
    ASSERT_EQ(file.tensors.size(), tensors.size());
    EXPECT_EQ(file.metadata.at("note"), "\xc3\xa4 \"quoted\"");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& back = file.tensors[i].tensor;
      EXPECT_EQ(file.tensors[i].name, tensors[i].name);
      EXPECT_EQ(back.dtype(), tensors[i].tensor.dtype());
      EXPECT_EQ(values_of(back), values_of(tensors[i].tensor));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back.data_ptr()) % itemsize(back.dtype()), 0u);
    }
  }
}

TEST_F(SavingTest, KeepsShapesOfScalarsEmptyAndStridedTensors) {
  const Tensor base = Tensor::arange(12).view({3, 4});
  save(folder / "x", {{"scalar", Tensor::full({}, 2.5)}, {"empty", Tensor::zeros({0, 3})}, {"turned", base.t()}});
  const TensorFile file = load(folder / "x");
  EXPECT_EQ(file.tensors[0].tensor.item(), 2.5);
  EXPECT_EQ(file.tensors[1].tensor.shape(), Shape({0, 3}));
  EXPECT_EQ(values_of(file.tensors[2].tensor), values_of(base.t()));
}

TEST_F(SavingTest, MapsThePagesAndKeepsWritesPrivate) {
  save(folder / "x", {{"x", Tensor::zeros({4096})}});
  const std::string before = read(folder / "x");
  Tensor x = load(folder / "x").tensors[0].tensor;
  EXPECT_NE(read("/proc/self/maps").find(folder / "x"), std::string::npos);
  x.fill_(1.0);
  EXPECT_EQ(read(folder / "x"), before);
  x = {};
  EXPECT_EQ(read("/proc/self/maps").find(folder / "x"), std::string::npos);
}

TEST_F(SavingTest, LeavesMappedTensorsAloneWhenTheFileIsReplaced) {
  save(folder / "x", {{"x", Tensor::ones({1000})}});
  const Tensor old = load(folder / "x").tensors[0].tensor;
  save(folder / "x", {{"x", Tensor::zeros({5})}});
  EXPECT_EQ(values_of(old), std::vector<double>(1000, 1.0));
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

TEST_F(SavingTest, MovesToMapLocation) {
  save(folder / "x", {{"x", Tensor::ones({2})}});
  EXPECT_TRUE(load(folder / "x", {.map_location = kMetaDevice}).tensors[0].tensor.is_meta());
}

TEST_F(SavingTest, FollowsLinksAndWritesToDevices) {
  save(folder / "real", {{"x", Tensor::ones({2})}});
  fs::create_symlink("real", folder / "link");
  save(folder / "link", {{"x", Tensor::zeros({2})}});
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(load(folder / "real").tensors[0].tensor.index({0}).item(), 0.0);
  save("/dev/null", {{"x", Tensor::ones({2})}});
}

int code_of_save(const fs::path& path, std::int64_t n = 1000) {
  try {
    save(path, {{"x", Tensor::zeros({n})}});
  } catch (const FileError& error) {
    EXPECT_EQ(error.path(), path);
    return error.code();
  }
  return 0;
}

TEST_F(SavingTest, SaysWhyNothingWasWrittenAndLeavesNothing) {
  EXPECT_EQ(code_of_save("/dev/full"), ENOSPC);
  EXPECT_EQ(code_of_save(folder / "missing" / "x"), ENOENT);
  EXPECT_EQ(code_of_save(folder), EISDIR);
  EXPECT_TRUE(names().empty());
}

TEST_F(SavingTest, KeepsTheOldFileWhenTheProcessMayNotWriteSoMuch) {
  save(folder / "x", {{"x", Tensor::ones({2})}});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{1024, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  const int code = code_of_save(folder / "x");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(code, EFBIG);
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
  EXPECT_EQ(load(folder / "x").tensors[0].tensor.numel(), 2);
}

TEST_F(SavingTest, RefusesWhatItCannotWrite) {
  const Tensor one = Tensor::ones({1});
  EXPECT_THROW(save(folder / "x", {{"a", one}, {"a", one}}), ConfigError);
  EXPECT_THROW(save(folder / "x", {{"__metadata__", one}}), ConfigError);
  EXPECT_THROW(save(folder / "x", {{"\xff", one}}), ConfigError);
  EXPECT_THROW(save(folder / "x", {{"a", Tensor::empty({1}, kMetaDevice)}}), ConfigError);
  EXPECT_TRUE(names().empty());
}

// ---- Files that lie ----

std::string file_of(const std::string& header, std::size_t data_bytes = 8) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + std::string(data_bytes, '\0');
}
std::string entry(const std::string& rest) { return file_of(R"({"x":{)" + rest + "}}"); }

struct Lie {
  const char* says;  // a part of the error
  std::string file;
};

const Lie kLies[] = {
    {"1 bytes are no", std::string(1, 'a')},
    {"does not fit", std::string("\xe8\x03\0\0\0\0\0\0{}", 10)},
    {"does not fit", std::string("\0\0\0\0\0\0\0\x80{}", 10)},
    {"no JSON", file_of("{")},
    {"no JSON object", file_of("[]")},
    {"no JSON object", file_of("7")},
    {"no JSON object", file_of(std::string(100'000, '['))},
    {"nested too deep", entry(R"("shape":[[[1]]])")},
    {"nested too deep", entry(R"("shape":{"a":1})")},
    {"no JSON", file_of("{\"\xff\":1}")},
    {"'x' is 1", file_of(R"({"x":1})")},
    {"a list", file_of(R"({"x":[]})")},
    {"dtype \"F7\"", entry(R"("dtype":"F7","shape":[2],"data_offsets":[0,8])")},
    {"dtype 3", entry(R"("dtype":3,"shape":[2],"data_offsets":[0,8])")},
    {"shape [-2]", entry(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])")},
    {"shape [2.0]", entry(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])")},
    {"offsets [0,8,8]", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])")},
    {"size of its offsets", entry(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])")},
    {"size of its offsets", entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])")},
    {"size of its offsets", entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])")},
    {"beyond the file's", entry(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])")},
    {"after a gap", entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])")},
    {"end at byte", entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])")},
    {"should have dtype", entry(R"("dtype":"F32","shape":[2])")},
    {"beside dtype", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1)")},
    {"beside dtype", entry(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])")},
    {"more than 8 dimensions", entry(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8])")},
    {"twice", file_of(R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"x":{}})")},
    {"inside another", file_of(R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                               R"("y":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})")},
    {"no text", file_of(R"({"__metadata__":{"a":1}})", 0)},
    {"element 3 is 7", file_of(R"({"x":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})", 3) + '\x07'},
};

class LyingFileTest : public SavingTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(LyingFileTest, IsRefusedWithItsName) {
  write(folder / "x", GetParam().file);
  try {
    static_cast<void>(load(folder / "x"));
    ADD_FAILURE() << "it was loaded";
  } catch (const SafetensorError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().says), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(folder / "x"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Lies, LyingFileTest, ::testing::ValuesIn(kLies));

TEST_F(SavingTest, CopiesWhatAForeignWriterLeftUnaligned) {
  std::string file = file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                             5);
  const float value = 2.5f;
  std::memcpy(file.data() + file.size() - 4, &value, 4);
  write(folder / "x", file);
  EXPECT_EQ(load(folder / "x").tensors[1].tensor.item(), 2.5);
}

TEST_F(SavingTest, ReadsAFileWithoutTensors) {
  save(folder / "x", {}, {{"only", "text"}});
  EXPECT_EQ(load(folder / "x").metadata.at("only"), "text");
  EXPECT_THROW(static_cast<void>(load(folder / "none")), FileError);
}

// ---- Checkpoints ----

class CheckpointTest : public SavingTest {
 protected:
  static Checkpoint with(double value) {
    State position;
    position.set("batch", 7);
    Checkpoint checkpoint;
    checkpoint.set("model", {{"w", Tensor::full({3}, value)}});
    checkpoint.set("loader", position);
    return checkpoint;
  }
  static double value_in(const fs::path& path) {
    return Checkpoint::load(path).at("model").find("w").index({0}).item();
  }
};

TEST_F(CheckpointTest, HoldsTensorsAndJson) {
  with(2.0).save(folder / "run" / "last/");
  const Checkpoint back = Checkpoint::load(folder / "run" / "last/");
  EXPECT_EQ(values_of(back.at("model").find("w")), std::vector<double>(3, 2.0));
  EXPECT_EQ(back.at("loader").state.get_int("batch"), 7);
  EXPECT_TRUE(back.contains("model") && !back.contains("optimizer"));
  EXPECT_FALSE(back.at("model").find("b").defined());
}

TEST_F(CheckpointTest, ReplacesTheOneBeforeAndLeavesNothingElse) {
  with(1.0).save(folder / "last");
  with(2.0).save(folder / "last");
  EXPECT_EQ(value_in(folder / "last"), 2.0);
  EXPECT_EQ(names(), std::vector<std::string>{"last"});
}

TEST_F(CheckpointTest, ReplacesByTwoRenamesWhereNamesCannotBeExchanged) {
  with(1.0).save(folder / "last");
  with(2.0).save(folder / "new");
  saving::replace_folder(folder / "new", folder / "last", false);
  EXPECT_EQ(value_in(folder / "last"), 2.0);
  EXPECT_EQ(names(), std::vector<std::string>{"last"});
}

TEST_F(CheckpointTest, IsFoundAfterACrashBetweenTheTwoRenames) {
  with(1.0).save(folder / "last");
  fs::rename(folder / "last", folder / ".last.old");
  EXPECT_EQ(value_in(folder / "last"), 1.0);
  with(2.0).save(folder / "last");
  EXPECT_EQ(value_in(folder / "last"), 2.0);
  EXPECT_EQ(names(), std::vector<std::string>{"last"});
}

TEST_F(CheckpointTest, StaysWhenTheNextOneFails) {
  with(1.0).save(folder / "last");
  Checkpoint bad = with(2.0);
  bad.set("z", {{"meta", Tensor::empty({1}, kMetaDevice)}});
  EXPECT_THROW(bad.save(folder / "last"), ConfigError);
  EXPECT_EQ(value_in(folder / "last"), 1.0);
  EXPECT_EQ(names(), std::vector<std::string>{"last"});
}

TEST_F(CheckpointTest, RemovesWhatAKilledWriterLeft) {
  const pid_t writer = fork();
  if (writer == 0) {
    saving::AtomicFolder* const half = new saving::AtomicFolder(folder / "last");
    saving::AtomicFile file(half->path() / "model.safetensors");
    _exit(0);
  }
  waitpid(writer, nullptr, 0);
  ASSERT_EQ(names().size(), 1u);
  with(1.0).save(folder / "last");
  EXPECT_EQ(names(), std::vector<std::string>{"last"});
}

TEST_F(CheckpointTest, LeavesAWriterBesideItAlone) {
  saving::AtomicFolder other(folder / "last");
  with(1.0).save(folder / "last");
  EXPECT_TRUE(fs::exists(other.path()));
}

TEST_F(CheckpointTest, FindsTheNewestWholeOne) {
  EXPECT_FALSE(Checkpoint::latest(folder).has_value());
  for (const char* name : {"step-9", "step-10", "step-11", "other"}) with(1.0).save(folder / name);
  fs::remove_all(folder / "other");
  fs::create_directory(folder / "zeros");
  EXPECT_EQ(Checkpoint::latest(folder), folder / "step-11");
  fs::resize_file(folder / "step-11" / "model.safetensors", 10);
  EXPECT_EQ(Checkpoint::latest(folder), folder / "step-10");
  EXPECT_FALSE(Checkpoint::latest(folder / "missing").has_value());
}

TEST_F(CheckpointTest, RefusesWhatIsNotWholeOrNone) {
  EXPECT_THROW(static_cast<void>(Checkpoint::load(folder / "missing")), FileError);
  EXPECT_THROW(static_cast<void>(Checkpoint::load(folder)), StateError);
  with(1.0).save(folder / "last");
  fs::remove(folder / "last" / "loader.safetensors");
  EXPECT_THROW(static_cast<void>(Checkpoint::load(folder / "last")), StateError);
  EXPECT_THROW(static_cast<void>(with(1.0).at("optimizer")), StateError);
}

TEST_F(CheckpointTest, TouchesNoFolderOfAnotherKind) {
  fs::create_directory(folder / "photos");
  write(folder / "photos" / "one.jpg", "precious");
  EXPECT_THROW(with(1.0).save(folder / "photos"), ConfigError);
  EXPECT_EQ(read(folder / "photos" / "one.jpg"), "precious");
  Checkpoint checkpoint;
  for (const char* name : {"", ".hidden", "a/b"}) EXPECT_THROW(checkpoint.set(name, StateDict()), ConfigError) << name;
  EXPECT_THROW(checkpoint.save(folder / "x"), ConfigError);
}

TEST(GeneratorTest, ResumesFromItsState) {
  Generator generator(3);
  static_cast<void>(generator.normal());
  const Tensor state = generator.get_state();
  const double next = generator.normal(), after = generator.normal();
  Generator other;
  other.set_state(state);
  EXPECT_EQ(other.normal(), next);
  EXPECT_EQ(other.normal(), after);
}

TEST(GeneratorTest, GivesNoBytesOfPadding) {
  const Tensor state = Generator(3).get_state();
  const Tensor dirty = state.clone();
  dirty.data<std::uint8_t>()[8 + 624 * 4 + 4] = 255;  // behind seed, words and position
  Generator other;
  other.set_state(dirty);
  EXPECT_TRUE(all(eq(other.get_state(), state)).item<bool>());
}

TEST(GeneratorTest, RefusesBytesThatAreNoState) {
  Generator generator;
  EXPECT_THROW(generator.set_state(Tensor::zeros({3})), TypeError);
  EXPECT_THROW(generator.set_state(Tensor::zeros({3}, DType::kUInt8)), RuntimeError);
  EXPECT_THROW(generator.set_state(Tensor::full(generator.get_state().shape(), 255, DType::kUInt8)), RuntimeError);
}

}  // namespace
}  // namespace infeed
