// A plugin whose devices cannot be used: their table has gaps.
#include "infeed/base/export.h"
#include "infeed/plugin/abi.h"
#include "infeed/plugin/device_abi.h"

#ifdef PLUGIN_NEEDS
extern "C" int PLUGIN_NEEDS();
#endif

extern "C" INFEED_API const infeed_plugin* infeed_plugin_v1() {
#ifdef PLUGIN_NEEDS
  PLUGIN_NEEDS();
#endif
  static const infeed_device_api devices = {.struct_size = 32, .name = "gaps", .device_type = 12, .reserved = 0};
  static const infeed_device_api* const kinds[] = {&devices};
  static const infeed_plugin table = {.struct_size = sizeof(infeed_plugin),
                                      .magic = INFEED_PLUGIN_MAGIC,
                                      .abi_major = INFEED_ABI_MAJOR,
                                      .abi_minor = INFEED_ABI_MINOR,
                                      .name = "gaps",
                                      .version = "1",
                                      .num_devices = 1,
                                      .devices = kinds};
  return &table;
}
