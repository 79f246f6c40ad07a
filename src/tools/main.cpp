// The command `infeed`.

#include <algorithm>
#include <iostream>

#include "tools/command.h"

int main(int argc, char** argv) {
  namespace tools = infeed::tools;
  tools::keep_standard_streams();
  CLI::App app{"infeed: the engine that feeds accelerators", "infeed"};
  app.set_version_flag("--version", INFEED_VERSION);
  app.require_subcommand(1);
  const tools::Command commands[] = {tools::add_prepare(app), tools::add_doctor(app), tools::add_sweep(app),
                                     tools::add_tune(app), tools::add_bench(app)};
  const auto given = [&]() -> const tools::Command* {
    const auto parsed = app.get_subcommands();
    const auto* found = std::find_if(std::begin(commands), std::end(commands),
                                     [&](const auto& command) { return !parsed.empty() && command.app == parsed[0]; });
    return found == std::end(commands) ? nullptr : found;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (given() == nullptr && !app.remaining().empty() && app.remaining()[0][0] != '-') {
      tools::say(tools::unknown_command(app, app.remaining()[0]));
      return 1;
    }
    const int failed = given() == nullptr ? 1 : given()->failed;
    return app.exit(error) == 0 && std::cout.flush() ? 0 : failed;
  }
  return tools::run_command(*given(), "infeed " + given()->app->get_name());
}
