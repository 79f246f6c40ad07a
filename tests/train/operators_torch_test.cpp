// Arithmetic, reductions, views and indexing, forward and backward, against LibTorch.
#include "train/operators_torch.h"

namespace infeed {
namespace {

using OperatorsTorchTest = TorchOperatorTest;

TEST_P(OperatorsTorchTest, AgreesForwardAndBackward) { expect_agreement(); }

const Operator kArithmetic[] = {
    {"Add", {{4, 1, 6}, {5, 6}}, [](auto& in) { return in[0] + in[1]; }, [](auto& in) { return in[0] + in[1]; }},
    {"Sub", {{4, 5}, {1}}, [](auto& in) { return in[0] - in[1]; }, [](auto& in) { return in[0] - in[1]; }},
    {"Mul", {{4, 5}, {4, 1}}, [](auto& in) { return in[0] * in[1]; }, [](auto& in) { return in[0] * in[1]; }},
    {"Div", {{4, 5}, {5}}, [](auto& in) { return in[0] / in[1]; }, [](auto& in) { return in[0] / in[1]; }},
    {"Scalars",
     {{7}},
     [](auto& in) { return 1.0 / (2.0 - in[0] * 0.5); },
     [](auto& in) { return 1.0 / (2.0 - in[0] * 0.5); }},
    {"Relu", {{300, 300}}, [](auto& in) { return relu(in[0]); }, [](auto& in) { return torch::relu(in[0]); }},
    {"Exp", {{50}}, [](auto& in) { return exp(in[0]); }, [](auto& in) { return torch::exp(in[0]); }},
    {"Log", {{50}}, [](auto& in) { return log(in[0] * in[0]); }, [](auto& in) { return torch::log(in[0] * in[0]); }},
    {"Sum", {{30, 40}}, [](auto& in) { return sum(in[0]); }, [](auto& in) { return in[0].sum(); }},
    {"SumDims",
     {{3, 4, 5, 6}},
     [](auto& in) {
       return sum(in[0], {0, 2});
     },
     [](auto& in) {
       return in[0].sum({0, 2});
     }},
    {"MeanKeepdim",
     {{3, 4, 5}},
     [](auto& in) { return mean(in[0], {1}, true); },
     [](auto& in) { return in[0].mean(1, true); }},
    {"Mean", {{100, 900}}, [](auto& in) { return mean(in[0]); }, [](auto& in) { return in[0].mean(); }},
    {"Max", {{20, 30}}, [](auto& in) { return max(in[0]); }, [](auto& in) { return in[0].max(); }},
    {"Views",
     {{4, 6, 5}},
     [](auto& in) {
       return in[0].transpose(0, 2).narrow(1, 2, 3).reshape({-1, 6}).select(0, 3);
     },
     [](auto& in) {
       return in[0].transpose(0, 2).narrow(1, 2, 3).reshape({-1, 6}).select(0, 3);
     }},
    {"Expand",
     {{4, 1}},
     [](auto& in) {
       return in[0].unsqueeze(0).expand({2, 4, 3}).flatten(1);
     },
     [](auto& in) {
       return in[0].unsqueeze(0).expand({2, 4, 3}).flatten(1);
     }},
    {"Matmul",
     {{33, 65}, {65, 17}},
     [](auto& in) { return matmul(in[0], in[1]); },
     [](auto& in) { return in[0].matmul(in[1]); }},
    {"TransposedMatmul",
     {{65, 33}, {17, 65}},
     [](auto& in) { return matmul(in[0].t(), in[1].t()); },
     [](auto& in) { return in[0].t().matmul(in[1].t()); }},
    {"BatchedMatmul",
     {{3, 1, 4, 5}, {2, 5, 6}},
     [](auto& in) { return matmul(in[0], in[1]); },
     [](auto& in) { return in[0].matmul(in[1]); }},
    {"FoldedMatmul",
     {{3, 4, 5}, {5, 6}},
     [](auto& in) { return matmul(in[0], in[1]); },
     [](auto& in) { return in[0].matmul(in[1]); }},
    {"MatrixVector",
     {{4, 5}, {5}},
     [](auto& in) { return matmul(in[0], in[1]); },
     [](auto& in) { return in[0].matmul(in[1]); }},
};

using Slices = std::initializer_list<torch::indexing::TensorIndex>;

const Operator kMoves[] = {
    {"Cat",
     {{2, 3}, {4, 3}},
     [](auto& in) {
       return cat({in[0], in[1], in[0]});
     },
     [](auto& in) {
       return torch::cat({in[0], in[1], in[0]});
     }},
    {"Stack",
     {{2, 3}, {2, 3}},
     [](auto& in) {
       return stack({in[0], in[1]}, 1);
     },
     [](auto& in) {
       return torch::stack({in[0], in[1]}, 1);
     }},
    {"Split",
     {{5, 3}},
     [](auto& in) { return split(in[0], 2)[1] * split(in[0], 2)[0]; },
     [](auto& in) { return torch::split(in[0], 2)[1] * torch::split(in[0], 2)[0]; }},
    {"Unbind",
     {{3, 4}},
     [](auto& in) { return unbind(in[0], 1)[2]; },
     [](auto& in) { return torch::unbind(in[0], 1)[2]; }},
    {"Repeat",
     {{2, 3}},
     [](auto& in) {
       return repeat(in[0], {2, 1, 3});
     },
     [](auto& in) {
       return in[0].repeat({2, 1, 3});
     }},
    {"Flip",
     {{2, 3, 4}},
     [](auto& in) {
       return flip(in[0], {0, 2});
     },
     [](auto& in) {
       return in[0].flip({0, 2});
     }},
    {"Roll", {{5, 2}}, [](auto& in) { return roll(in[0], 2, 0); }, [](auto& in) { return in[0].roll(2, 0); }},
    {"Triu",
     {{3, 4, 5}},
     [](auto& in) { return triu(in[0], 1) + tril(in[0], -1); },
     [](auto& in) { return in[0].triu(1) + in[0].tril(-1); }},
    {"Pad",
     {{2, 3, 4}},
     [](auto& in) {
       return pad(in[0], std::array<std::int64_t, 4>{1, 2, -1, 3}, PadMode::kConstant, 0.5);
     },
     [](auto& in) {
       return torch::constant_pad_nd(in[0], {1, 2, -1, 3}, 0.5);
     }},
    {"PadReflect",
     {{2, 3, 6}},
     [](auto& in) {
       return pad(in[0], std::array<std::int64_t, 2>{2, 3}, PadMode::kReflect);
     },
     [](auto& in) {
       return torch::reflection_pad1d(in[0], {2, 3});
     }},
    {"Sort",
     {{5, 7}},
     [](auto& in) { return sort(in[0], 0, true).values; },
     [](auto& in) { return std::get<0>(in[0].sort(0, true)); }},
    {"Topk",
     {{5, 7}},
     [](auto& in) { return topk(in[0], 3).values; },
     [](auto& in) { return std::get<0>(in[0].topk(3)); }},
    {"Gather",
     {{4, 3}},
     [](auto& in) {
       return gather(in[0], 1, kPicks.view({4, 1}));
     },
     [](auto& in) {
       return in[0].gather(1, kTorchPicks.view({4, 1}));
     }},
    {"Scatter",
     {{4, 3}, {4, 1}},
     [](auto& in) {
       return scatter(in[0], 1, kPicks.view({4, 1}), in[1]);
     },
     [](auto& in) {
       return in[0].scatter(1, kTorchPicks.view({4, 1}), in[1]);
     }},
    {"ScatterAdd",
     {{3, 2}, {2, 2}},
     [](auto& in) {
       return scatter_add(in[0], 0, kPicks.view({2, 2}), in[1]);
     },
     [](auto& in) {
       return in[0].scatter_add(0, kTorchPicks.view({2, 2}), in[1]);
     }},
    {"IndexSelect",
     {{2, 3, 4}},
     [](auto& in) { return index_select(in[0], 1, kPicks); },
     [](auto& in) { return in[0].index_select(1, kTorchPicks); }},
    {"IndexAdd",
     {{3, 2}, {4, 2}},
     [](auto& in) { return index_add(in[0], 0, kPicks, in[1], 2.0); },
     [](auto& in) { return in[0].index_add(0, kTorchPicks, in[1], 2.0); }},
    {"IndexTensors",
     {{3, 4, 5}},
     [](auto& in) {
       return in[0].index({kPicks, Slice{1, {}}, kPicks});
     },
     [](auto& in) {
       return in[0].index(Slices{kTorchPicks, torch::indexing::Slice(1), kTorchPicks});
     }},
    {"IndexMask",
     {{4, 5}},
     [](auto& in) { return in[0].index({gt(in[0], 0.0)}); },
     [](auto& in) { return in[0].index(Slices{in[0] > 0.0}); }},
    {"MaskedFill",
     {{4, 5}},
     [](auto& in) { return masked_fill(in[0], gt(in[0], 0.0), -2.0); },
     [](auto& in) { return in[0].masked_fill(in[0] > 0.0, -2.0); }},
    {"Unfold",
     {{3, 9}},
     [](auto& in) { return in[0].unfold(1, 4, 2); },
     [](auto& in) { return in[0].unfold(1, 4, 2); }},
    {"AsStrided",
     {{20}},
     [](auto& in) {
       return in[0].as_strided({3, 4}, {2, 3}, 1);
     },
     [](auto& in) {
       return in[0].as_strided({3, 4}, {2, 3}, 1);
     }},
    {"Diagonal",
     {{3, 4, 5}},
     [](auto& in) { return in[0].diagonal(1, 0, 2); },
     [](auto& in) { return in[0].diagonal(1, 0, 2); }},
    {"Addmm",
     {{4}, {3, 5}, {5, 4}},
     [](auto& in) { return addmm(in[0], in[1], in[2], 0.5, 2.0); },
     [](auto& in) { return torch::addmm(in[0], in[1], in[2], 0.5, 2.0); }},
    {"Dot", {{7}, {7}}, [](auto& in) { return matmul(in[0], in[1]); }, [](auto& in) { return in[0].matmul(in[1]); }},
    {"WideMatmul",
     {{3, 4}, {4, 5}},
     [](auto& in) { return matmul(in[0].to(DType::kFloat64), in[1].to(DType::kFloat64)).to(DType::kFloat32); },
     [](auto& in) { return in[0].matmul(in[1]); }},
};

INSTANTIATE_TEST_SUITE_P(Arithmetic, OperatorsTorchTest, testing::ValuesIn(kArithmetic), kOperatorName);
INSTANTIATE_TEST_SUITE_P(Moves, OperatorsTorchTest, testing::ValuesIn(kMoves), kOperatorName);

}  // namespace
}  // namespace infeed
