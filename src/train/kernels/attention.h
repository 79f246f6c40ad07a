#pragma once
/// Scaled dot product attention without the matrix of scores: 48 queries at a time against all keys of their head.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

struct AttentionProblem {
  Tensor q, k, v;  ///< float32 [N, H, L, E], [N, H, S, E], [N, H, S, Ev]; the last dimension contiguous
  Tensor mask;     ///< float32, added to the scores, broadcast to [N, H, L, S]; may be undefined
  bool is_causal;
  float scale;
};

struct AttentionResult {
  Tensor y;          ///< [N, H, L, Ev], in memory as q lies: heads inside queries, or the reverse
  Tensor logsumexp;  ///< [N, H, L] of the scores; infinity where a query sees no key
};
[[nodiscard]] AttentionResult attention(const AttentionProblem& problem);

struct AttentionGrads {
  Tensor q, k, v;
};
/// With P = exp(scores - logsumexp) and dP = g v^T: dS = P (dP - sum(P dP)) scale; dq = dS k, dk = dS^T q, dv = P^T g.
[[nodiscard]] AttentionGrads attention_backward(const Tensor& g, const AttentionProblem& problem,
                                                const Tensor& logsumexp);

}  // namespace infeed::kernels
