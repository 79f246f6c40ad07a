// What does it cost that a loader counts for stats()? W2 (50,000 rows of uint8 [3, 32, 32], random order, batch 256, 2 fork
// workers) three ways in turn, in one program and with one loader: as it is; with all that only counts left out; and with
// all that counts done twice, each reading of the clock too (that cannot be left out: waits and runs need it).
//
//   counting_bench ROUNDS SAMPLES     "once R C none R C twice R C" a round: samples a second, us of CPU a sample
//
// Read: none by once is what the counters cost; once by twice what they and the clock cost together.
// The functions that count are exchanged by the linker (--wrap) for those below, which look which way it is.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "infeed/dataset/tensor_dataset.h"
#include "infeed/sampler/random.h"
#include "loader/recorder.h"
#include "loader/turn_clock.h"
#include "ring/ring.h"
#include "suite/loader_turn.h"
#include "suite/warm_memory.h"

namespace {

enum class Counting { kOnce, kNone, kTwice };
using Way = std::atomic<Counting>;

Way at_start{Counting::kOnce};
Way* way = &at_start;  // later in memory that the workers share

bool once() { return way->load(std::memory_order_relaxed) != Counting::kNone; }
bool twice() { return way->load(std::memory_order_relaxed) == Counting::kTwice; }

using infeed::ClaimantStats;
using infeed::Recorder;
using infeed::Ring;
using infeed::TurnClock;
using Time = TurnClock::Clock::time_point;

// What is counted twice goes here the second time.
TurnClock other_clock;
Recorder other_recorder;

}  // namespace

