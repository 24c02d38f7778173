/* tilert: runs tile programs from kernel bundles. The whole API is one table of functions:
 *
 *   const tilert_api* api = tilert_get_api(TILERT_API_VERSION);
 *
 * Conventions. Functions return NULL or an error that the caller releases; on an error, outputs are cleared. Release functions
 * take NULL. Strings are UTF-8 and NUL-terminated. Nothing throws, exits, prints or creates a CUDA context. No function needs
 * tilert to be initialised, and the library may be unloaded when all objects are released.
 *
 * Contexts. A CUDA runtime belongs to the context that is current when it is created; prepare and launch must be called with that
 * context current, on any thread. Streams are the caller's.
 *
 * Threads. Statuses, bundles and runtimes are immutable and may be used from any thread. A kernel may be prepared and launched
 * from any number of threads at once. An object may be released while others still use objects made from it, but not while it is
 * itself in use.
 *
 * docs/embedding.md walks through an example; tilert.hpp wraps all this for C++17.
 */
#ifndef TILERT_TILERT_H_
#define TILERT_TILERT_H_

#include "tilert/tilert_types.h"

#if defined(_WIN32)
#define TILERT_EXPORT
#else
#define TILERT_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with each release that adds functions. A table of version n starts with the table of version n - 1. */
#define TILERT_API_VERSION 1

typedef struct tilert_api {
  size_t struct_size; /* of the library's table */
  uint32_t version;   /* of the library */
  uint32_t reserved;
  const char* library_version; /* "0.1.0" */

  /* ---- statuses; NULL is success */
  tilert_code (*status_code)(const tilert_status* status);
  const char* (*status_message)(const tilert_status* status); /* lives as long as the status; "" for NULL */
  void (*status_release)(tilert_status* status);

  /* ---- runtime. `options` may be NULL. Needs a current CUDA context unless the device is the CPU. */
  tilert_status* (*runtime_create)(const tilert_runtime_options* options, tilert_runtime** runtime);
  void (*runtime_release)(tilert_runtime* runtime);
  tilert_status* (*runtime_get_info)(tilert_runtime* runtime, tilert_runtime_info* info);

  /* ---- bundles. Needs no runtime: a bundle may serve several.
   * open_memory: `data` at any alignment, e.g. inside a mapped model file; copied if `copy` is set, else it must outlive bundle
   * and kernels. */
  tilert_status* (*bundle_open_memory)(const void* data, size_t size, int copy, tilert_bundle** bundle);
  tilert_status* (*bundle_open_file)(const char* path, tilert_bundle** bundle);
  void (*bundle_release)(tilert_bundle* bundle);
  size_t (*bundle_entry_count)(const tilert_bundle* bundle);
  const char* (*bundle_entry_name)(const tilert_bundle* bundle, size_t index); /* NULL when out of range */
  tilert_status* (*bundle_param_count)(const tilert_bundle* bundle, const char* entry, size_t* count);
  tilert_status* (*bundle_get_param)(const tilert_bundle* bundle, const char* entry, size_t index, tilert_param_info* info);

  /* ---- kernels. create verifies and specialises the program, and compiles nothing. */
  tilert_status* (*kernel_create)(tilert_runtime* runtime, tilert_bundle* bundle, const tilert_kernel_spec* spec,
                                  tilert_kernel** kernel);
  void (*kernel_release)(tilert_kernel* kernel);
  /* What prepare would have to do. If the kernel is unsupported, `reason` (capacity `reason_size`, may be NULL) says why. */
  tilert_status* (*kernel_query)(tilert_kernel* kernel, tilert_readiness* readiness, char* reason, size_t reason_size);
  /* Compiles or finds the code and loads it, so that launches do neither. Call it before a graph capture begins, and not during
   * one. */
  tilert_status* (*kernel_prepare)(tilert_kernel* kernel, tilert_prepare_mode mode);
  /* Bytes for launch.workspace: what the program needs, and what makes a launch of these arguments quick (tensors whose rows are
   * no multiple of 16 bytes apart are copied there first where that is expected to pay). With less than the program needs a
   * launch fails, with less than this it is slower. Data pointers are not looked at; depends on shapes and scalars, and on
   * whether the kernel is prepared. */
  tilert_status* (*kernel_workspace_size)(tilert_kernel* kernel, const tilert_arg* args, size_t arg_count, uint64_t* bytes);
  /* Checks the arguments and queues the work on the stream. Takes no lock, allocates and loads nothing once prepare has returned.
   * An unprepared kernel is prepared first, unless the stream is capturing: then FAILED_PRECONDITION, and the capture stays
   * valid. On the CPU device the work is done when launch returns. */
  tilert_status* (*kernel_launch)(tilert_kernel* kernel, const tilert_launch* launch);
} tilert_api;

/* The table, or NULL if this library is older than `version`. The table is static. */
TILERT_EXPORT const tilert_api* tilert_get_api(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif /* TILERT_TILERT_H_ */
