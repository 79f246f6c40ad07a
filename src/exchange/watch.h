#pragma once
/// Ends a worker process whose consumer is gone.

#include <sys/types.h>

namespace infeed {

/// Starts the thread that ends this process (code 91) once `consumer` is dead; at once if it is dead already. One
/// consumer a process: later calls do nothing. Throws MemoryError where descriptor or thread are not to be had.
void watch_consumer(pid_t consumer);

}  // namespace infeed
