#pragma once
/// A loader's part of a trace: its workers' runs, and the turns of its consumer.

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "loader/batch_memory.h"
#include "loader/tracer.h"

namespace infeed {

/// Threads: the consumer's, but drain() any. All calls are a branch where no trace runs.
class RingTrace final : public TraceSource {
 public:
  /// `threads_per_worker`: consecutive claimants of one worker.
  RingTrace(std::shared_ptr<BatchMemory> memory, int threads_per_worker);
  /// Fetches what is left.
  ~RingTrace() override;
  RingTrace(const RingTrace&) = delete;
  RingTrace& operator=(const RingTrace&) = delete;
  /// Makes one that the tracer knows.
  [[nodiscard]] static std::shared_ptr<RingTrace> make(std::shared_ptr<BatchMemory> memory, int threads_per_worker);

  /// next() begins: also where a trace was started or ended meanwhile.
  void called() {
    if (on_ || Tracer::running()) [[unlikely]]
      begin_turn();
  }
  void armed(std::uint64_t seq, std::uint64_t number, std::uint64_t epoch) {
    if (on_) [[unlikely]]
      note_armed(seq, number, epoch);
  }
  void taken(std::uint64_t seq) {
    if (on_) [[unlikely]]
      note_taken(seq);
  }
  void waited(std::uint64_t begin_ns, std::uint64_t end_ns) {
    if (on_) [[unlikely]]
      add_span("wait", begin_ns, end_ns);
  }
  void drew(std::uint64_t begin_ns, std::uint64_t end_ns) {
    if (on_) [[unlikely]]
      add_span("sampler", begin_ns, end_ns);
  }
  /// next() ends; told a second time it is nothing.
  void returned() {
    if (on_) [[unlikely]]
      end_turn();
  }
  void drain() noexcept override;

 private:
  struct InFlight {
    std::uint64_t number = 0, epoch = 0;
    std::vector<std::uint64_t> flows{};  ///< of its runs
  };

  void begin_turn();
  void end_turn();
  void note_armed(std::uint64_t seq, std::uint64_t number, std::uint64_t epoch);
  void note_taken(std::uint64_t seq);
  void add_span(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns);
  void skip_old_runs();
  void fetch();
  void add_run(int claimant, const RunTrace& run);

  std::mutex mutex_;  ///< all below but on_
  std::shared_ptr<BatchMemory> memory_;
  int threads_per_worker_;
  bool on_ = false;                                     ///< the consumer's thread alone
  std::vector<std::uint64_t> seen_;                     ///< of each claimant's records
  std::unordered_map<std::uint64_t, InFlight> flight_;  ///< by seq
  std::vector<InFlight> taken_;                         ///< in this turn
  std::vector<TraceTrack> named_;                       ///< of each claimant, as the tracer was told
  std::vector<TraceEvent> events_;                      ///< on their way to the tracer
  std::vector<RunTrace> runs_;                          ///< of fetch(), kept for its memory
  TraceTrack consumer_{};
  bool feeds_stager_ = false;  ///< the consumer is a Stager's thread
  bool inside_ = false;        ///< next()
  std::uint64_t called_ns_ = 0;
  std::uint64_t returned_ns_ = 0;  ///< 0: not in this trace
};

}  // namespace infeed
