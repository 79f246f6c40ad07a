// Elementwise operations and reductions against LibTorch: forward and backward, over dtypes and layouts.
#include <functional>
#include <ostream>

#include "train/torch_compare.h"

namespace infeed {
namespace {

using Ours = std::function<Tensor(const Tensor&, const Tensor&)>;
using Theirs = std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)>;

struct Operator {
  std::string name;
  Ours ours;
  Theirs theirs;
  double shift = 0.0;  // added to inputs, which lie in (-1, 1)
  friend void PrintTo(const Operator& op, std::ostream* out) { *out << op.name; }
};

constexpr DType kDTypes[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16};
enum class Layout { kDense, kTransposed, kStepped, kBroadcast };
constexpr Layout kLayouts[] = {Layout::kDense, Layout::kTransposed, Layout::kStepped, Layout::kBroadcast};

// [6, 10] in every layout, from a leaf.
Tensor laid_out(const Tensor& leaf, Layout layout) {
  if (layout == Layout::kTransposed) return leaf.view({10, 6}).t();
  if (layout == Layout::kStepped) return leaf.view({12, 10}).slice(0, {1, {}, 2});
  return layout == Layout::kBroadcast ? leaf.narrow(0, 0, 10).expand({6, 10}) : leaf.view({6, 10});
}
torch::Tensor laid_out(const torch::Tensor& leaf, Layout layout) {
  using torch::indexing::Slice;
  if (layout == Layout::kTransposed) return leaf.view({10, 6}).t();
  if (layout == Layout::kStepped) return leaf.view({12, 10}).index({Slice(1, torch::indexing::None, 2)});
  return layout == Layout::kBroadcast ? leaf.narrow(0, 0, 10).expand({6, 10}) : leaf.view({6, 10});
}

struct ElementwiseTorchTest : testing::TestWithParam<Operator> {
  static void compare(DType dtype, Layout layout) {
    const auto leaf = [&](std::int64_t seed) {
      return (spread_values({layout == Layout::kStepped ? 120 : 60}, seed).to(DType::kFloat64) + GetParam().shift)
          .to(dtype);
    };
    const Tensor a = leaf(1).set_requires_grad();
    const Tensor b = leaf(2).set_requires_grad();
    const torch::Tensor torch_a = to_torch(a).set_requires_grad(true);
    const torch::Tensor torch_b = to_torch(b).set_requires_grad(true);
    const Tensor y =
        GetParam().ours(laid_out(a, layout), laid_out(b, Layout::kDense == layout ? layout : Layout::kBroadcast));
    const torch::Tensor expected = GetParam().theirs(
        laid_out(torch_a, layout), laid_out(torch_b, Layout::kDense == layout ? layout : Layout::kBroadcast));
    expect_close(y, expected, "output");
    if (!expected.requires_grad()) return;
    const Tensor g = spread_values(y.shape(), 17).to(y.dtype());
    y.backward(g);
    expected.backward(to_torch(g));
    if (torch_a.grad().defined())
      expect_close(a.grad(), torch_a.grad(), "gradient of the first", 4 * tolerance_of(dtype));
    if (torch_b.grad().defined())
      expect_close(b.grad(), torch_b.grad(), "gradient of the second", 4 * tolerance_of(dtype));
  }
};

TEST_P(ElementwiseTorchTest, AgreesForEveryDtypeAndLayout) {
  for (const DType dtype : kDTypes) {
    for (const Layout layout : kLayouts) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " layout " + std::to_string(static_cast<int>(layout)));
      compare(dtype, layout);
    }
  }
}

using T = const Tensor&;
using P = const torch::Tensor&;

