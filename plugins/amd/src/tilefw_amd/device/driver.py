"""The HIP runtime as a driver: each method calls its function."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

from tilefw.api.hardware import CardInfo, Driver, DriverError, DriverLibrary, LaunchBlock, TakenBlock
from tilefw_amd.device import interface as hip
from tilefw_amd.device.library import library
from tilefw_amd.device.properties import card_info

# Keys of the `extra` array of hipModuleLaunchKernel (`hip_runtime_api.h`, HIP_LAUNCH_PARAM_…): the argument block, its size, the
# end. The runtime takes from the block what the code object's metadata declares, and adds the hidden arguments itself (ROCm clr,
# `hip_module.cpp`: ihipLaunchKernelCommand; `rocvirtual.cpp`: HiddenBlockCountX and its neighbours).
_BLOCK, _BLOCK_SIZE, _END = 1, 2, 3


def driver() -> HipDriver:
    """The driver over this machine's library; raises UnsupportedError TFW0604, TFW0605."""
    return _driver(library())


@functools.cache
def _driver(found: DriverLibrary) -> HipDriver:
    return HipDriver(found)


class HipDriver(Driver):
    """`tilefw.api.hardware.Driver` over an open library."""

    def __init__(self, found: DriverLibrary) -> None:
        self.library = found
        self._cards: tuple[CardInfo, ...] | None = None
        self._blocks = LaunchBlock((_BLOCK, _BLOCK_SIZE, _END))

    def cards(self) -> Sequence[CardInfo]:
        if self._cards is None:
            number = ctypes.c_int()
            for name, args in (("hipInit", (0,)), ("hipGetDeviceCount", (ctypes.byref(number),))):
                status = self.library.status(name, *args)
                if status == hip.NO_DEVICE:
                    return ()
                if status:
                    raise self.library.error(name, status)
            self._cards = tuple(card_info(self.library, n) for n in range(number.value))
        return self._cards

    def current(self) -> int:
        return self._asked("hipGetDevice", ctypes.c_int)

    def make_current(self, number: int) -> None:
        self.library.call("hipSetDevice", number)

    # -- memory ---------------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        return self._asked("hipMalloc", ctypes.c_void_p, nbytes)

    def free(self, address: int) -> None:
        self.library.call("hipFree", address)

    def memory(self) -> tuple[int, int]:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.library.call("hipMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def copy_in(self, address: int, host: int, nbytes: int, stream: int | None = None) -> None:
        self._copy(address, host, nbytes, hip.TO_DEVICE, stream)

    def copy_out(self, host: int, address: int, nbytes: int, stream: int | None = None) -> None:
        self._copy(host, address, nbytes, hip.TO_HOST, stream)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self._copy(target, source, nbytes, hip.BETWEEN_DEVICES, stream)

    def _copy(self, target: int, source: int, nbytes: int, kind: int, stream: int | None) -> None:
        if stream is None:
            self.library.call("hipMemcpy", target, source, nbytes, kind)
        else:
            self.library.call("hipMemcpyAsync", target, source, nbytes, kind, stream)

    def owner(self, address: int) -> int | None:
        # hipPointerAttribute_t: `type` and `device` are its first two fields, 32 bits each; 32 bytes in all.
        attributes = (ctypes.c_int * 16)()
        status = self.library.status("hipPointerGetAttributes", ctypes.addressof(attributes), address)
        if status == hip.INVALID_VALUE:
            self._forget_error()
            return None
        if status:
            raise self.library.error("hipPointerGetAttributes", status)
        return attributes[1] if attributes[0] in (hip.DEVICE_MEMORY, hip.MANAGED_MEMORY) else None

    # -- code -----------------------------------------------------------------------------------------------------------------

    def load(self, image: bytes) -> int:
        return self._asked("hipModuleLoadData", ctypes.c_void_p, image)

    def unload(self, module: int) -> None:
        self.library.call("hipModuleUnload", module)

    def function(self, module: int, name: str) -> int:
        return self._asked("hipModuleGetFunction", ctypes.c_void_p, module, name.encode())

    def prepare(
        self, function: int, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, stream: int, arguments: bytes
    ) -> Callable[[], None]:
        return functools.partial(self._launched, self._blocks.take(arguments), function, *grid, *block, shared, stream, None)

    def _launched(self, taken: TakenBlock, *args: Any) -> None:
        name = "hipModuleLaunchKernel"
        status = self.library.status(name, *args, taken.address)
        if status:
            error = self.library.error(name, status)
            # With a function, a stream and a block that are right, a value that is invalid is an extent.
            raise DriverError(name, status, error.words, "shape") if status == hip.INVALID_VALUE else error
        self._blocks.give_back(taken)

    # -- streams, events, peers -----------------------------------------------------------------------------------------------

    def new_stream(self) -> int:
        return self._asked("hipStreamCreateWithFlags", ctypes.c_void_p, hip.STREAM_NON_BLOCKING)

    def end_stream(self, stream: int) -> None:
        self.library.call("hipStreamDestroy", stream)

    def wait_stream(self, stream: int) -> None:
        self.library.call("hipStreamSynchronize", stream)

    def wait_card(self) -> None:
        self.library.call("hipDeviceSynchronize")

    def new_event(self) -> int:
        return self._asked("hipEventCreateWithFlags", ctypes.c_void_p, 0)

    def end_event(self, event: int) -> None:
        self.library.call("hipEventDestroy", event)

    def record(self, event: int, stream: int) -> None:
        self.library.call("hipEventRecord", event, stream)

    def happened(self, event: int) -> bool:
        status = self.library.status("hipEventQuery", event)
        if status == hip.NOT_READY:
            self._forget_error()
            return False
        if status:
            raise self.library.error("hipEventQuery", status)
        return True

    def wait_event(self, event: int) -> None:
        self.library.call("hipEventSynchronize", event)

    def order(self, stream: int, event: int) -> None:
        self.library.call("hipStreamWaitEvent", stream, event, 0)

    def seconds(self, start: int, end: int) -> float:
        milliseconds = ctypes.c_float()
        self.library.call("hipEventElapsedTime", ctypes.byref(milliseconds), start, end)
        return milliseconds.value / 1000

    def reaches(self, number: int, peer: int) -> bool:
        return bool(self._asked("hipDeviceCanAccessPeer", ctypes.c_int, number, peer))

    def enable_peer(self, peer: int) -> None:
        status = self.library.status("hipDeviceEnablePeerAccess", peer, 0)
        if status == hip.PEER_ALREADY_ENABLED:
            self._forget_error()
        elif status:
            raise self.library.error("hipDeviceEnablePeerAccess", status)

    def _asked(self, name: str, kind: Any, *args: Any) -> int:
        """What a function writes to its first parameter; a null handle is 0."""
        found = kind()
        self.library.call(name, ctypes.byref(found), *args)
        return found.value or 0

    def _forget_error(self) -> None:
        """An answer that was expected is not an error that another library should find in this thread."""
        self.library.status("hipGetLastError")
