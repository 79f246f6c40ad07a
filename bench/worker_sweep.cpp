// infeed-sweep: `infeed sweep` as a program of its own. How many workers, and of which kind?
// Read: the recommended row and its reason; rows whose spread is larger than their difference are equal.

#include "tools/command.h"

int main(int argc, char** argv) {
  infeed::tools::keep_standard_streams();
  CLI::App app{"Measure kinds and numbers of workers, and recommend one"};
  const infeed::tools::Command command = infeed::tools::configure_sweep(app);
  CLI11_PARSE(app, argc, argv);
  return infeed::tools::run_command(command, "infeed-sweep");
}
