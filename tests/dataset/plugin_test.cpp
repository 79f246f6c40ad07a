#include "dataset/plugin.h"

#include <gtest/gtest.h>

#include "conformance/dataset_conformance.h"
#include "infeed/base/error.h"

namespace infeed {

using testing::DatasetCase;
using testing::DatasetConformance;
using testing::read_sample;

namespace {

std::string plugin_path(const std::string& name) { return std::string(PLUGIN_FOLDER) + "/lib" + name + ".so"; }

DatasetSpec squares(std::int64_t size, bool fails = false) {
  DatasetSpec spec{"squares", {}, plugin_path("squares_plugin")};
  spec.params.set("size", size);
  spec.params.set("offset", 100);
  if (fails) spec.params.set("fails", true);
  return spec;
}

/// The message of the ConfigError that `name` gives.
std::string refusal(const std::string& name) {
  try {
    static_cast<void>(PluginLibrary::load(plugin_path(name)));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Plugin, ReadsItsSamples) {
  const auto dataset = Registry::builtin().make(squares(10));
  const auto sample = read_sample(*dataset, 7);
  EXPECT_EQ(sample[0].values<std::int64_t>()[0], 149);
  EXPECT_EQ(sample[1].values<std::uint8_t>(), std::vector<std::uint8_t>(7, 1));
  EXPECT_EQ(dataset->describe(7), "square of 7");
}

TEST(Plugin, DrawsFromTheSamplesOwnStream) {
  const auto dataset = Registry::builtin().make(squares(10));
  EXPECT_EQ(read_sample(*dataset, 3, 8, 9)[2].values<std::uint64_t>()[0], Philox(8, 9, 3).next_u64());
}

TEST(Plugin, ReportsItsTimes) {
  const auto dataset = Registry::builtin().make(squares(10));
  RowGather gather(dataset->schema());
  StageTimes times;
  gather.start_batch();
  Row row = gather.start_row({0, 0, 1, &times});
  dataset->read(row);
  EXPECT_EQ(times.decode_ns, 11U);
}

TEST(Plugin, FailsForOneSampleOnly) {
  const auto dataset = Registry::builtin().make(squares(10, true));
  try {
    static_cast<void>(read_sample(*dataset, 5));
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_TRUE(has(error.what(), "five is broken")) << error.what();
  }
  EXPECT_NO_THROW(static_cast<void>(read_sample(*dataset, 6)));
}

TEST(Plugin, ForwardsWhatItsConstructorThrows) {
  EXPECT_THROW(static_cast<void>(Registry::builtin().make(squares(-1))), ConfigError);
  DatasetSpec spec = squares(1);
  spec.params = {};
  EXPECT_THROW(static_cast<void>(Registry::builtin().make(spec)), ConfigError);
}

TEST(Plugin, NamesItsDatasetsWhereOneIsMissing) {
  DatasetSpec spec = squares(1);
  spec.name = "cubes";
  try {
    static_cast<void>(Registry::builtin().make(spec));
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(has(error.what(), "squares")) << error.what();
  }
}

TEST(Plugin, RunsItsWorkerInits) {
  const auto init = Registry::builtin().worker_init("arm", plugin_path("squares_plugin"));
  EXPECT_NO_THROW(init(0, 2, 0));
  EXPECT_THROW(init(2, 2, 0), ConfigError);
  EXPECT_THROW(static_cast<void>(Registry::builtin().worker_init("x", plugin_path("squares_plugin"))), ConfigError);
}

TEST(Plugin, OutlivesItsRegistryAndLibrary) {
  auto library = PluginLibrary::load(plugin_path("squares_plugin"));
  const auto dataset = PluginLibrary::make(library, "squares", squares(3).params);
  library.reset();
  EXPECT_EQ(read_sample(*dataset, 2)[0].values<std::int64_t>()[0], 104);
}

TEST(Plugin, RefusesLibrariesThatAreNone) {
  EXPECT_TRUE(has(refusal("plugin_without_entry"), "infeed_plugin_v1"));
  EXPECT_TRUE(has(refusal("plugin_of_another_kind"), "0x12345678"));
  EXPECT_TRUE(has(refusal("plugin_of_another_abi"), "99.7"));
  EXPECT_TRUE(has(refusal("no_such_plugin"), "no_such_plugin"));
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(Plugin, DatasetConformance,
                         ::testing::Values(DatasetCase{"squares",
                                                       [] { return Registry::builtin().make(squares(9)); }}));
}

}  // namespace infeed
