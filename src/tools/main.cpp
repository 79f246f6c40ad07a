// The command `infeed`.

#include <fmt/format.h>

#include <exception>

#include "tools/command.h"

int main(int argc, char** argv) {
  constexpr int kFailed = 1;
  CLI::App app{"infeed: the engine that feeds accelerators"};
  app.set_version_flag("--version", INFEED_VERSION);
  app.require_subcommand(1);
  const infeed::tools::Command commands[] = {infeed::tools::add_prepare(app), infeed::tools::add_doctor(app),
                                             infeed::tools::add_sweep(app), infeed::tools::add_tune(app),
                                             infeed::tools::add_bench(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kFailed;
  }
  for (const infeed::tools::Command& command : commands) {
    if (!command.app->parsed()) continue;
    try {
      return command.run();
    } catch (const std::exception& error) {
      fmt::print(stderr, "infeed {}: {}\n", command.app->get_name(), error.what());
      return kFailed;
    }
  }
  return kFailed;
}
