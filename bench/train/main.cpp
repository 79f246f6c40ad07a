// infeed-train-bench: the training library beside LibTorch, in one process, in turns, so that both meet the same machine.
//
//   step MODEL TURNS STEPS    ms a step by infeed, LibTorch (images: also channels last) and the bare operations
//   small TURNS               ns an operation of 16 floats with its node
//   memory MODEL WHO          MiB that one contestant's training adds to the process, by its peak
//
// Read: the lines "KEY VALUE"; ratios are ours by theirs, the median over the turns. A fast wrong step is no result: the
// losses of all contestants must agree.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>

#include "works.h"

namespace bench {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Contestant {
  const char* name;
  std::function<void()> turn;
  double pieces;  ///< a turn does
  std::vector<double> ms{};
};

void take_turns(std::vector<Contestant>& contestants, int turns) {
  for (int turn = -1; turn < turns; ++turn) {  // the first warms up
    for (Contestant& contestant : contestants) {
      const double before = now_ms();
      contestant.turn();
      if (turn >= 0) contestant.ms.push_back((now_ms() - before) / contestant.pieces);
    }
  }
}

// Of one turn after the other: what disturbs the machine for long disturbs both.
double ratio(const Contestant& a, const Contestant& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.ms.size(); ++i) ratios.push_back(a.ms[i] / b.ms[i]);
  return median(ratios);
}

void measure_steps(Model model, int turns, int steps) {
  std::vector<double> losses(4);
  std::vector<Contestant> contestants;
  const auto enter = [&](const char* name, Step step) {
    contestants.push_back({name,
                           [step = std::move(step), steps, loss = &losses[contestants.size()]] {
                             for (int i = 0; i < steps; ++i) *loss = step();
                           },
                           static_cast<double>(steps)});
  };
  const bool images = model == Model::kResnet || model == Model::kCnn;
  enter("infeed", infeed_step(model));
  enter("torch", torch_step(model, false));
  if (images) enter("channels_last", torch_step(model, true));
  if (model != Model::kCnn) enter("bare", bare_step(model));
  take_turns(contestants, turns);
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& c = contestants[i];
    std::printf("%s_ms %.4f\n", c.name, median(c.ms));
    if (i == 0) continue;
    std::printf("to_%s %.4f\n", c.name, ratio(contestants[0], c));
    const bool trains = std::string(c.name) != "bare";
    if (trains && std::fabs(losses[i] - losses[0]) > 0.05 * std::fabs(losses[0]) + 0.01)
      throw std::runtime_error("the losses are " + std::to_string(losses[0]) + " and " + std::to_string(losses[i]) +
                               " (" + c.name + "): not the same training");
  }
  std::printf("loss %.5f of LibTorch %.5f\n", losses[0], losses[1]);
}

void measure_small(int turns) {
  constexpr int kTimes = 5000, kChains = 500;
  std::vector<Contestant> all;
  const auto enter = [&](const char* name, Repeat repeat, int n, double pieces) {
    all.push_back({name, [repeat = std::move(repeat), n] { repeat(n); }, pieces});
  };
  enter("tensor", infeed_multiply(Operand::kTensor), kTimes, kTimes);
  enter("torch_tensor", torch_multiply(Operand::kTensor), kTimes, kTimes);
  enter("number", infeed_multiply(Operand::kNumber), kTimes, kTimes);
  enter("torch_number", torch_multiply(Operand::kNumber), kTimes, kTimes);
  enter("chain", infeed_chain(), kChains, kChains);
  enter("torch_chain", torch_chain(), kChains, kChains);
  take_turns(all, turns);
  for (std::size_t i = 0; i < all.size(); i += 2)
    std::printf("%s_ns %.1f\n%s_ns %.1f\n%s_ratio %.4f\n", all[i].name, median(all[i].ms) * 1e6, all[i + 1].name,
                median(all[i + 1].ms) * 1e6, all[i].name, ratio(all[i], all[i + 1]));
}

// The line of /proc/self/status, in MiB.
double status_mib(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size() + 1, nullptr) / 1024;
  }
  throw std::runtime_error("no " + key + " in /proc/self/status");
}

// Libraries are loaded by then for both: only what the training itself adds counts.
void measure_memory(Model model, const std::string& who) {
  (void)data_of(model);
  const double before = status_mib("VmRSS");
  const Step step = who == "infeed" ? infeed_step(model) : torch_step(model, who == "channels_last");
  for (int i = 0; i < 4; ++i) (void)step();
  std::printf("peak_mib %.1f\n", status_mib("VmHWM") - before);
}

}  // namespace

Model model_named(const std::string& name) {
  if (name == "mlp") return Model::kMlp;
  if (name == "transformer") return Model::kTransformer;
  if (name == "resnet") return Model::kResnet;
  if (name == "cnn") return Model::kCnn;
  throw std::runtime_error("no model " + name + ": mlp, transformer, resnet or cnn");
}

const Data& data_of(Model model) {
  static Data data;
  if (!data.labels.empty()) return data;
  std::mt19937_64 random(1);
  const auto fill = [&](auto& values, std::int64_t count, auto distribution) {
    values.resize(static_cast<std::size_t>(count));
    for (auto& value : values) value = distribution(random);
  };
  const bool text = model == Model::kTransformer;
  const std::int64_t rows = text ? kSequences * kTokens : model == Model::kMlp ? kRows : kImages;
  fill(data.labels, rows, std::uniform_int_distribution<std::int64_t>(0, (text ? kKinds : kClasses) - 1));
  if (text)
    fill(data.tokens, rows, std::uniform_int_distribution<std::int64_t>(0, kKinds - 1));
  else
    fill(data.inputs, rows * (model == Model::kMlp ? kPixels : 3 * kSide * kSide), std::normal_distribution<float>());
  return data;
}

}  // namespace bench

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto word = [&](std::size_t i, const char* otherwise) { return i < words.size() ? words[i] : otherwise; };
  const std::string what = word(0, "step");
  bench::set_threads(2);
  bench::set_torch_threads(2);
  if (what == "step")
    bench::measure_steps(bench::model_named(word(1, "mlp")), std::stoi(word(2, "5")), std::stoi(word(3, "3")));
  else if (what == "small")
    bench::measure_small(std::stoi(word(1, "5")));
  else if (what == "memory")
    bench::measure_memory(bench::model_named(word(1, "mlp")), word(2, "infeed"));
  else
    throw std::runtime_error("step, small or memory, not " + what);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "infeed-train-bench: %s\n", error.what());
  return 1;
}
