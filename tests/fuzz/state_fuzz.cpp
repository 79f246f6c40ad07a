// Any bytes as a saved state: the parser and all that reads states must take it up or throw one of our errors, and what
// parses must survive being written and parsed again.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "infeed/base/error.h"
#include "infeed/base/state.h"
#include "infeed/batch/schema.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "infeed/sampler/distributed.h"
#include "infeed/sampler/feistel.h"
#include "infeed/sampler/random.h"
#include "infeed/sampler/sequential.h"
#include "infeed/transform/compose.h"
#include "worker/boot.h"

namespace {

using namespace infeed;

constexpr std::int64_t kRows = 24;

template <typename Read>
void allow_errors(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

// Each reader asks for its own keys and types; here every key is asked for in every type.
void read_every_key(const State& state) {
  for (const std::string& key : state.keys()) {
    allow_errors([&] { static_cast<void>(state.get_int(key)); });
    allow_errors([&] { static_cast<void>(state.get_uint(key)); });
    allow_errors([&] { static_cast<void>(state.get_double(key)); });
    allow_errors([&] { static_cast<void>(state.get_string(key)); });
    allow_errors([&] { static_cast<void>(state.get_ints(key)); });
    allow_errors([&] { static_cast<void>(state.get_states(key)); });
    allow_errors([&] { read_every_key(state.get_state(key)); });
  }
}

// A sampler that has taken up a state goes on inside the data set and ends.
template <typename AnySampler>
void resume_sampler(const State& state) {
  AnySampler sampler(kRows);
  sampler.load(state);
  std::array<std::int64_t, 7> indices{};
  for (std::int64_t left = kRows; left >= 0; --left) {
    const std::size_t count = sampler.next(indices);
    for (std::size_t i = 0; i < count; ++i) {
      if (indices[i] < 0 || indices[i] >= kRows) std::abort();
    }
    if (count == 0) return;
  }
  std::abort();
}

void resume_loader(const State& state) {
  static const SyntheticDataset dataset(kRows, {{"x", DType::kUInt8, {4}}});
  static Loader loader(dataset, {.batch_size = 4, .shuffle = true});
  loader.load_state_dict(state);
  static_cast<void>(loader.next());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  State state;
  try {
    state = State::from_json(text);
  } catch (const StateError&) {
    return 0;
  }
  if (!(State::from_json(state.to_json()) == state)) std::abort();
  read_every_key(state);
  allow_errors([&] { static_cast<void>(Schema::from_state(state)); });
  allow_errors([&] { static_cast<void>(Compose::from_state(state)); });
  allow_errors([&] { static_cast<void>(Boot::from_json(std::string(text))); });
  allow_errors([&] { resume_sampler<SequentialSampler>(state); });
  allow_errors([&] { resume_sampler<RandomSampler>(state); });
  allow_errors([&] { resume_sampler<DistributedSampler>(state); });
  allow_errors([&] { resume_sampler<FeistelSampler>(state); });
  allow_errors([&] { resume_loader(state); });
  return 0;
}
