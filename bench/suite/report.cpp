#include "report.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace bench {
namespace {

std::string figure(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  return value >= 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.3g}", value);
}

std::string bound(const std::optional<double>& value) { return value ? figure(*value) : "-"; }

bool reaches(const Line& line, double bar) {
  const double value = median(line.rounds);
  return line.better == Better::kHigher ? value >= bar : value <= bar;
}

const char* verdict(const Line& line) {
  if (!line.must) return "";
  if (!reaches(line, *line.must)) return "MISSED";
  return line.aim && reaches(line, *line.aim) ? "aim" : "ok";
}

nlohmann::json optional_number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json to_json(const Line& line) {
  return {{"id", line.id},
          {"what", line.what},
          {"value", median(line.rounds)},
          {"unit", line.unit},
          {"must", optional_number(line.must)},
          {"aim", optional_number(line.aim)},
          {"better", line.better == Better::kHigher ? "higher" : "lower"},
          {"rounds", line.rounds},
          {"foreign", line.foreign}};
}

}  // namespace

void Report::mark_foreign(std::size_t first, double share) {
  for (std::size_t i = first; i < lines_.size(); ++i) lines_[i].foreign = share;
}

void Report::print(std::size_t first, bool heading) const {
  if (heading)
    fmt::print("{:<4} {:<74} {:>7} {:<9} {:>17} {:>5} {:>5}  {:<7} {}\n", "id", "what", "value", "unit", "spread",
               "must", "aim", "", "others");
  for (std::size_t i = first; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    const auto [least, most] = std::minmax_element(line.rounds.begin(), line.rounds.end());
    const std::string spread = fmt::format("[{}..{}]", figure(*least), figure(*most));
    fmt::print("{:<4} {:<74} {:>7} {:<9} {:>17} {:>5} {:>5}  {:<7} {:.0f} %{}\n", line.id, line.what,
               figure(median(line.rounds)), line.unit, spread, bound(line.must), bound(line.aim), verdict(line),
               line.foreign * 100, line.foreign > kLoaded ? " *" : "");
  }
  std::fflush(stdout);
}

void Report::write_json(const std::string& path, const Machine& machine) const {
  nlohmann::json rows = nlohmann::json::array();
  for (const Line& line : lines_) rows.push_back(to_json(line));
  const nlohmann::json all = {{"machine",
                               {{"cpu", machine.cpu},
                                {"cores", machine.cores},
                                {"memory_gib", machine.memory_gib},
                                {"kernel", machine.kernel},
                                {"compiler", machine.compiler},
                                {"date", machine.date}}},
                              {"rows", rows}};
  std::ofstream file(path);
  file << all.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error(fmt::format("{} cannot be written", path));
}

}  // namespace bench
