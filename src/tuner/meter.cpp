#include "infeed/tuner/meter.h"

#include <utility>

#include "loader/recorder.h"
#include "tuner/load_watch.h"

namespace infeed {

struct Meter::State {
  std::vector<std::int64_t> pids;
  LoadWatch watch{pids};
};

Meter::Meter(std::vector<std::int64_t> pids) : state_(std::make_unique<State>(State{.pids = std::move(pids)})) {}
Meter::~Meter() = default;

double Meter::others_share() const { return state_->watch.others_share(); }
double Meter::memory_bytes() const { return static_cast<double>(read_pss(state_->pids)); }

}  // namespace infeed
