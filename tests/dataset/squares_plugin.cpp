// A plugin with one dataset, `squares`, in C++ through the header, and one worker_init, `arm`, in C.
#include <cstdio>

#include "infeed/base/error.h"
#include "infeed/plugin/dataset_plugin.h"

namespace {

/// Sample i: "square" int64 = i * i + offset, "ones" uint8 [i], and random "noise". Sample 5 cannot be read if asked
/// so.
class Squares final : public infeed::Dataset {
 public:
  explicit Squares(const infeed::State& params)
      : size_(params.get_int("size")), offset_(params.get_int("offset")), fails_(params.contains("fails")) {
    if (size_ < 0) throw infeed::ConfigError("squares: size is negative");
  }
  std::int64_t size() const override { return size_; }
  const infeed::Schema& schema() const override { return schema_; }
  void read(infeed::Row& row) const override {
    if (fails_ && row.index() == 5) throw infeed::DataError("five is broken");
    row.set(0, row.index() * row.index() + offset_);
    const infeed::ArrayView& ones = row.resize(1, {row.index()});
    for (std::int64_t i = 0; i < row.index(); ++i) ones.as<std::uint8_t>()[i] = 1;
    row.set(2, row.context().rng().next_u64());
    row.context().times->decode_ns += 11;
  }
  std::string describe(std::int64_t index) const override { return "square of " + std::to_string(index); }

 private:
  std::int64_t size_, offset_;
  bool fails_;
  infeed::Schema schema_{{"square", infeed::DType::kInt64, {}},
                         {"ones", infeed::DType::kUInt8, {-1}},
                         {"noise", infeed::DType::kUInt64, {}}};
};

int arm(std::int32_t worker_id, std::int32_t num_workers, std::uint64_t /*seed*/, char* error,
        std::uint64_t error_bytes) {
  if (worker_id < num_workers) return INFEED_OK;
  std::snprintf(error, error_bytes, "worker %d of %d", worker_id, num_workers);
  return INFEED_ERROR_CONFIG;
}

}  // namespace

extern "C" INFEED_API const infeed_plugin* infeed_plugin_v1() {
  static const infeed_dataset_api squares = infeed::plugin::dataset_api<Squares>("squares");
  static const infeed_dataset_api* const datasets[] = {&squares};
  static const infeed_worker_init_api arming = {sizeof(infeed_worker_init_api), "arm", arm};
  static const infeed_worker_init_api* const worker_inits[] = {&arming};
  static const infeed_plugin table = infeed::plugin::table("squares", "1.0", datasets, worker_inits);
  return &table;
}
