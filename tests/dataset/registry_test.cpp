#include "infeed/dataset/registry.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"

namespace infeed {
namespace {

std::unique_ptr<Dataset> two_labels(const State& /*params*/) {
  return std::make_unique<SyntheticDataset>(2, Schema{{"label", DType::kInt64, {}}});
}

TEST(Registry, MakesWhatWasAdded) {
  Registry registry;
  registry.add("two", two_labels);
  EXPECT_EQ(registry.make({"two", {}, {}})->size(), 2);
}

TEST(Registry, NamesTheKnownOnesWhereOneIsMissing) {
  try {
    static_cast<void>(Registry::builtin().make({"imagenet", {}, {}}));
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    for (const char* name : {"imagenet", "image_folder", "synthetic", "tensor_dataset"})
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

TEST(Registry, RefusesNamesThatAreTakenOrEmpty) {
  Registry registry = Registry::builtin();
  EXPECT_THROW(registry.add("synthetic", two_labels), ConfigError);
  EXPECT_THROW(registry.add("", two_labels), ConfigError);
  EXPECT_THROW(registry.add("null", nullptr), ConfigError);
  EXPECT_THROW(registry.add_stream("dataset_stream", [](const State&) { return nullptr; }), ConfigError);
}

TEST(Registry, RefusesFactoriesThatMakeNothing) {
  Registry registry;
  registry.add("nothing", [](const State&) { return nullptr; });
  EXPECT_THROW(static_cast<void>(registry.make({"nothing", {}, {}})), ConfigError);
}

TEST(Registry, IsAValue) {
  Registry first = Registry::builtin();
  const Registry second = first;
  first.add("two", two_labels);
  EXPECT_THROW(static_cast<void>(second.make({"two", {}, {}})), ConfigError);
}

TEST(Registry, KeepsWorkerInits) {
  Registry registry;
  int sum = 0;
  registry.add_worker_init("count", [&](int id, int n, std::uint64_t seed) { sum = id + n + static_cast<int>(seed); });
  registry.worker_init("count")(1, 2, 4);
  EXPECT_EQ(sum, 7);
  EXPECT_THROW(static_cast<void>(registry.worker_init("other")), ConfigError);
}

TEST(Registry, RefusesStreamsFromPlugins) {
  EXPECT_THROW(static_cast<void>(Registry::builtin().make_stream({"x", {}, "/tmp/x.so"})), ConfigError);
}

}  // namespace
}  // namespace infeed
