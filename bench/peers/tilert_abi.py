"""libtilert's C ABI (include/tilert/tilert.h) by ctypes, for scripts: kernels of bundles, launched on memory that something else owns.

    library = Library("build/dev/bin/libtilert.so")
    runtime = library.runtime(device="cpu")
    kernel = runtime.kernel(library.bundle("build/dev/std.tilert"), "add_f32")
    kernel.bind([Tensor(address_of_a, "float32", (8,)), …])()

Nothing but the standard library is needed. Errors of the library are raised as Error.
"""
import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import NamedTuple, Optional, Sequence

API_VERSION = 1
DTYPES = {name: code for code, name in enumerate(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 float8_e4m3 float8_e5m2".split(), 1)}
DEVICES = {"cuda": 0, "cpu": 1}


class Error(Exception):
    pass


class Tensor(NamedTuple):
    """Memory that the caller keeps alive. Strides are in elements; None: contiguous."""
    address: int
    dtype: str
    shape: Sequence[int]
    strides: Optional[Sequence[int]] = None


class _Hooks(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("user", "log", "submit", "allocate", "release")]


class _RuntimeOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("device", c_int), ("family", c_char_p), ("cache_directory", c_char_p), ("cache_bytes", c_uint64),
                ("compile_deadline_ms", c_uint32), ("cpu_threads", c_int32), ("allow_prebuilt", c_int32), ("hooks", _Hooks)]


class _RuntimeInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("device_name", c_char_p), ("arch", c_char_p), ("family", c_char_p), ("compute_capability", c_int32),
                ("sm_count", c_int32), ("driver_version", c_int32), ("nvrtc_version", c_int32), ("nvrtc_error", c_char_p),
                ("cache_directory", c_char_p), ("cache_error", c_char_p)]


class _Binding(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_int64)]


class _KernelSpec(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("entry", c_char_p), ("constants", POINTER(_Binding)), ("constant_count", c_size_t),
                ("fixed_dims", POINTER(_Binding)), ("fixed_dim_count", c_size_t), ("general_only", c_int32)]


class _Arg(ctypes.Structure):
    _fields_ = [("kind", c_int), ("dtype", c_int), ("data", c_void_p), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("rank", c_uint32), ("reserved", c_uint32), ("integer", c_int64), ("real", c_double)]


class _Launch(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("stream", c_void_p), ("args", POINTER(_Arg)), ("arg_count", c_size_t), ("workspace", c_void_p),
                ("workspace_bytes", c_uint64)]


# The table's functions, in order: result and arguments.
_P = c_void_p
_FUNCTIONS = [
    ("status_code", c_int, [_P]), ("status_message", c_char_p, [_P]), ("status_release", None, [_P]),
    ("runtime_create", _P, [POINTER(_RuntimeOptions), POINTER(_P)]), ("runtime_release", None, [_P]),
    ("runtime_get_info", _P, [_P, POINTER(_RuntimeInfo)]),
    ("bundle_open_memory", _P, [c_char_p, c_size_t, c_int, POINTER(_P)]), ("bundle_open_file", _P, [c_char_p, POINTER(_P)]),
    ("bundle_release", None, [_P]), ("bundle_entry_count", c_size_t, [_P]), ("bundle_entry_name", c_char_p, [_P, c_size_t]),
    ("bundle_param_count", _P, [_P, c_char_p, POINTER(c_size_t)]), ("bundle_get_param", _P, [_P, c_char_p, c_size_t, _P]),
    ("kernel_create", _P, [_P, _P, POINTER(_KernelSpec), POINTER(_P)]), ("kernel_release", None, [_P]),
    ("kernel_query", _P, [_P, POINTER(c_int), c_char_p, c_size_t]), ("kernel_prepare", _P, [_P, c_int]),
    ("kernel_workspace_size", _P, [_P, POINTER(_Arg), c_size_t, POINTER(c_uint64)]), ("kernel_launch", _P, [_P, POINTER(_Launch)]),
]


class _Api(ctypes.Structure):
    _fields_ = ([("struct_size", c_size_t), ("version", c_uint32), ("reserved", c_uint32), ("library_version", c_char_p)] +
                [(name, ctypes.CFUNCTYPE(result, *arguments)) for name, result, arguments in _FUNCTIONS])


