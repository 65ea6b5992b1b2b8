"""The functions of the HIP runtime that are called, with their types, and what its status codes mean for a launch.

Source of all: `hip/hip_runtime_api.h` of ROCm's HIP, versions 6.0 to 7.2, which agree in everything here.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import Any

from tilefw.api.hardware import Interface

SUCCESS, INVALID_VALUE, NO_DEVICE, NOT_READY, PEER_ALREADY_ENABLED = 0, 1, 100, 600, 704
TO_DEVICE, TO_HOST, BETWEEN_DEVICES = 1, 2, 3  # hipMemcpyKind
STREAM_NON_BLOCKING = 1  # hipStreamNonBlocking: it does not wait for the default stream
# hipMemoryType, as it is since 6.0: memory on a card, and memory that the runtime moves by itself.
DEVICE_MEMORY, MANAGED_MEMORY = 2, 3

_POINTER, _HANDLE, _SIZE, _INT, _UNSIGNED = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint


def _out(kind: Any) -> Any:
    return ctypes.POINTER(kind)


_FUNCTIONS = {
    "hipInit": (_UNSIGNED,),
    "hipRuntimeGetVersion": (_out(_INT),),
    "hipGetLastError": (),
    "hipGetDeviceCount": (_out(_INT),),
    "hipGetDevice": (_out(_INT),),
    "hipSetDevice": (_INT,),
    "hipDeviceGetName": (ctypes.c_char_p, _INT, _INT),
    "hipDeviceTotalMem": (_out(_SIZE), _INT),
    # `hipGetDeviceProperties` itself is the layout of before 6.0 in the library, whatever the header calls so.
    "hipGetDevicePropertiesR0600": (_POINTER, _INT),
    "hipDeviceSynchronize": (),
    "hipDeviceCanAccessPeer": (_out(_INT), _INT, _INT),
    "hipDeviceEnablePeerAccess": (_INT, _UNSIGNED),
    "hipMalloc": (_out(_POINTER), _SIZE),
    "hipFree": (_POINTER,),
    "hipMemGetInfo": (_out(_SIZE), _out(_SIZE)),
    "hipMemcpy": (_POINTER, _POINTER, _SIZE, _INT),
    "hipMemcpyAsync": (_POINTER, _POINTER, _SIZE, _INT, _HANDLE),
    "hipPointerGetAttributes": (_POINTER, _POINTER),
    "hipModuleLoadData": (_out(_HANDLE), ctypes.c_char_p),
    "hipModuleUnload": (_HANDLE,),
    "hipModuleGetFunction": (_out(_HANDLE), _HANDLE, ctypes.c_char_p),
    "hipModuleLaunchKernel": (_HANDLE, *(_UNSIGNED,) * 7, _HANDLE, _POINTER, _POINTER),
    "hipStreamCreateWithFlags": (_out(_HANDLE), _UNSIGNED),
    "hipStreamDestroy": (_HANDLE,),
    "hipStreamSynchronize": (_HANDLE,),
    "hipStreamWaitEvent": (_HANDLE, _HANDLE, _UNSIGNED),
    "hipEventCreateWithFlags": (_out(_HANDLE), _UNSIGNED),
    "hipEventDestroy": (_HANDLE,),
    "hipEventRecord": (_HANDLE, _HANDLE),
    "hipEventQuery": (_HANDLE,),
    "hipEventSynchronize": (_HANDLE,),
    "hipEventElapsedTime": (_out(ctypes.c_float), _HANDLE, _HANDLE),
}

HIP = Interface(
    product="HIP runtime library",
    variable="TILEFW_HIP_LIBRARY",
    functions=MappingProxyType(_FUNCTIONS),
    texts=("hipGetErrorName", "hipGetErrorString"),
    failures=MappingProxyType({
        2: "memory",  # hipErrorOutOfMemory
        9: "shape", 701: "shape",  # hipErrorInvalidConfiguration, LaunchOutOfResources
        98: "entry", 500: "entry",  # hipErrorInvalidDeviceFunction, NotFound
        # hipErrorInvalidImage, NoBinaryForGpu, InvalidKernelFile, SharedObjectInitFailed
        200: "image", 209: "image", 218: "image", 303: "image",
        # hipErrorECCNotCorrectable, IllegalAddress, LaunchTimeOut, Assert, LaunchFailure
        214: "fault", 700: "fault", 702: "fault", 710: "fault", 719: "fault",
    }),
)  # fmt: skip