const Operator kBinary[] = {
    {"Add", [](T a, T b) { return add(a, b, 2.5); }, [](P a, P b) { return torch::add(a, b, 2.5); }},
    {"Sub", [](T a, T b) { return a - b; }, [](P a, P b) { return a - b; }},
    {"Mul", [](T a, T b) { return a * b; }, [](P a, P b) { return a * b; }},
    {"Div", [](T a, T b) { return a / b; }, [](P a, P b) { return a / b; }, 3.0},
    {"DivFloor", [](T a, T b) { return div(a * 7.0, b, "floor"); },
     [](P a, P b) { return torch::div(a * 7.0, b, "floor"); }, 3.0},
    {"Remainder", [](T a, T b) { return remainder(a, b * 0.5); }, [](P a, P b) { return torch::remainder(a, b * 0.5); },
     2.0},
    {"Pow", [](T a, T b) { return pow(a, b); }, [](P a, P b) { return torch::pow(a, b); }, 2.0},
    {"PowNumber", [](T a, T) { return pow(a, 3) + pow(a, 0.5) + pow(a, -1.5); },
     [](P a, P) { return torch::pow(a, 3) + torch::pow(a, 0.5) + torch::pow(a, -1.5); }, 2.0},
    {"NumberPow", [](T a, T) { return pow(Tensor(2.0), a); }, [](P a, P) { return torch::pow(2.0, a); }},
    {"Maximum", [](T a, T b) { return maximum(a, b); }, [](P a, P b) { return torch::maximum(a, b); }},
    {"Minimum", [](T a, T b) { return minimum(a, b); }, [](P a, P b) { return torch::minimum(a, b); }},
    {"Atan2", [](T a, T b) { return atan2(a, b); }, [](P a, P b) { return torch::atan2(a, b); }, 2.0},
    {"Where", [](T a, T b) { return where(gt(a, 0.1), a, b); }, [](P a, P b) { return torch::where(a > 0.1, a, b); }},
    {"Addcmul", [](T a, T b) { return addcmul(a, a, b, 0.5); }, [](P a, P b) { return torch::addcmul(a, a, b, 0.5); }},
    {"Addcdiv", [](T a, T b) { return addcdiv(a, a, b, 0.5); }, [](P a, P b) { return torch::addcdiv(a, a, b, 0.5); },
     2.0},
    {"Lerp", [](T a, T b) { return lerp(a, b, a * 0.5); }, [](P a, P b) { return torch::lerp(a, b, a * 0.5); }},
    {"Compare", [](T a, T b) { return logical_xor(logical_and(le(a, b), ne(a, b)), gt(a, 0.5)); },
     [](P a, P b) { return ((a <= b) & (a != b)) ^ (a > 0.5); }},
};

const Operator kUnary[] = {
    {"Neg", [](T a, T) { return -a; }, [](P a, P) { return -a; }},
    {"Abs", [](T a, T) { return abs(a); }, [](P a, P) { return torch::abs(a); }},
    {"Sign", [](T a, T) { return sign(a); }, [](P a, P) { return torch::sign(a); }},
    {"Reciprocal", [](T a, T) { return reciprocal(a); }, [](P a, P) { return torch::reciprocal(a); }, 2.0},
    {"Sqrt", [](T a, T) { return sqrt(a); }, [](P a, P) { return torch::sqrt(a); }, 2.0},
    {"Rsqrt", [](T a, T) { return rsqrt(a); }, [](P a, P) { return torch::rsqrt(a); }, 2.0},
    {"Exp", [](T a, T) { return exp(a); }, [](P a, P) { return torch::exp(a); }},
    {"Expm1", [](T a, T) { return expm1(a); }, [](P a, P) { return torch::expm1(a); }},
    {"Log", [](T a, T) { return log(a); }, [](P a, P) { return torch::log(a); }, 2.0},
    {"Log2", [](T a, T) { return log2(a); }, [](P a, P) { return torch::log2(a); }, 3.0},
    {"Log10", [](T a, T) { return log10(a); }, [](P a, P) { return torch::log10(a); }, 3.0},
    {"Log1p", [](T a, T) { return log1p(a); }, [](P a, P) { return torch::log1p(a); }, 1.0},
    {"Sin", [](T a, T) { return sin(a); }, [](P a, P) { return torch::sin(a); }},
    {"Cos", [](T a, T) { return cos(a); }, [](P a, P) { return torch::cos(a); }},
    {"Tan", [](T a, T) { return tan(a); }, [](P a, P) { return torch::tan(a); }},
    {"Tanh", [](T a, T) { return tanh(a); }, [](P a, P) { return torch::tanh(a); }},
    {"Sigmoid", [](T a, T) { return sigmoid(a); }, [](P a, P) { return torch::sigmoid(a); }},
    {"Erf", [](T a, T) { return erf(a); }, [](P a, P) { return torch::erf(a); }},
    {"Round", [](T a, T) { return round(a * 4.0) + floor(a) + ceil(a) + trunc(a * 2.0); },
     [](P a, P) { return torch::round(a * 4.0) + torch::floor(a) + torch::ceil(a) + torch::trunc(a * 2.0); }},
    {"Clamp", [](T a, T) { return clamp(a, Scalar(-0.5), Scalar(0.25)); },
     [](P a, P) { return torch::clamp(a, -0.5, 0.25); }},
    {"ClampTensor", [](T a, T b) { return clamp(a, b, Tensor()); }, [](P a, P b) { return torch::clamp_min(a, b); }},
    {"Relu", [](T a, T) { return relu(a); }, [](P a, P) { return torch::relu(a); }},
    {"LeakyRelu", [](T a, T) { return leaky_relu(a, 0.1); }, [](P a, P) { return torch::leaky_relu(a, 0.1); }},
    {"Elu", [](T a, T) { return elu(a); }, [](P a, P) { return torch::elu(a); }},
    {"Gelu", [](T a, T) { return gelu(a); }, [](P a, P) { return torch::gelu(a); }},
    {"GeluTanh", [](T a, T) { return gelu(a, GeluKind::kTanh); }, [](P a, P) { return torch::gelu(a, "tanh"); }},
    {"Silu", [](T a, T) { return silu(a); }, [](P a, P) { return torch::silu(a); }},
    {"Softplus", [](T a, T) { return softplus(a); }, [](P a, P) { return torch::softplus(a); }},
    {"LogSigmoid", [](T a, T) { return logsigmoid(a); }, [](P a, P) { return torch::log_sigmoid(a); }},
};

