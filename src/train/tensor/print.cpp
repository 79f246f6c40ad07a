// Printing as PyTorch does: one width for all elements, scientific where the range asks for it, long dimensions cut.

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "infeed/train/autograd/node.h"
#include "infeed/train/tensor/tensor.h"
#include "train/kernels/copy.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

constexpr int kIndent = 7;  // of "tensor("

/// How one element looks. Made from those that are shown.
class Format {
 public:
  Format(DType dtype, const std::vector<double>& shown) : dtype_(dtype) {
    if (is_floating_point(dtype)) choose(shown);
    for (const double value : shown) {
      const bool counts = !is_floating_point(dtype) || (std::isfinite(value) && value != 0.0);
      if (counts) width_ = std::max(width_, text(value).size());
    }
  }
  [[nodiscard]] std::string operator()(double value) const { return fmt::format("{:>{}}", text(value), width_); }
  [[nodiscard]] int width() const noexcept { return static_cast<int>(width_); }

 private:
  void choose(const std::vector<double>& shown) {
    double largest = 0.0, smallest = 0.0;
    for (const double value : shown) {
      const double size = std::fabs(value);
      if (!std::isfinite(value) || size == 0.0) continue;
      largest = std::max(largest, size);
      smallest = smallest == 0.0 ? size : std::min(smallest, size);
      whole_ = whole_ && value == std::ceil(value);
    }
    if (largest == 0.0) return;
    scientific_ = largest / smallest > 1000.0 || largest > 1e8 || (!whole_ && smallest < 1e-4);
    scientific_ = print_options().sci_mode.value_or(scientific_);
  }

  [[nodiscard]] std::string text(double value) const {
    if (dtype_ == DType::kBool) return value != 0.0 ? "True" : "False";
    if (!is_floating_point(dtype_)) return fmt::format("{}", static_cast<std::int64_t>(value));
    const int digits = print_options().precision;
    if (scientific_ && std::isfinite(value)) return fmt::format("{:.{}e}", value, digits);
    if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return whole_ ? fmt::format("{:.0f}.", value) : fmt::format("{:.{}f}", value, digits);
  }

  DType dtype_;
  bool whole_ = true;
  bool scientific_ = false;
  std::size_t width_ = 1;
};

/// The elements of one tensor in C order, and which of them are shown.
struct Printer {
  std::vector<double> values;
  Shape shape;
  bool cut;

  [[nodiscard]] std::vector<std::int64_t> shown_of(int dim) const {
    std::vector<std::int64_t> all;
    const std::int64_t edge = print_options().edgeitems;
    for (std::int64_t i = 0; i < shape[dim]; ++i) {
      if (!cut || shape[dim] <= 2 * edge || i < edge || i >= shape[dim] - edge) all.push_back(i);
    }
    return all;
  }

  void collect(std::vector<double>& shown, int dim, std::int64_t at) const {
    if (dim == shape.ndim()) return shown.push_back(values[static_cast<std::size_t>(at)]);
    for (const std::int64_t i : shown_of(dim)) collect(shown, dim + 1, at * shape[dim] + i);
  }

  [[nodiscard]] std::string text(const Format& format, int dim, std::int64_t at, int indent) const {
    if (dim == shape.ndim()) return format(values[static_cast<std::size_t>(at)]);
    const bool innermost = dim + 1 == shape.ndim();
    const auto per_line =
        static_cast<std::size_t>(std::max(1, (print_options().linewidth - indent) / (format.width() + 2)));
    const std::string line_break = fmt::format("\n{:{}}", "", indent + 1);
    const std::string blank_lines(static_cast<std::size_t>(std::max(0, shape.ndim() - dim - 2)), '\n');
    std::vector<std::string> parts;
    std::int64_t before = -1;
    for (const std::int64_t i : shown_of(dim)) {
      if (i != before + 1) parts.emplace_back(innermost ? " ..." : "...");
      parts.push_back(text(format, dim + 1, at * shape[dim] + i, indent + 1));
      before = i;
    }
    std::string result = "[";
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i > 0 && !innermost) result += fmt::format(",{}{}", blank_lines, line_break);
      if (i > 0 && innermost) result += i % per_line == 0 ? fmt::format(",{}", line_break) : ", ";
      result += parts[i];
    }
    return result + "]";
  }
};

std::vector<double> values_of(const Tensor& x) {
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  kernels::copy(Tensor::from_array(ArrayView(values.data(), DType::kFloat64, x.shape()), nullptr), x.detach());
  return values;
}

std::string tuple_of(const Shape& shape) {
  std::string text = "(";
  for (int dim = 0; dim < shape.ndim(); ++dim) text += fmt::format("{}{}", dim > 0 ? ", " : "", shape[dim]);
  return text + (shape.ndim() == 1 ? ",)" : ")");
}

std::vector<std::string> suffixes_of(const Tensor& x) {
  std::vector<std::string> suffixes;
  if (x.device().type != DeviceType::kCPU) suffixes.push_back(fmt::format("device='{}'", device_name(x.device())));
  const bool bare = x.is_meta() || x.numel() == 0;
  if (bare && (x.is_meta() || x.ndim() != 1)) suffixes.push_back("size=" + tuple_of(x.shape()));
  const bool usual =
      x.dtype() == default_dtype() || (!bare && (x.dtype() == DType::kInt64 || x.dtype() == DType::kBool));
  if (!usual) suffixes.push_back(fmt::format("dtype=torch.{}", to_string(x.dtype())));
  if (x.requires_grad() && x.grad_fn() != nullptr)
    suffixes.push_back(fmt::format("grad_fn=<{}>", x.grad_fn()->name()));
  else if (x.requires_grad())
    suffixes.emplace_back("requires_grad=True");
  return suffixes;
}

std::string body_of(const Tensor& x) {
  if (x.is_meta()) return "...";
  if (x.numel() == 0) return "[]";
  const Printer printer{values_of(x), x.shape(), x.numel() > print_options().threshold};
  std::vector<double> shown;
  printer.collect(shown, 0, 0);
  return printer.text(Format(x.dtype(), shown), 0, 0, kIndent);
}

}  // namespace

PrintOptions& print_options() noexcept {
  static PrintOptions options;
  return options;
}

std::string Tensor::str() const {
  if (!defined()) return "tensor(undefined)";
  std::string text = "tensor(" + body_of(*this);
  std::size_t line = text.size() - (text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  for (const std::string& suffix : suffixes_of(*this)) {
    const bool breaks = line + suffix.size() + 2 > static_cast<std::size_t>(print_options().linewidth);
    text += breaks ? fmt::format(",\n{:{}}{}", "", kIndent, suffix) : fmt::format(", {}", suffix);
    line = breaks ? kIndent + suffix.size() : line + suffix.size() + 2;
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.str(); }

}  // namespace infeed
