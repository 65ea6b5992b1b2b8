"""The functions of the CUDA driver that are called, with their types, and what its status codes mean for a launch.

Source of all: "CUDA Driver API" (`cuda.h`), versions 11.0 to 13.0, which agree in everything here. A function whose name ends in
`_v2` is what the header calls without it; the name alone is the function of before CUDA 4.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import Any

from tilefw.api.hardware import Interface

SUCCESS, INVALID_VALUE, NO_DEVICE, NOT_READY, PEER_ALREADY_ENABLED = 0, 1, 100, 600, 704
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76  # CUdevice_attribute
MEMORY_TYPE, DEVICE_ORDINAL = 2, 9  # CUpointer_attribute
DEVICE_MEMORY, UNIFIED_MEMORY = 2, 4  # CUmemorytype
MAX_DYNAMIC_SHARED = 8  # CUfunction_attribute: bytes beyond 48 KiB must be asked for
# CUfunction_attribute: the percentage of a processor's L1 cache that should be shared memory; else the driver chooses
PREFERRED_SHARED, ALL_SHARED = 9, 100
STREAM_NON_BLOCKING = 1  # it does not wait for the default stream
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CUjit_option

_POINTER, _HANDLE, _SIZE, _INT, _UNSIGNED = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint
_ADDRESS = ctypes.c_uint64  # CUdeviceptr


def _out(kind: Any) -> Any:
    return ctypes.POINTER(kind)


_FUNCTIONS = {
    "cuInit": (_UNSIGNED,),
    "cuDriverGetVersion": (_out(_INT),),
    "cuDeviceGetCount": (_out(_INT),),
    "cuDeviceGet": (_out(_INT), _INT),
    "cuDeviceGetName": (ctypes.c_char_p, _INT, _INT),
    "cuDeviceTotalMem_v2": (_out(_SIZE), _INT),
    "cuDeviceGetAttribute": (_out(_INT), _INT, _INT),
    "cuDeviceCanAccessPeer": (_out(_INT), _INT, _INT),
    "cuDevicePrimaryCtxRetain": (_out(_HANDLE), _INT),
    "cuCtxGetCurrent": (_out(_HANDLE),),
    "cuCtxSetCurrent": (_HANDLE,),
    "cuCtxSynchronize": (),
    "cuCtxEnablePeerAccess": (_HANDLE, _UNSIGNED),
    "cuMemAlloc_v2": (_out(_ADDRESS), _SIZE),
    "cuMemFree_v2": (_ADDRESS,),
    "cuMemGetInfo_v2": (_out(_SIZE), _out(_SIZE)),
    "cuMemcpyHtoD_v2": (_ADDRESS, _POINTER, _SIZE),
    "cuMemcpyDtoH_v2": (_POINTER, _ADDRESS, _SIZE),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, _POINTER, _SIZE, _HANDLE),
    "cuMemcpyDtoHAsync_v2": (_POINTER, _ADDRESS, _SIZE, _HANDLE),
    "cuMemcpyAsync": (_ADDRESS, _ADDRESS, _SIZE, _HANDLE),
    "cuPointerGetAttribute": (_POINTER, _INT, _ADDRESS),
    "cuModuleLoadDataEx": (_out(_HANDLE), ctypes.c_char_p, _UNSIGNED, _POINTER, _POINTER),
    "cuModuleUnload": (_HANDLE,),
    "cuModuleGetFunction": (_out(_HANDLE), _HANDLE, ctypes.c_char_p),
    "cuFuncSetAttribute": (_HANDLE, _INT, _INT),
    "cuLaunchKernel": (_HANDLE, *(_UNSIGNED,) * 7, _HANDLE, _POINTER, _POINTER),
    # The map, type and rank; base, dims, strides, box, element strides; interleave, swizzle, promotion to L2, fill.
    "cuTensorMapEncodeTiled": (_POINTER, _INT, _UNSIGNED, _POINTER, *(_POINTER,) * 4, *(_INT,) * 4),
    "cuStreamCreate": (_out(_HANDLE), _UNSIGNED),
    "cuStreamDestroy_v2": (_HANDLE,),
    "cuStreamSynchronize": (_HANDLE,),
    "cuStreamWaitEvent": (_HANDLE, _HANDLE, _UNSIGNED),
    "cuEventCreate": (_out(_HANDLE), _UNSIGNED),
    "cuEventDestroy_v2": (_HANDLE,),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuEventQuery": (_HANDLE,),
    "cuEventSynchronize": (_HANDLE,),
    "cuEventElapsedTime": (_out(ctypes.c_float), _HANDLE, _HANDLE),
}

CUDA = Interface(
    product="CUDA driver library",
    variable="TILEFW_CUDA_LIBRARY",
    functions=MappingProxyType(_FUNCTIONS),
    optional=frozenset({"cuTensorMapEncodeTiled"}),  # of CUDA 12
    texts=("cuGetErrorName", "cuGetErrorString"),
    text_through_pointer=True,
    failures=MappingProxyType({
        2: "memory",  # CUDA_ERROR_OUT_OF_MEMORY
        701: "shape",  # LAUNCH_OUT_OF_RESOURCES
        500: "entry",  # NOT_FOUND
        # INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, JIT_COMPILER_NOT_FOUND, UNSUPPORTED_PTX_VERSION, INVALID_SOURCE
        200: "image", 209: "image", 218: "image", 221: "image", 222: "image", 300: "image",
        # ECC_UNCORRECTABLE, ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT, HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION,
        # MISALIGNED_ADDRESS, INVALID_ADDRESS_SPACE, INVALID_PC, LAUNCH_FAILED
        214: "fault", 700: "fault", 702: "fault", 710: "fault", 714: "fault", 715: "fault", 716: "fault", 717: "fault",
        718: "fault", 719: "fault",
    }),
)  # fmt: skip
