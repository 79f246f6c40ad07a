#pragma once
/* What a plugin's shared library and infeed say to each other. C, so that compiler and standard library may differ.
 *
 * A plugin exports one function, infeed_plugin_v1, that returns a table; the table and all it points to live as long as
 * the library is loaded. Every struct begins with its own size as its writer knew it: later minor versions append
 * fields, and a reader looks at a field only where the size covers it. Another major version is another entry symbol.
 *
 * No exception crosses. A function that can fail returns INFEED_OK or an INFEED_ERROR_*, and writes a text, cut to
 * error_bytes and zero-terminated, to `error`. Threads: read, prefetch and describe of one dataset are called from many
 * threads at once; create, destroy and worker inits are not.
 *
 * C++ authors: dataset_plugin.h makes the table from a Dataset. Devices: device_abi.h. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INFEED_PLUGIN_MAGIC UINT32_C(0x31504649) /* "IFP1" */
#define INFEED_ABI_MAJOR 1
#define INFEED_ABI_MINOR 2 /* 1: devices, 2: kernels of devices */
#define INFEED_MAX_DIMS 8

enum {
  INFEED_OK = 0,
  INFEED_ERROR_DATA = 1,   /* this sample cannot be read; others can */
  INFEED_ERROR_CONFIG = 2, /* parameters or shapes that cannot work */
  INFEED_ERROR_MEMORY = 3,
  INFEED_ERROR_DEVICE = 4,     /* this call failed; others may work */
  INFEED_ERROR_DEVICE_LOST = 5 /* every further call on the device fails, until the process ends */
};

/* One field of a row. dtype: the numbers of infeed/base/dtype.h. C-contiguous. */
typedef struct infeed_array {
  void* data; /* null for a variable field before resize */
  int32_t dtype;
  int32_t ndim;
  int64_t shape[INFEED_MAX_DIMS];
} infeed_array;

/* What reading a row took; add to it. Nanoseconds, bytes. */
typedef struct infeed_stage_times {
  uint64_t read_ns;
  uint64_t decode_ns;
  uint64_t transform_ns;
  uint64_t bytes_read;
} infeed_stage_times;

/* Where one sample is written. Lives for the length of the call of read. */
typedef struct infeed_row {
  uint64_t struct_size;
  int64_t index; /* of the sample, in [0, size) */
  uint64_t seed; /* seed, epoch and index key the sample's random numbers */
  uint64_t epoch;
  uint64_t num_fields;
  infeed_array* fields; /* in the schema's order */
  infeed_stage_times* times;
  void* host; /* infeed's own */
  /* Gives a variable field its size; fields[field] is then its memory. */
  int (*resize)(struct infeed_row* row, uint64_t field, const int64_t* shape, int32_t ndim, char* error,
                uint64_t error_bytes);
} infeed_row;

typedef struct infeed_dataset_api {
  uint64_t struct_size;
  const char* name; /* what DatasetSpec::name says */
  /* Makes a dataset from its parameters, a JSON object. */
  int (*create)(const char* params_json, void** dataset, char* error, uint64_t error_bytes);
  void (*destroy)(void* dataset);
  int64_t (*size)(const void* dataset);
  /* {"fields": [{"name": "x", "dtype": "float32", "shape": [3, -1]}, ...]}; lives as long as the dataset. */
  const char* (*schema_json)(const void* dataset);
  int (*read)(const void* dataset, infeed_row* row, char* error, uint64_t error_bytes);
  void (*prefetch)(const void* dataset, int64_t index); /* may be null */
  /* What errors call the sample: written to text, zero-terminated. May be null. */
  void (*describe)(const void* dataset, int64_t index, char* text, uint64_t text_bytes);
} infeed_dataset_api;

/* Runs in each worker before its first sample, where LoaderOptions::worker_init_name asks for it. */
typedef struct infeed_worker_init_api {
  uint64_t struct_size;
  const char* name;
  int (*run)(int32_t worker_id, int32_t num_workers, uint64_t seed, char* error, uint64_t error_bytes);
} infeed_worker_init_api;

struct infeed_device_api; /* infeed/plugin/device_abi.h */

typedef struct infeed_plugin {
  uint64_t struct_size;
  uint32_t magic;     /* INFEED_PLUGIN_MAGIC */
  uint16_t abi_major; /* INFEED_ABI_MAJOR the plugin was built with */
  uint16_t abi_minor;
  const char* name;
  const char* version;
  uint64_t num_datasets;
  const infeed_dataset_api* const* datasets;
  uint64_t num_worker_inits;
  const infeed_worker_init_api* const* worker_inits;
  /* since 1.1 */
  uint64_t num_devices;
  const struct infeed_device_api* const* devices;
} infeed_plugin;

/* The entry symbol, of this type. */
typedef const infeed_plugin* (*infeed_plugin_entry)(void);
#define INFEED_PLUGIN_ENTRY "infeed_plugin_v1"

#ifdef __cplusplus
}
#endif
