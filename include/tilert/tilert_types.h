/* Types of the tilert C ABI; include tilert/tilert.h. Values and layouts only grow: enumerators are never reused, structs that
 * open with struct_size get new fields at their end, and a zero in a new field means what its absence meant. */
#ifndef TILERT_TILERT_TYPES_H_
#define TILERT_TILERT_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects. Each is reference counted inside: release order does not matter. */
typedef struct tilert_status tilert_status;   /* an error; NULL is success. Immutable; release it when done. */
typedef struct tilert_runtime tilert_runtime; /* a device context (or the CPU) with its compiler and kernel cache */
typedef struct tilert_bundle tilert_bundle;   /* an opened kernel bundle */
typedef struct tilert_kernel tilert_kernel;   /* a program of a bundle with its constants chosen */

typedef enum tilert_code {
  TILERT_OK = 0,
  TILERT_INVALID_ARGUMENT = 1,    /* the caller's mistake; the message says what, where and what to do */
  TILERT_NOT_FOUND = 2,           /* a file, library, entry or cached kernel */
  TILERT_FAILED_PRECONDITION = 3, /* wrong state: no current context, launch of an unprepared kernel during capture */
  TILERT_RESOURCE_EXHAUSTED = 4,  /* memory, shared memory, registers, disk */
  TILERT_UNAVAILABLE = 5,         /* the driver or the GPU does not answer */
  TILERT_UNIMPLEMENTED = 6,       /* not supported here: GPU, driver or bundle version */
  TILERT_DEADLINE_EXCEEDED = 7,
  TILERT_ABORTED = 8, /* an earlier kernel failed and the context is lost */
  TILERT_PERMISSION_DENIED = 9,
  TILERT_DATA_LOSS = 10,
  TILERT_INTERNAL = 11 /* a defect of tilert */
} tilert_code;

typedef enum tilert_dtype {
  TILERT_BOOL = 1,
  TILERT_INT8 = 2,
  TILERT_INT16 = 3,
  TILERT_INT32 = 4,
  TILERT_INT64 = 5,
  TILERT_UINT8 = 6,
  TILERT_UINT16 = 7,
  TILERT_UINT32 = 8,
  TILERT_UINT64 = 9,
  TILERT_FLOAT16 = 10,
  TILERT_BFLOAT16 = 11,
  TILERT_FLOAT32 = 12,
  TILERT_FLOAT64 = 13,
  TILERT_FLOAT8_E4M3 = 14,
  TILERT_FLOAT8_E5M2 = 15
} tilert_dtype;

typedef enum tilert_device { TILERT_DEVICE_CUDA = 0, TILERT_DEVICE_CPU = 1 } tilert_device;
typedef enum tilert_log_level { TILERT_LOG_INFO = 0, TILERT_LOG_WARNING = 1, TILERT_LOG_ERROR = 2 } tilert_log_level;
typedef enum tilert_arg_kind { TILERT_TENSOR = 0, TILERT_INTEGER = 1, TILERT_REAL = 2 } tilert_arg_kind;
typedef enum tilert_access { TILERT_IN = 1, TILERT_OUT = 2, TILERT_INOUT = 3 } tilert_access;

/* What the host does for tilert. All members may be NULL. They may be called from any thread, also after the call that received
 * them, until the last object made from the runtime is released; they must not throw, and not call back into tilert unless said.
 */
typedef struct tilert_hooks {
  void* user; /* passed to each */
  void (*log)(void* user, tilert_log_level level, const char* file, int line, const char* message);
  /* Runs task(argument) soon on another thread. Without it, parallel compiles and asynchronous preparation start short-lived
   * threads. */
  void (*submit)(void* user, void (*task)(void* argument), void* argument);
  /* Workspaces for launches that bring none: `bytes` of device memory, 256-byte aligned, usable in stream order; NULL when there
   * is none. Freed in stream order right after the launch was queued. Without them such a launch is an error. */
  void* (*allocate)(void* user, uint64_t bytes, void* stream);
  void (*release)(void* user, void* memory, uint64_t bytes, void* stream);
} tilert_hooks;

