#include "infeed/collate/collate.h"

#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/collate/pad.h"
#include "infeed/collate/ragged.h"
#include "infeed/collate/stack.h"

namespace infeed {

CollateOutput::~CollateOutput() = default;
Collate::~Collate() = default;

std::string Collate::name() const { return {}; }

State Collate::params() const { return {}; }

std::unique_ptr<Collate> make_collate(const std::string& name, const State& params) {
  if (name == "stack") return std::make_unique<StackCollate>();
  if (name == "pad") return std::make_unique<PadCollate>(PadCollate::options_from(params));
  if (name == "ragged") return std::make_unique<RaggedCollate>();
  throw ConfigError(
      fmt::format("there is no collate '{}' that a spawned worker could make; known are stack, pad and ragged. Use "
                  "fork or thread workers for a collate of your own.",
                  name));
}

}  // namespace infeed
