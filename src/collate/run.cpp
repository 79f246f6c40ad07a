#include "collate/run.h"

#include "batch/writer.h"

namespace infeed {
namespace {

class ExtentOutput final : public CollateOutput {
 public:
  explicit ExtentOutput(std::span<std::byte> extent) : writer_(extent) {}
  ArrayView add(const std::string& name, DType dtype, const Shape& shape) override {
    return writer_.add(name, dtype, shape);
  }
  [[nodiscard]] std::size_t finish() noexcept { return writer_.finish(); }

 private:
  BatchWriter writer_;
};

}  // namespace

std::size_t collate_rows(const Collate& collate, const RowGather& rows, std::span<std::byte> extent) {
  ExtentOutput output(extent);
  collate(rows.schema(), rows.fields(), output);
  return output.finish();
}

}  // namespace infeed