typedef struct tilert_runtime_options {
  size_t struct_size; /* sizeof(tilert_runtime_options) */
  tilert_device device;
  const char* family;           /* lowering: NULL or "auto", "ampere", "hopper" */
  const char* cache_directory;  /* absolute; NULL: $TILERT_CACHE_DIR, $XDG_CACHE_HOME/tilert or ~/.cache/tilert; "": no cache */
  uint64_t cache_bytes;         /* 0: 1 GiB */
  uint32_t compile_deadline_ms; /* 0: 10 s */
  int32_t cpu_threads;          /* CPU device; 0: one a processor */
  int32_t allow_prebuilt;       /* non-zero: run machine code that a bundle brings. Only for bundles that you trust. */
  tilert_hooks hooks;
} tilert_runtime_options;

/* Strings live as long as the runtime. */
typedef struct tilert_runtime_info {
  size_t struct_size;
  const char* device_name;
  const char* arch;           /* what kernels are compiled for, e.g. "sm_90a"; "" on the CPU */
  const char* family;         /* "ampere", "hopper"; "" on the CPU */
  int32_t compute_capability; /* major * 10 + minor */
  int32_t sm_count;
  int32_t driver_version; /* 1000 * major + 10 * minor */
  int32_t nvrtc_version;  /* the same; 0: no NVRTC, and nvrtc_error says why */
  const char* nvrtc_error;
  const char* cache_directory; /* "": none */
  const char* cache_error;     /* why the cache is not used; "" when it is */
} tilert_runtime_info;

typedef struct tilert_binding {
  const char* name;
  int64_t value;
} tilert_binding;

typedef struct tilert_kernel_spec {
  size_t struct_size;
  const char* entry;               /* name of the program in the bundle */
  const tilert_binding* constants; /* others take the bundle's choice for this GPU, or their default */
  size_t constant_count;
  const tilert_binding* fixed_dims; /* dims known now: compiled in. The rest come from the arguments of each launch. */
  size_t fixed_dim_count;
  int32_t general_only; /* non-zero: leave out the variant for aligned tensors: faster to compile, slower to run */
} tilert_kernel_spec;

/* One parameter of an entry. Strings live as long as the bundle. */
typedef struct tilert_param_info {
  size_t struct_size;
  const char* name;
  tilert_arg_kind kind;
  tilert_dtype dtype;
  tilert_access access; /* tensors */
  uint32_t rank;        /* tensors */
} tilert_param_info;

typedef enum tilert_readiness {
  TILERT_READY = 0,         /* loaded */
  TILERT_CACHED = 1,        /* compiled before: Prepare takes a few milliseconds */
  TILERT_NEEDS_COMPILE = 2, /* Prepare takes from tens to hundreds of milliseconds */
  TILERT_UNSUPPORTED = 3    /* cannot run here */
} tilert_readiness;

typedef enum tilert_prepare_mode {
  TILERT_PREPARE_BLOCKING = 0,
  TILERT_PREPARE_ASYNC = 1,      /* returns at once; the kernel becomes ready, or a blocking Prepare reports the error */
  TILERT_PREPARE_CACHED_ONLY = 2 /* NOT_FOUND rather than compile */
} tilert_prepare_mode;

/* One argument, in the order of the program's parameters. Zero-initialise it. */
typedef struct tilert_arg {
  tilert_arg_kind kind;
  tilert_dtype dtype;     /* of a tensor; of a scalar: 0 means the parameter's */
  void* data;             /* tensor: device memory (host memory on the CPU device); NULL only when it has no elements */
  const int64_t* shape;   /* elements, `rank` of them */
  const int64_t* strides; /* elements; NULL: contiguous, last dimension fastest */
  uint32_t rank;
  uint32_t reserved; /* 0 */
  int64_t integer;   /* TILERT_INTEGER */
  double real;       /* TILERT_REAL */
} tilert_arg;

typedef struct tilert_launch {
  size_t struct_size;
  void* stream; /* CUstream or cudaStream_t; NULL: the default stream */
  const tilert_arg* args;
  size_t arg_count;
  void* workspace; /* 256-byte aligned device memory, or NULL (see tilert_hooks.allocate) */
  uint64_t workspace_bytes;
} tilert_launch;

#ifdef __cplusplus
}
#endif

#endif /* TILERT_TILERT_TYPES_H_ */