// Each pair: what the linker calls instead, and what it called before.
Time real_now() asm("__real__ZNSt6chrono3_V212steady_clock3nowEv");
Time wrap_now() asm("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
void real_called(TurnClock*, Time) asm(
    "__real__ZN6infeed9TurnClock6calledENSt6chrono10time_pointINS1_3_V212steady_clockENS1_"
    "8durationIlSt5ratioILl1ELl1000000000EEEEEE");
void wrap_called(TurnClock*, Time) asm(
    "__wrap__ZN6infeed9TurnClock6calledENSt6chrono10time_pointINS1_3_V212steady_clockENS1_"
    "8durationIlSt5ratioILl1ELl1000000000EEEEEE");
void real_returned(TurnClock*, bool, Time) asm(
    "__real__ZN6infeed9TurnClock8returnedEbNSt6chrono10time_pointINS1_3_V212steady_clockENS1_"
    "8durationIlSt5ratioILl1ELl1000000000EEEEEE");
void wrap_returned(TurnClock*, bool, Time) asm(
    "__wrap__ZN6infeed9TurnClock8returnedEbNSt6chrono10time_pointINS1_3_V212steady_clockENS1_"
    "8durationIlSt5ratioILl1ELl1000000000EEEEEE");
void real_waited(TurnClock*, TurnClock::Duration) asm(
    "__real__ZN6infeed9TurnClock6waitedENSt6chrono8durationIlSt5ratioILl1ELl1000000000EEEE");
void wrap_waited(TurnClock*, TurnClock::Duration) asm(
    "__wrap__ZN6infeed9TurnClock6waitedENSt6chrono8durationIlSt5ratioILl1ELl1000000000EEEE");
void real_sampled(TurnClock*, TurnClock::Duration) asm(
    "__real__ZN6infeed9TurnClock7sampledENSt6chrono8durationIlSt5ratioILl1ELl1000000000EEEE");
void wrap_sampled(TurnClock*, TurnClock::Duration) asm(
    "__wrap__ZN6infeed9TurnClock7sampledENSt6chrono8durationIlSt5ratioILl1ELl1000000000EEEE");
void real_handed_out(Recorder*, std::int64_t, bool) asm("__real__ZN6infeed8Recorder10handed_outElb");
void wrap_handed_out(Recorder*, std::int64_t, bool) asm("__wrap__ZN6infeed8Recorder10handed_outElb");
void real_add_stats(Ring*, int, const ClaimantStats&) asm("__real__ZN6infeed4Ring9add_statsEiRKNS_13ClaimantStatsE");
void wrap_add_stats(Ring*, int, const ClaimantStats&) asm("__wrap__ZN6infeed4Ring9add_statsEiRKNS_13ClaimantStatsE");
void real_note_claim(Ring*, int, std::uint64_t) asm("__real__ZN6infeed4Ring10note_claimEim");
void wrap_note_claim(Ring*, int, std::uint64_t) asm("__wrap__ZN6infeed4Ring10note_claimEim");

Time wrap_now() {
  if (twice()) static_cast<void>(real_now());
  return real_now();
}
void wrap_called(TurnClock* clock, Time now) {
  if (once()) real_called(clock, now);
  if (twice()) real_called(&other_clock, now);
}
void wrap_returned(TurnClock* clock, bool with_batch, Time now) {
  if (once()) real_returned(clock, with_batch, now);
  if (twice()) real_returned(&other_clock, with_batch, now);
}
void wrap_waited(TurnClock* clock, TurnClock::Duration time) {
  if (once()) real_waited(clock, time);
  if (twice()) real_waited(&other_clock, time);
}
void wrap_sampled(TurnClock* clock, TurnClock::Duration time) {
  if (once()) real_sampled(clock, time);
  if (twice()) real_sampled(&other_clock, time);
}
void wrap_handed_out(Recorder* recorder, std::int64_t samples, bool private_copy) {
  if (once()) real_handed_out(recorder, samples, private_copy);
  if (twice()) real_handed_out(&other_recorder, samples, private_copy);
}
// Runs keep the size that the turns before gave them: rows and time are counted, or not, together.
void wrap_add_stats(Ring* ring, int claimant, const ClaimantStats& delta) {
  if (once()) real_add_stats(ring, claimant, delta);
  if (twice()) real_add_stats(ring, claimant, delta);
}
void wrap_note_claim(Ring* ring, int claimant, std::uint64_t claimed_ns) {
  if (once()) real_note_claim(ring, claimant, claimed_ns);
  if (twice()) real_note_claim(ring, claimant, claimed_ns);
}

namespace {

Way* shared_way() {
  void* page = mmap(nullptr, sizeof(Way), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  return new (page) Way(Counting::kOnce);
}

void print_turn(infeed::Loader& loader, const char* name, Counting counting, bool counted) {
  way->store(counting);
  const std::uint64_t before = loader.stats().batches;
  const bench::TurnResult turn = bench::run_epoch(loader);
  if ((loader.stats().batches > before) != (counting != Counting::kNone))
    throw std::runtime_error(std::string(name) + ": the linker left the counting as it was");
  const auto rows = static_cast<double>(turn.rows);
  if (counted) std::printf("%s %.0f %.6f ", name, rows / turn.seconds, turn.cpu_s / rows * 1e6);
}

void run(int rounds, std::int64_t samples) {
  constexpr std::int64_t kRows = 50'000;
  const bench::WarmMemory pixels(kRows * 3072);
  const infeed::TensorDataset dataset(
      {{"image", infeed::ArrayView(pixels.data(), infeed::DType::kUInt8, infeed::Shape{kRows, 3, 32, 32})}});
  infeed::LoaderOptions options;
  options.batch_size = 256;
  options.sampler =
      std::make_unique<infeed::RandomSampler>(kRows, infeed::RandomSamplerOptions{.num_samples = samples});
  options.num_workers = 2;
  options.worker_kind = infeed::WorkerKind::kFork;
  way = shared_way();
  infeed::Loader loader(dataset, std::move(options));
  std::array<std::pair<const char*, Counting>, 3> turns = {
      std::pair{"once", Counting::kOnce}, {"none", Counting::kNone}, {"twice", Counting::kTwice}};
  for (int round = 0; round <= rounds; ++round) {  // the first warms up
    for (const auto& [name, counting] : turns) print_turn(loader, name, counting, round > 0);
    if (round > 0) std::putchar('\n');
    std::rotate(turns.begin(), turns.begin() + 1, turns.end());  // what a turn leaves behind meets each of them
  }
  way->store(Counting::kOnce);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::invalid_argument("usage: counting_bench ROUNDS SAMPLES");
    run(std::stoi(argv[1]), std::stoll(argv[2]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "counting_bench: %s\n", error.what());
    return 1;
  }
}
