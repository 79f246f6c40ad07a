#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/train/autograd/anomaly.h"
#include "infeed/train/autograd/backward.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/in_place.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/tensor/warning.h"
#include "train/values.h"

namespace infeed {
namespace {

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct AutogradTest : testing::Test {
  Tensor x = Tensor::from_values({1.0f, 2.0f, 3.0f}).set_requires_grad();
};

TEST_F(AutogradTest, ReachesEveryLeaf) {
  const Tensor w = Tensor::full({3}, 2.0).set_requires_grad();
  sum(x * w).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 2, 2}));
  EXPECT_EQ(values_of(w.grad()), (std::vector<double>{1, 2, 3}));
}

TEST_F(AutogradTest, AddsUpWhereATensorIsUsedTwice) {
  sum(x * x + x).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{3, 5, 7}));
}

TEST_F(AutogradTest, AddsToTheGradOfEarlierCalls) {
  sum(x).backward();
  sum(x).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 2, 2}));
}

TEST_F(AutogradTest, VisitsADiamondInOrder) {
  const Tensor a = x * 2.0;
  const Tensor b = a * a;
  sum(b * a).backward();  // (2x)^3 -> 24 x^2
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{24, 96, 216}));
}

TEST_F(AutogradTest, DoesNotMixTheGradsOfTwoLeaves) {
  const Tensor y = Tensor::zeros({3}).set_requires_grad();
  sum(x + y).backward();
  NoGradGuard no_grad;
  Tensor grad = x.grad();
  grad.fill_(9.0);
  EXPECT_EQ(values_of(y.grad()), (std::vector<double>{1, 1, 1}));
}

TEST_F(AutogradTest, RefusesANonScalar) {
  EXPECT_NE(message_of([&] { (x * 2.0).backward(); }).find("only for scalar outputs"), std::string::npos);
  (x * 2.0).backward(Tensor::from_values({1.0f, 0.0f, 2.0f}));
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 0, 4}));
}

TEST_F(AutogradTest, RefusesATensorOutsideTheGraph) {
  EXPECT_THROW(Tensor::zeros({}).backward(), RuntimeError);
  EXPECT_THROW(sum(x.detach()).backward(), RuntimeError);
}

TEST_F(AutogradTest, RefusesASecondPassUnlessToldToRetain) {
  const Tensor loss = sum(x * x);
  loss.backward({.retain_graph = true});
  loss.backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{4, 8, 12}));
  EXPECT_NE(message_of([&] { loss.backward(); }).find("retain_graph"), std::string::npos);
}

TEST_F(AutogradTest, NoticesASavedTensorThatWasModified) {
  const Tensor loss = sum(x * x);
  {
    NoGradGuard no_grad;
    x.add_(x);
  }
  EXPECT_NE(message_of([&] { loss.backward(); }).find("is at version 1; expected version 0"), std::string::npos);
}

TEST_F(AutogradTest, NoticesAModificationThroughAView) {
  Tensor constant = Tensor::ones({2, 3});
  const Tensor loss = sum(x * constant);
  constant.select(0, 1).fill_(3.0);
  EXPECT_THROW(loss.backward(), RuntimeError);
}

TEST_F(AutogradTest, NamesTheNodeOfAModifiedResult) {
  const Tensor y = exp(x);
  y.detach().zero_();
  EXPECT_EQ(message_of([&] { sum(y).backward(); })
                .find("one of the variables needed for gradient computation has been "
                      "modified by an inplace operation: [torch.FloatTensor [3]], "
                      "which is output 0 of ExpBackward0, is at version 1; expected "
                      "version 0 instead. Hint: enable anomaly detection"),
            0U);
}

TEST_F(AutogradTest, RefusesInPlaceOnLeavesAndTheirViews) {
  const std::string text = "a leaf Variable that requires grad is being used in an in-place operation.";
  EXPECT_EQ(message_of([&] { x.add_(1.0); }), text);
  EXPECT_EQ(message_of([&] { x.index_put({std::int64_t{0}}, 5.0); }), "a view of " + text);
  EXPECT_EQ(values_of(x), (std::vector<double>{1, 2, 3}));
}

TEST_F(AutogradTest, RecordsInPlaceOperations) {
  Tensor y = x * 2.0;
  y.mul_(x);  // 2x^2
  y.add_(1.0);
  in_place(y, {}, [](const Tensor& t) { return square(t); });
  EXPECT_EQ(y.grad_fn()->name(), "PowBackward0");
  sum(y).backward();  // (2x^2 + 1)^2 -> 8x (2x^2 + 1)
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{24, 144, 456}));
}

