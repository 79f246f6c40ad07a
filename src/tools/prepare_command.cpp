#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/prepare.h"

namespace infeed::tools {
namespace {

constexpr int kNothingDone = 1, kSomeFailed = 2;  // exit status

/// On a terminal only, and some times a second.
class ProgressLine {
 public:
  explicit ProgressLine(std::string path) : path_(std::move(path)), shown_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (shown_) show_progress("");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::int64_t done, std::int64_t all) {
    const auto now = Clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double rate = static_cast<double>(done) / std::max(seconds, 1e-3);
    show_progress(fmt::format("{}: {} of {}, {:.0f}/s, {:.0f} s left ", path_, done, all, rate,
                              static_cast<double>(all - done) / rate));
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string path_;
  bool shown_;
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

std::string in_bytes(std::uint64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// A name as one line of a terminal.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; }, '?');
  return text;
}

void print_text(const PrepareOptions& options, const PrepareSummary& s) {
  for (const auto& failure : s.failed) fmt::print(stderr, "{}\n", printable(failure.file + ": " + failure.error));
  fmt::print("{}: {} pictures, {} done in {:.1f} s, {} left as they are, {} failed{}\n", options.path, s.pictures,
             s.done, s.seconds, s.unchanged, s.failed.size(), s.interrupted ? "; interrupted: run again to go on" : "");
  if (!options.out.empty()) {
    fmt::print("  {} rewritten; {} became {}\n", s.rewritten, in_bytes(s.bytes_before), in_bytes(s.bytes_after));
  } else {
    fmt::print("  index {}: {}; {} of the pictures have no entry points\n", s.index, in_bytes(s.bytes_after), s.none);
  }
  if (s.decode_us_before > 0)
    fmt::print("  a random crop's decode: {:.0f} us before, {:.0f} us after\n", s.decode_us_before, s.decode_us_after);
  if (s.rewritten > 0 && options.shorter_side > 0) fmt::print("  shrunk pictures lost detail\n");
}

nlohmann::json as_json(const PrepareOptions& options, const PrepareSummary& s) {
  nlohmann::json failed = nlohmann::json::array();
  for (const auto& failure : s.failed) failed.push_back({{"file", failure.file}, {"error", failure.error}});
  return {{"path", options.path},
          {"pictures", s.pictures},
          {"done", s.done},
          {"unchanged", s.unchanged},
          {"without_entry_points", s.none},
          {"rewritten", s.rewritten},
          {"failed", failed},
          {"bytes_before", s.bytes_before},
          {"bytes_after", s.bytes_after},
          {"seconds", s.seconds},
          {"decode_us_before", s.decode_us_before},
          {"decode_us_after", s.decode_us_after},
          {"index", s.index},
          {"out", options.out},
          {"interrupted", s.interrupted}};
}

void add_options(CLI::App& app, PrepareOptions& options, std::vector<std::string>& paths, bool& json) {
  app.add_option("path", paths, "Folders as given to ImageFolder, or plain tar files (NAME.tar gets NAME.idx)")
      ->required();
  app.add_option("--index", options.index, "File for a folder's index, or auto: in the user's cache folder")
      ->capture_default_str();
  app.add_option("--out", options.out, "Folder for rewritten pictures; the originals stay untouched");
  app.add_flag("--transcode", options.transcode, "Progressive and arithmetic JPEG to baseline, without loss");
  app.add_option("--restart-rows", options.restart_megapixels,
                 "Restart markers at each row, without loss, from MEGAPIXELS on")
      ->expected(0, 1)
      ->default_str("8");
  app.add_option("--shorter-side", options.shorter_side, "Shrink larger JPEG to this shorter side: loses detail");
  app.add_option("--quality", options.quality, "Of shrunk pictures")->capture_default_str();
  app.add_flag("--copy-rest", options.copy_rest, "Copy all other pictures to --out as well");
  app.add_flag("--verify", options.verify, "Prove that coefficients stayed, and that an index is right");
  app.add_option("--threads", options.threads, "0: one for each usable CPU")->capture_default_str();
  app.add_option("--extensions", options.extensions, "Of names of pictures, in any case")->capture_default_str();
  app.add_flag("--json", json, "Print the summary as JSON");
}

PrepareSummary prepare_shown(const PrepareOptions& options) {
  ProgressLine line(printable(options.path));
  return prepare(options, interrupted(), [&](std::int64_t done, std::int64_t count) { line.show(done, count); });
}

/// Each path for itself: a shard that is cut keeps none from the others.
int run(PrepareOptions options, const std::vector<std::string>& paths, bool json) {
  if (paths.size() > 1 && (options.index != "auto" || !options.out.empty()))
    throw infeed::ConfigError("--index and --out are for one folder: give them one at a time.");
  nlohmann::json all = nlohmann::json::array();
  std::size_t num_failed = 0;
  bool pictures_failed = false;
  for (const std::string& path : paths) {
    if (interrupted()) break;
    options.path = path;
    try {
      const PrepareSummary summary = prepare_shown(options);
      pictures_failed = pictures_failed || !summary.failed.empty();
      json ? all.push_back(as_json(options, summary)) : print_text(options, summary);
    } catch (const std::exception& error) {
      ++num_failed;
      fmt::print(stderr, "infeed prepare: {}\n", printable(error.what()));
      all.push_back({{"path", path}, {"error", error.what()}});
    }
  }
  if (json) fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  if (std::fflush(stdout) != 0)
    throw infeed::DataError(fmt::format("what was done could not be written out: {}.", std::strerror(errno)));
  if (interrupted()) return kInterrupted;
  return num_failed == paths.size() ? kNothingDone : num_failed > 0 || pictures_failed ? kSomeFailed : 0;
}

}  // namespace

Command add_prepare(CLI::App& program) {
  struct Given {
    PrepareOptions options;
    std::vector<std::string> paths;
    bool json = false;
  };
  CLI::App& app = *program.add_subcommand("prepare", "Make pictures decode faster: an index, or other files");
  app.footer(
      "Example: infeed prepare train\n"
      "Exit status: 0, or 1 where the whole failed, 2 where some of it did, 130 after Ctrl-C.");
  const auto given = std::make_shared<Given>();
  add_options(app, given->options, given->paths, given->json);
  return {&app, [given] {
            infeed::set_log_level(infeed::LogLevel::kOff);  // what matters is said by errors
            catch_interrupts();
            return run(given->options, given->paths, given->json);
          }};
}

}  // namespace infeed::tools
