// The questions about the decoder's own parts, which the library does not export: infeed-jpeg-bench (jpeg/) answers
// them as a program of its own, and its lines come here. No line where it is not built.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bed.h"
#include "command.h"

namespace bench {

#ifdef BENCH_JPEG
namespace {

std::optional<double> number(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

Line to_line(const nlohmann::json& row) {
  return {.id = row["id"],
          .what = row["what"],
          .unit = row["unit"],
          .rounds = row["rounds"],
          .better = row["better"] == "higher" ? Better::kHigher : Better::kLower,
          .must = number(row["must"]),
          .aim = number(row["aim"])};
}

}  // namespace

void jpeg_part(const char* id, const Bed& bed, Report& report) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("infeed-jpeg-bench-{}.json", getpid());
  static_cast<void>(output_of(fmt::format("'{}' --only {} --images '{}' --rounds {} --json '{}'{}", BENCH_JPEG, id,
                                          bed.images, bed.rounds, path.string(), bed.size("", " --quick"))));
  std::ifstream file(path);
  const nlohmann::json table = nlohmann::json::parse(file);
  std::filesystem::remove(path);
  for (const nlohmann::json& row : table["rows"]) report.add(to_line(row));
}
#else
void jpeg_part(const char*, const Bed&, Report&) {}
#endif

void jpeg_entropy(const Bed& bed, Report& report) { jpeg_part("J1", bed, report); }
void jpeg_evaluation(const Bed& bed, Report& report) { jpeg_part("J3", bed, report); }
void jpeg_lighter(const Bed& bed, Report& report) { jpeg_part("J5", bed, report); }
void jpeg_resize(const Bed& bed, Report& report) { jpeg_part("J6", bed, report); }
void jpeg_large(const Bed& bed, Report& report) { jpeg_part("J7", bed, report); }
void jpeg_progressive(const Bed& bed, Report& report) { jpeg_part("J8", bed, report); }

}  // namespace bench
