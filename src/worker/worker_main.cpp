// infeed-worker: one worker process, started by libinfeed.

#include "worker/spawned.h"

int main(int argc, char** argv) { return infeed::spawned_worker_main(argc, argv, infeed::Registry::builtin()); }
