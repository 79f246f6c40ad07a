#include "infeed/train/tensor/options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "infeed/base/log.h"
#include "infeed/train/tensor/warning.h"
#include "train/tensor/check.h"

namespace infeed {
namespace {

DType the_default_dtype = DType::kFloat32;
thread_local DeviceId the_default_device;

// bool < unsigned and signed integers by size < floats.
int category(DType dtype) noexcept { return dtype == DType::kBool ? 0 : is_floating_point(dtype) ? 2 : 1; }

bool is_unsigned(DType dtype) noexcept {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 || dtype == DType::kUInt64;
}

DType signed_of(std::size_t bytes) noexcept {
  return bytes <= 1 ? DType::kInt8 : bytes == 2 ? DType::kInt16 : bytes == 4 ? DType::kInt32 : DType::kInt64;
}

constexpr std::array<std::string_view, kNumDTypes> kScalarNames = {"Bool",     "Byte",   "Char",  "Short",  "UInt16",
                                                                   "Int",      "UInt32", "Long",  "UInt64", "Half",
                                                                   "BFloat16", "Float",  "Double"};
constexpr std::array<std::string_view, kNumDTypes> kLegacyNames = {
    "torch.BoolTensor",     "torch.ByteTensor",   "torch.CharTensor",  "torch.ShortTensor",  "torch.UInt16Tensor",
    "torch.IntTensor",      "torch.UInt32Tensor", "torch.LongTensor",  "torch.UInt64Tensor", "torch.HalfTensor",
    "torch.BFloat16Tensor", "torch.FloatTensor",  "torch.DoubleTensor"};

std::function<void(const std::string&)>& handler() {
  static auto* const handler = new std::function<void(const std::string&)>;  // leaked: late warnings may come
  return *handler;
}

}  // namespace

RuntimeError::~RuntimeError() = default;
TypeError::~TypeError() = default;
ValueError::~ValueError() = default;
NotImplementedError::~NotImplementedError() = default;

void warn(const std::string& text) {
  if (handler()) return handler()(text);
  log(LogLevel::kWarning, text);
}
void set_warning_handler(std::function<void(const std::string&)> taker) { handler() = std::move(taker); }

DType default_dtype() noexcept { return the_default_dtype; }
void set_default_dtype(DType dtype) {
  require<TypeError>(is_floating_point(dtype), "only floating-point types are supported as the default type");
  the_default_dtype = dtype;
}
DeviceId default_device() noexcept { return the_default_device; }
void set_default_device(DeviceId device) { the_default_device = device; }

DeviceId device_from_string(std::string_view text) {
  const std::string_view type = text.substr(0, text.find(':'));
  std::int32_t index = 0;
  if (type.size() != text.size()) {
    const std::string_view digits = text.substr(type.size() + 1);
    const bool number = !digits.empty() && digits.size() <= 4 &&
                        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    require(number, "Invalid device string: '{}'", text);
    for (const char digit : digits) index = index * 10 + (digit - '0');
  }
  if (type == "cpu") return {DeviceType::kCPU, index};
  if (type == "meta") return {DeviceType::kMeta, index};
  if (type == "cuda") return {DeviceType::kCUDA, index};
  if (type == "simulated") return {DeviceType::kSimulated, index};
  throw RuntimeError(
      fmt::format("Expected one of cpu, cuda, meta, simulated device type at start of device string: {}", text));
}

std::string device_name(DeviceId device) {
  switch (device.type) {
    case DeviceType::kCPU: return "cpu";
    case DeviceType::kMeta: return "meta";
    case DeviceType::kCUDA: return fmt::format("cuda:{}", device.index);
    case DeviceType::kSimulated: return fmt::format("simulated:{}", device.index);
  }
  return "unknown";
}

std::string_view legacy_name(DType dtype) noexcept { return kLegacyNames[static_cast<std::size_t>(dtype)]; }
std::string_view scalar_type_name(DType dtype) noexcept { return kScalarNames[static_cast<std::size_t>(dtype)]; }

DType promote_types(DType a, DType b) noexcept {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (category(a) == 2) {
    const bool halves = itemsize(a) == 2 && itemsize(b) == 2;  // float16 beside bfloat16
    return halves ? DType::kFloat32 : std::max(a, b);
  }
  if (is_unsigned(a) == is_unsigned(b)) return itemsize(a) > itemsize(b) ? a : b;
  const DType plain = is_unsigned(a) ? a : b;
  const DType with_sign = is_unsigned(a) ? b : a;
  return itemsize(with_sign) > itemsize(plain) ? with_sign : signed_of(2 * itemsize(plain));
}

bool can_cast(DType from, DType to) noexcept { return category(from) <= category(to); }

}  // namespace infeed