const Operator kReductions[] = {
    {"Sum", [](T a, T) { return sum(a); }, [](P a, P) { return a.sum(); }},
    {"SumDim", [](T a, T) { return sum(a, {1}); }, [](P a, P) { return a.sum(1); }},
    {"MeanDim", [](T a, T) { return mean(a, {0}, true); }, [](P a, P) { return a.mean(0, true); }},
    {"Prod", [](T a, T) { return prod(a, 1); }, [](P a, P) { return a.prod(1); }, 1.5},
    {"Max", [](T a, T) { return max(a); }, [](P a, P) { return a.max(); }},
    {"MaxDim", [](T a, T) { return max(a, 1).values; }, [](P a, P) { return std::get<0>(a.max(1)); }},
    {"MinDim", [](T a, T) { return min(a, 0, true).values; }, [](P a, P) { return std::get<0>(a.min(0, true)); }},
    {"Amax", [](T a, T) { return amax(a, {0}); }, [](P a, P) { return a.amax(0); }},
    {"Argmax", [](T a, T) { return argmax(a, 1); }, [](P a, P) { return a.argmax(1); }},
    {"Argmin", [](T a, T) { return argmin(a, 1, true); }, [](P a, P) { return a.argmin(1, true); }},
    {"Var", [](T a, T) { return var(a, {1}); }, [](P a, P) { return a.var(1); }, 1.0},
    {"Std", [](T a, T) { return std(a, {1}, 0.0, true); }, [](P a, P) { return a.std(1, false, true); }, 1.0},
    {"Logsumexp", [](T a, T) { return logsumexp(a, {1}); }, [](P a, P) { return torch::logsumexp(a, 1); }},
    {"Norm", [](T a, T) { return norm(a, 2.0, {1}); }, [](P a, P) { return a.norm(2, 1); }},
    {"Norm1", [](T a, T) { return norm(a, 1.0); }, [](P a, P) { return a.norm(1); }},
    {"Norm3", [](T a, T) { return norm(a, 3.0, {0}); }, [](P a, P) { return a.norm(3, 0); }},
    {"NormInf", [](T a, T) { return norm(a, INFINITY, {1}); }, [](P a, P) { return a.norm(INFINITY, 1); }},
    {"AnyAll", [](T a, T) { return logical_and(any(gt(a, 0.9), 1), all(gt(a, -2.0), 1)); },
     [](P a, P) { return (a > 0.9).any(1) & (a > -2.0).all(1); }},
    {"Cumsum", [](T a, T) { return cumsum(a, 1); }, [](P a, P) { return a.cumsum(1); }},
    {"Softmax", [](T a, T) { return nn::softmax(a, 0); }, [](P a, P) { return torch::softmax(a, 0); }},
    {"LogSoftmax", [](T a, T) { return nn::log_softmax(a, 1); }, [](P a, P) { return torch::log_softmax(a, 1); }},
};

