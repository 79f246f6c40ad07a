#include "infeed/train/tensor/random.h"

#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <type_traits>

#include "infeed/train/tensor/tensor.h"
#include "train/kernels/convert.h"
#include "train/kernels/random.h"
#include "train/tensor/check.h"

namespace infeed {
namespace {

struct GeneratorBytes {
  TorchGenerator engine;
  double next_normal = 0.0;
  std::uint64_t has_normal = 0;
};
static_assert(std::is_trivially_copyable_v<GeneratorBytes>);

// An engine is a seed, 624 words and a position; what pads it holds anything.
constexpr std::size_t kEngineBytes = sizeof(std::uint64_t) + 624 * sizeof(std::uint32_t) + sizeof(int);
static_assert(sizeof(TorchGenerator) - kEngineBytes < alignof(TorchGenerator));

}  // namespace

double Generator::normal() {
  if (next_normal_) {
    const double value = *next_normal_;
    next_normal_.reset();
    return value;
  }
  const double u1 = engine_.uniform_double();
  const double u2 = engine_.uniform_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double angle = 2.0 * std::numbers::pi * u1;
  next_normal_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

Tensor Generator::get_state() const {
  const GeneratorBytes state{engine_, next_normal_.value_or(0.0), next_normal_.has_value() ? 1u : 0u};
  Tensor bytes = Tensor::empty({static_cast<std::int64_t>(sizeof state)}, TensorOptions(DType::kUInt8, DeviceId{}));
  std::memcpy(bytes.data_ptr(), &state, sizeof state);
  std::memset(bytes.data_ptr() + kEngineBytes, 0, sizeof(TorchGenerator) - kEngineBytes);
  return bytes;
}

void Generator::set_state(const Tensor& bytes) {
  GeneratorBytes state;
  require<TypeError>(bytes.dtype() == DType::kUInt8, "expected a torch.ByteTensor, but got {}",
                     legacy_name(bytes.dtype()));
  require(bytes.nbytes() == sizeof state, "the random state has {} bytes and needs {}; it is of another version",
          bytes.nbytes(), sizeof state);
  std::memcpy(static_cast<void*>(&state), bytes.contiguous().data_ptr(), sizeof state);
  require(state.engine.is_sound() && state.has_normal <= 1,
          "the bytes are no random state: its position is out of range");
  engine_ = state.engine;
  next_normal_ = state.has_normal == 1 ? std::optional(state.next_normal) : std::nullopt;
}

Generator& default_generator() noexcept {
  static Generator generator;
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

Tensor Tensor::uniform(const Shape& shape, double low, double high) {
  return uniform(shape, low, high, default_generator());
}

Tensor Tensor::uniform(const Shape& shape, double low, double high, Generator& generator) {
  Tensor result = empty(shape);
  kernels::uniform(result, low, high, generator);
  return result;
}

Tensor Tensor::randn(const Shape& shape, const TensorOptions& options) {
  return randn(shape, default_generator(), options);
}

Tensor Tensor::randn(const Shape& shape, Generator& generator, const TensorOptions& options) {
  Tensor result = empty(shape, options);
  kernels::normal(result, 0.0, 1.0, generator);
  return result;
}

}  // namespace infeed
