#pragma once
/// Places where a claimant may stop or die, by the names that docs/ring.md and the protocol's model use. Empty unless a
/// test compiles the ring's sources with INFEED_RING_STEPS.

namespace infeed {

enum class RingStep {
  kBeforeCas,     ///< chose a run, owns nothing
  kAfterCas,      ///< owns the run; its todo bit is still set
  kAfterTodo,     ///< todo bit cleared; no extent yet
  kAfterBind,     ///< an extent's owner word names the batch; the slot does not name the extent yet
  kBeforeReturn,  ///< found no extent and is about to give the run back
  kMidRows,       ///< called by the one who writes rows
  kBeforeDone,    ///< rows written
  kAfterDone,     ///< done bit set; the batch may be taken from here on
  kBeforeRing,    ///< filled the mask, saw the consumer sleep, has not rung
  kBeforeSleep,   ///< sleeper bit set, not in the kernel yet
  kWoken,         ///< back from the kernel, sleeper bit still set
};

#ifdef INFEED_RING_STEPS
inline void (*ring_step_hook)(RingStep) = nullptr;
inline void ring_step(RingStep step) {
  if (ring_step_hook != nullptr) ring_step_hook(step);
}
#else
inline void ring_step(RingStep) noexcept {}
#endif

}  // namespace infeed