class Library:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        get = self._library.tilert_get_api
        get.restype, get.argtypes = POINTER(_Api), [c_uint32]
        table = get(API_VERSION)
        if not table:
            raise Error(f"{path} is older than version {API_VERSION} of the API")
        self.api = table.contents

    def check(self, status):
        """Raises what a function returned, if that is an error."""
        if not status:
            return
        message = self.api.status_message(status).decode(errors="replace")
        self.api.status_release(status)
        raise Error(message)

    def bundle(self, path):
        handle = c_void_p()
        self.check(self.api.bundle_open_file(str(path).encode(), byref(handle)))
        return Bundle(self, handle)

    def runtime(self, device="cuda", family=None, cache_directory=None, compile_deadline_ms=0):
        options = _RuntimeOptions(struct_size=ctypes.sizeof(_RuntimeOptions), device=DEVICES[device], compile_deadline_ms=compile_deadline_ms)
        options.family = family.encode() if family else None
        options.cache_directory = cache_directory.encode() if cache_directory is not None else None
        handle = c_void_p()
        self.check(self.api.runtime_create(byref(options), byref(handle)))
        return Runtime(self, handle)


class Bundle:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def __del__(self):
        self.library.api.bundle_release(self.handle)

    def entries(self):
        api = self.library.api
        return [api.bundle_entry_name(self.handle, i).decode() for i in range(api.bundle_entry_count(self.handle))]


class Runtime:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def __del__(self):
        self.library.api.runtime_release(self.handle)

    def info(self):
        info = _RuntimeInfo(struct_size=ctypes.sizeof(_RuntimeInfo))
        self.library.check(self.library.api.runtime_get_info(self.handle, byref(info)))
        values = {name: getattr(info, name) for name, _ in _RuntimeInfo._fields_[1:]}
        return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}

    def kernel(self, bundle, entry, constants=None, dims=None, wait=True):
        """Compiled, or taken from the cache; without `wait` in the background: prepare() waits for it."""
        def bindings(values):
            return (_Binding * len(values))(*[_Binding(name.encode(), value) for name, value in values.items()])
        constants, dims = bindings(constants or {}), bindings(dims or {})
        spec = _KernelSpec(ctypes.sizeof(_KernelSpec), entry.encode(), constants, len(constants), dims, len(dims), 0)
        handle = c_void_p()
        self.library.check(self.library.api.kernel_create(self.handle, bundle.handle, byref(spec), byref(handle)))
        kernel = Kernel(self.library, handle)
        self.library.check(self.library.api.kernel_prepare(handle, 0 if wait else 1))
        return kernel


class Kernel:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def __del__(self):
        self.library.api.kernel_release(self.handle)

    def prepare(self):
        self.library.check(self.library.api.kernel_prepare(self.handle, 0))
        return self

    def bind(self, args, stream=0, allocate=None):
        """A function that launches with these arguments (Tensors and numbers) and does nothing else. `allocate(bytes)` gives memory for a
        workspace as (address, what keeps it alive)."""
        packed, alive = (_Arg * len(args))(), []
        for to, arg in zip(packed, args):
            if isinstance(arg, Tensor):
                to.kind, to.dtype, to.data, to.rank = 0, DTYPES[arg.dtype], arg.address or None, len(arg.shape)
                to.shape = (c_int64 * len(arg.shape))(*arg.shape)
                if arg.strides is not None:
                    to.strides = (c_int64 * len(arg.strides))(*arg.strides)
            elif isinstance(arg, int):
                to.kind, to.integer = 1, arg
            else:
                to.kind, to.real = 2, arg
        launch = _Launch(ctypes.sizeof(_Launch), stream or None, packed, len(args), None, 0)
        size = c_uint64()
        api, check, handle = self.library.api, self.library.check, self.handle
        check(api.kernel_workspace_size(handle, packed, len(args), byref(size)))
        if size.value:
            launch.workspace, keep = (allocate or _host_memory)(size.value)
            launch.workspace_bytes = size.value
            alive.append(keep)
        reference = byref(launch)

        def run(_alive=(self, packed, launch, alive)):
            check(api.kernel_launch(handle, reference))
        return run


def _host_memory(size, alignment=256):
    memory = ctypes.create_string_buffer(size + alignment)
    address = ctypes.addressof(memory)
    return (address + alignment - 1) // alignment * alignment, memory
