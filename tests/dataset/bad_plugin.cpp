// A plugin whose table is refused, for the reason that the build defines.
#include "infeed/base/export.h"
#include "infeed/plugin/abi.h"

#ifndef PLUGIN_ENTRY
#define PLUGIN_ENTRY infeed_plugin_v1
#endif
#ifndef PLUGIN_MAGIC
#define PLUGIN_MAGIC INFEED_PLUGIN_MAGIC
#endif
#ifndef PLUGIN_MAJOR
#define PLUGIN_MAJOR INFEED_ABI_MAJOR
#endif

extern "C" INFEED_API const infeed_plugin* PLUGIN_ENTRY() {
  static const infeed_plugin table = {
      sizeof(infeed_plugin), PLUGIN_MAGIC, PLUGIN_MAJOR, 7, "bad", "1", 0, nullptr, 0, nullptr, 0, nullptr};
  return &table;
}