const auto kName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Binary, ElementwiseTorchTest, testing::ValuesIn(kBinary), kName);
INSTANTIATE_TEST_SUITE_P(Unary, ElementwiseTorchTest, testing::ValuesIn(kUnary), kName);
INSTANTIATE_TEST_SUITE_P(Reductions, ElementwiseTorchTest, testing::ValuesIn(kReductions), kName);

TEST(PromotionTorchTest, AgreesForEveryPairOfDtypes) {
  constexpr DType kAll[] = {DType::kBool,  DType::kUInt8,   DType::kInt8,     DType::kInt16,   DType::kInt32,
                            DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
  for (const DType a : kAll) {
    for (const DType b : kAll) {
      for (const bool scalar : {false, true}) {
        const Shape shape = scalar ? Shape{} : Shape{2};
        const Tensor ours = Tensor::ones({2}, a) + Tensor::ones(shape, b);
        const torch::Tensor theirs = torch::ones({2}, to_torch(a)) + torch::ones(shape.span(), to_torch(b));
        EXPECT_EQ(to_torch(ours.dtype()), theirs.scalar_type()) << to_string(a) << " " << to_string(b) << " " << scalar;
      }
    }
    EXPECT_EQ(to_torch((Tensor::ones({2}, a) * 2.5).dtype()), (torch::ones({2}, to_torch(a)) * 2.5).scalar_type());
    EXPECT_EQ(to_torch((Tensor::ones({2}, a) * 2).dtype()), (torch::ones({2}, to_torch(a)) * 2).scalar_type());
  }
}

TEST(IntegersTorchTest, AgreeInEveryWidth) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    const Tensor a = Tensor::from_values({100, -7, 7, 120, 3}).to(dtype);
    const Tensor b = Tensor::from_values({100, 2, -2, 11, 5}).to(dtype);
    const torch::Tensor x = to_torch(a), y = to_torch(b);
    SCOPED_TRACE(std::string(to_string(dtype)));
    expect_close(a * b + a - b, x * y + x - y, "arithmetic");
    expect_close(floor_divide(a, b), torch::floor_divide(x, y), "floor_divide");
    expect_close(remainder(a, b), torch::remainder(x, y), "remainder");
    expect_close(pow(a, 3), torch::pow(x, 3), "pow");
    expect_close(bitwise_xor(bitwise_and(a, b), bitwise_not(a)), (x & y) ^ ~x, "bits");
    expect_close(sum(a) / 2, x.sum() / 2, "sum and division");
    expect_close(matmul(a, b), x.matmul(y), "dot");
    expect_close(sort(a, 0, true).values, std::get<0>(x.sort(0, true)), "sort");
  }
}

TEST(RandomTorchTest, DrawsPyTorchsNumbers) {
  for (const std::int64_t n : {5, 16, 100}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      manual_seed(7);
      torch::manual_seed(7);
      const auto options = torch::TensorOptions(to_torch(dtype));
      expect_close(rand({n}, dtype), torch::rand({n}, options), "rand", 1e-15);
      expect_close(randn({n}, dtype), torch::randn({n}, options), "randn", 1e-5);
      expect_close(randint(-3, 50, {n}), torch::randint(-3, 50, {n}), "randint");
      expect_close(randperm(n), torch::randperm(n), "randperm");
      Tensor coins = Tensor::empty({n}, dtype);
      expect_close(bernoulli_(coins, 0.3), torch::empty({n}, options).bernoulli_(0.3), "bernoulli_");
      expect_close(bernoulli(Tensor::full({n}, 0.3, dtype)), torch::bernoulli(torch::full({n}, 0.3, options)),
                   "bernoulli");
      expect_close(nn::dropout(Tensor::ones({n}, dtype)), torch::dropout(torch::ones({n}, options), 0.5, true),
                   "dropout");
      expect_close(rand({2, n}, dtype), torch::rand({2, n}, options), "rand after", 1e-15);
    }
  }
}

}  // namespace
}  // namespace infeed