TEST_F(AutogradTest, RecordsAnOperationOfATensorOnItself) {
  Tensor y = x * 1.0;
  y.mul_(y);
  sum(y).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 4, 6}));
}

TEST_F(AutogradTest, RecordsWritesThroughViewsInTheBase) {
  Tensor y = x * x;
  const Tensor w = Tensor::full({}, 7.0).set_requires_grad();
  const Tensor tail = y.narrow(0, 1, 2);
  y.index_put({std::int64_t{0}}, w);
  EXPECT_EQ(y.grad_fn()->name(), "CopySlices");
  EXPECT_EQ(tail.grad_fn()->name(), "AsStridedBackward0");
  sum(y).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{0, 4, 6}));
  EXPECT_EQ(w.grad().item(), 1.0);
}

TEST_F(AutogradTest, MakesAPlainTensorPartOfTheGraphByAWrite) {
  Tensor buffer = Tensor::zeros({2, 3});
  buffer.select(0, 1).copy_(x);
  Tensor first = buffer.select(0, 0);
  first.add_(x, 3.0);
  EXPECT_TRUE(buffer.requires_grad());
  sum(buffer * buffer).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{20, 40, 60}));  // 2x + 18x
}

TEST_F(AutogradTest, RefusesWritesThroughViewsOfSeveralAndOfNoGrad) {
  Tensor y = x * 2.0;
  Tensor part = split(y, 2)[0];
  EXPECT_EQ(message_of([&] { part.mul_(2.0); }).find("Output 0 of SplitBackward0 is a view"), 0U);
  Tensor quiet = [&] {
    const NoGradGuard no_grad;
    return y.narrow(0, 0, 2);
  }();
  EXPECT_EQ(message_of([&] { quiet.mul_(2.0); }).find("A view was created in no_grad mode"), 0U);
}

TEST_F(AutogradTest, RefusesWritesToRepeatedOrOverlappingElements) {
  EXPECT_EQ(message_of([] { Tensor::zeros({1}).expand({3}).mul_(2.0); }).find("unsupported operation: more than one"),
            0U);
  const Tensor t = Tensor::arange(4, DType::kFloat32);
  EXPECT_EQ(message_of([&] { t.narrow(0, 1, 3).add_(t.narrow(0, 0, 3)); }).find("unsupported operation: some elements"),
            0U);
  EXPECT_EQ(message_of([] { Tensor::arange(3).add_(1.5); }),
            "result type Float can't be cast to the desired output type Long");
}

TEST_F(AutogradTest, KeepsInferenceTensorsOutOfGraphs) {
  const Tensor y = [&] {
    const InferenceModeGuard inference;
    return x * 2.0;
  }();
  EXPECT_TRUE(y.is_inference());
  EXPECT_EQ(message_of([&] { (void)(y * x); }).find("Inference tensors cannot be saved for backward"), 0U);
  EXPECT_EQ(message_of([&] { Tensor(y).add_(1.0); }).find("Inplace update to inference tensor outside InferenceMode"),
            0U);
  EXPECT_THROW((void)y.version(), RuntimeError);
  sum(y.clone() * x).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 4, 6}));
}

TEST_F(AutogradTest, LetsDataHideAWrite) {
  const Tensor y = exp(x * 0.0);
  y.variable_data().zero_();
  EXPECT_EQ(y.version(), 0U);
  EXPECT_EQ(values_of(y), (std::vector<double>{0, 0, 0}));
  y.detach().zero_();
  EXPECT_EQ(y.version(), 1U);
}

TEST_F(AutogradTest, ReturnsGradientsWithoutTouchingLeaves) {
  const Tensor w = Tensor::full({}, 5.0).set_requires_grad();
  const Tensor z = sum(x * x) * w;
  EXPECT_EQ(values_of(grad(z, x, {.retain_graph = true})), (std::vector<double>{10, 20, 30}));
  EXPECT_EQ(grad(z, w).item(), 14.0);
  EXPECT_FALSE(x.grad().defined() || w.grad().defined());
  EXPECT_NE(message_of([&] { (void)grad(z, x); }).find("backward through the graph a second time"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)grad(sum(x), w); }).find("allow_unused=True"), std::string::npos);
  EXPECT_FALSE(grad(sum(x), w, {.allow_unused = true}).defined());
}

TEST_F(AutogradTest, DifferentiatesGradients) {
  const Tensor first = grad(sum(x * x * x), x, {.create_graph = true});
  const Tensor second = grad(sum(first), x, {.create_graph = true});
  EXPECT_EQ(values_of(second), (std::vector<double>{6, 12, 18}));
  EXPECT_EQ(values_of(grad(sum(second), x)), (std::vector<double>{6, 6, 6}));
  const Tensor twice = grad(sum(exp(x * 0.0 + 1.0) * tanh(x)), x, {.create_graph = true});
  EXPECT_TRUE(twice.requires_grad());
}

