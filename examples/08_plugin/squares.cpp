// The plugin: a shared library that brings the dataset "squares". Its C interface is made by the header.
#include <infeed/plugin/dataset_plugin.h>

namespace {

class Squares final : public infeed::Dataset {
 public:
  explicit Squares(const infeed::State& params) : size_(params.get_int("size")) {}
  std::int64_t size() const override { return size_; }
  const infeed::Schema& schema() const override { return schema_; }
  void read(infeed::Row& row) const override { row.set(0, row.index() * row.index()); }

 private:
  std::int64_t size_;
  infeed::Schema schema_{{"square", infeed::DType::kInt64, {}}};
};

}  // namespace

extern "C" INFEED_API const infeed_plugin* infeed_plugin_v1() {
  static const infeed_dataset_api squares = infeed::plugin::dataset_api<Squares>("squares");
  static const infeed_dataset_api* const datasets[] = {&squares};
  static const infeed_plugin table = infeed::plugin::table("squares", "1.0", datasets);
  return &table;
}