TEST_F(AutogradTest, KeepsNanOfWhatWasMaskedOutOutOfGradients) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor target = Tensor::from_values({0.0f, nan, 1.0f});
  const Tensor seen = Tensor::from_values({true, false, true});
  sum(square(x - target).index({seen})).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 0, 4}));
  x.set_grad({});
  sum(where(lt(x, 2.5), x + 1.0, exp(x * 100.0))).backward();
  EXPECT_EQ(values_of(x.grad().narrow(0, 0, 2)), (std::vector<double>{1, 1}));
}

TEST_F(AutogradTest, CallsHooksOnTheWay) {
  const Tensor y = x * 2.0;
  Tensor(y).retain_grad();
  HookHandle handle = Tensor(y).register_hook([](const Tensor& g) { return g * 10.0; });
  Tensor(x).register_hook([](const Tensor& g) { return g + 1.0; });
  sum(y * 1.0).backward();
  EXPECT_EQ(values_of(y.grad()), (std::vector<double>{10, 10, 10}));
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{21, 21, 21}));
  handle.remove();
  x.set_grad({});
  sum(x * 2.0).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{3, 3, 3}));
}

TEST_F(AutogradTest, NamesNodesAndEdgesAsPyTorchDoes) {
  const Tensor y = pow(x, 2) + 3.0;
  const auto& next = y.grad_fn()->next();
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(y.grad_fn()->name(), "AddBackward0");
  EXPECT_EQ(next[0].node->name(), "PowBackward0");
  EXPECT_EQ(next[1].node, nullptr);
  EXPECT_TRUE(next[0].node->next()[0].node->variable().is_same(x));
}

TEST_F(AutogradTest, NamesTheNodeThatMadeNan) {
  const AnomalyGuard anomaly;
  set_trace_source([] { return std::string("model.py:7"); });
  set_warning_handler([](const std::string&) {});
  const Tensor y = sqrt(x * -1.0);
  EXPECT_EQ(y.grad_fn()->trace(), "model.py:7");
  EXPECT_EQ(message_of([&] { sum(y).backward(); }), "Function 'SqrtBackward0' returned nan values in its 0th output.");
  set_trace_source({});
  set_warning_handler({});
}

TEST_F(AutogradTest, RecordsNothingUnderNoGrad) {
  const NoGradGuard no_grad;
  const Tensor y = x * 2.0;
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(y.grad_fn(), nullptr);
}

TEST_F(AutogradTest, SendsNothingToInputsThatNeedNone) {
  const Tensor constant = Tensor::ones({3});
  sum(x * constant).backward();
  EXPECT_FALSE(constant.grad().defined());
}

TEST_F(AutogradTest, FollowsViews) {
  sum(x.view({3, 1}).expand({3, 2}).t().select(0, 1) * x).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 4, 6}));
}

TEST_F(AutogradTest, FreesLongChainsWithoutRecursion) {
  Tensor y = x;
  for (int i = 0; i < 200'000; ++i) y = affine(y, 1.0, 0.0);
  sum(y).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{1, 1, 1}));
}

TEST_F(AutogradTest, LeavesNothingBehind) {
  const auto before = host_in_use();
  for (int i = 0; i < 2; ++i) {
    sum(relu(exp(x) * x)).backward();
    x.set_grad({});
  }
  EXPECT_EQ(host_in_use(), before);
}

TEST_F(AutogradTest, KeepsGradientsInTheDtypeOfTheirLeaf) {
  const Tensor wide = Tensor::full({3}, 2.0, DType::kFloat64).set_requires_grad();
  sum(wide.to(DType::kFloat32) * x).backward();
  EXPECT_EQ(wide.grad().dtype(), DType::kFloat64);
  EXPECT_THROW(Tensor::arange(3).set_requires_grad(), RuntimeError);
}

TEST(FewTest, HoldsMoreThanItsOwnRoom) {
  Few<std::string, 2> few;
  for (const char* item : {"a", "b", "c", "d"}) few.push_back(item);
  EXPECT_EQ(std::vector<std::string>(few.begin(), few.end()), (std::vector<std::string>{"a", "b", "c", "d"}));
  const Few<std::string, 2> taken(std::move(few));
  EXPECT_EQ(taken.size(), 4U);
  EXPECT_EQ(taken[3], "d");
  EXPECT_TRUE(few.empty());  // NOLINT: what is left is part of it
}

}  // namespace
}  // namespace infeed
