"""The CUDA driver as a driver: each method calls its function, in the primary context of a card, which PyTorch and others share."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tilefw.api.device import DescribedArray
from tilefw.api.hardware import CardInfo, Driver, DriverError, DriverLibrary, LaunchBlock, TakenBlock
from tilefw_nvidia.chips.chip import Architecture
from tilefw_nvidia.device import interface as cuda
from tilefw_nvidia.device import tensor_map
from tilefw_nvidia.device.library import library
from tilefw_nvidia.isa.tensor_map_size import ALIGNMENT, BYTES

# Keys of the `extra` array of cuLaunchKernel ("CUDA Driver API", CU_LAUNCH_PARAM_…): the argument block, its size, the end.
_BLOCK, _BLOCK_SIZE, _END = 1, 2, 0
_NAME_BYTES = 256
_LOG_BYTES = 8192
_NO_CARD = -1
# What a launch may use without asking ("CUDA C++ Programming Guide", "Shared Memory" of compute capability 8.x).
_ALWAYS_SHARED = 48 << 10


def driver() -> CudaDriver:
    """The driver over this machine's library; raises UnsupportedError TFW0604, TFW0605."""
    return _driver(library())


@functools.cache
def _driver(found: DriverLibrary) -> CudaDriver:
    return CudaDriver(found)


class CudaDriver(Driver):
    """`tilefw.api.hardware.Driver` over an open library."""

    def __init__(self, found: DriverLibrary) -> None:
        self.library = found
        self._cards: tuple[CardInfo, ...] | None = None
        self._contexts: dict[int, int] = {}  # the primary context of a card by its number
        self._numbers: dict[int, int] = {}  # and the other way round
        self._shared: dict[int, int] = {}  # the bytes that were asked for, by function
        self._blocks = LaunchBlock((_BLOCK, _BLOCK_SIZE, _END))
        self._lock = threading.RLock()  # a signal's handler may launch where its thread has it
        # What every launch calls.
        self._get_current, self._record, self._launch = map(found.function, ("cuCtxGetCurrent", "cuEventRecord", "cuLaunchKernel"))

    def cards(self) -> Sequence[CardInfo]:
        if self._cards is None:
            number = ctypes.c_int()
            for name, args in (("cuInit", (0,)), ("cuDeviceGetCount", (ctypes.byref(number),))):
                status = self.library.status(name, *args)
                if status == cuda.NO_DEVICE:
                    return ()
                if status:
                    raise self.library.error(name, status)
            self._cards = tuple(self._card_info(n) for n in range(number.value))
        return self._cards

    def _card_info(self, number: int) -> CardInfo:
        device = self._device(number)
        name = ctypes.create_string_buffer(_NAME_BYTES)
        self.library.call("cuDeviceGetName", name, _NAME_BYTES, device)
        memory = self._asked("cuDeviceTotalMem_v2", ctypes.c_size_t, device)
        parts = (cuda.CAPABILITY_MAJOR, cuda.CAPABILITY_MINOR)
        major, minor = (self._asked("cuDeviceGetAttribute", ctypes.c_int, which, device) for which in parts)
        chip = str(Architecture(10 * major + minor))
        return CardInfo(number, name.value.decode("utf-8", "replace") or "unnamed", chip, memory)

    def _device(self, number: int) -> int:
        return self._asked("cuDeviceGet", ctypes.c_int, number)

    # -- the current card is the one whose primary context is current in the thread -------------------------------------------

    def current(self) -> int:
        """-1 where no context is current, or one that another library made for itself."""
        return self._numbers.get(self._asked("cuCtxGetCurrent", ctypes.c_void_p), _NO_CARD)

    def make_current(self, number: int) -> None:
        self.library.call("cuCtxSetCurrent", self._context(number))

    def enter(self, number: int) -> int | None:
        """As the base's, by contexts: another library's own one is current again behind the block, too."""
        current, wanted = ctypes.c_void_p(), self._contexts.get(number) or self._context(number)
        status = self._get_current(ctypes.byref(current))
        if status:
            raise self.library.error("cuCtxGetCurrent", status)
        before = current.value or 0
        if before == wanted:
            return None
        self.library.call("cuCtxSetCurrent", wanted)
        return before

    def leave(self, before: int) -> None:
        self.library.call("cuCtxSetCurrent", before)

    def _context(self, number: int) -> int:
        found = self._contexts.get(number)
        if found is not None:
            return found
        with self._lock:
            if number not in self._contexts:
                # Kept until the process ends: arrays and modules of the card live in it.
                context = self._asked("cuDevicePrimaryCtxRetain", ctypes.c_void_p, self._device(number))
                self._numbers[context] = number
                self._contexts[number] = context
        return self._contexts[number]

    # -- memory ---------------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        return self._asked("cuMemAlloc_v2", ctypes.c_uint64, nbytes)

    def free(self, address: int) -> None:
        self.library.call("cuMemFree_v2", address)

    def memory(self) -> tuple[int, int]:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.library.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def copy_in(self, address: int, host: int, nbytes: int, stream: int | None = None) -> None:
        if stream is None:
            self.library.call("cuMemcpyHtoD_v2", address, host, nbytes)
        else:
            self.library.call("cuMemcpyHtoDAsync_v2", address, host, nbytes, stream)

    def copy_out(self, host: int, address: int, nbytes: int, stream: int | None = None) -> None:
        if stream is None:
            self.library.call("cuMemcpyDtoH_v2", host, address, nbytes)
        else:
            self.library.call("cuMemcpyDtoHAsync_v2", host, address, nbytes, stream)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self.library.call("cuMemcpyAsync", target, source, nbytes, stream)

    def owner(self, address: int) -> int | None:
        kind, number = ctypes.c_uint(), ctypes.c_int()
        name = "cuPointerGetAttribute"
        for place, which in ((kind, cuda.MEMORY_TYPE), (number, cuda.DEVICE_ORDINAL)):
            status = self.library.status(name, ctypes.addressof(place), which, address)
            if status == cuda.INVALID_VALUE:  # memory that CUDA has not heard of
                return None
            if status:
                raise self.library.error(name, status)
        return number.value if kind.value in (cuda.DEVICE_MEMORY, cuda.UNIFIED_MEMORY) else None

    def copy_descriptor(self, array: DescribedArray) -> bytes:
        rank, room = len(array.sizes), ctypes.create_string_buffer(2 * BYTES)
        begin = ctypes.addressof(room) + -ctypes.addressof(room) % ALIGNMENT
        numbers = (
            (ctypes.c_uint64 * rank)(*array.sizes), (ctypes.c_uint64 * rank)(*array.strides, 0),
            (ctypes.c_uint32 * rank)(*array.extents), (ctypes.c_uint32 * rank)(*[1] * rank),
        )
        self.library.call(
            "cuTensorMapEncodeTiled", begin, tensor_map.driver_type(array), rank, array.base, *map(ctypes.addressof, numbers),
            0, tensor_map.swizzle_mode(array), 0, 0,
        )
        return ctypes.string_at(begin, BYTES)

    # -- code -----------------------------------------------------------------------------------------------------------------

    def load(self, image: bytes) -> int:
        """PTX, compiled for the card by the driver, whose words for what it refuses are in the error; or a cubin."""
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(cuda.ERROR_LOG, cuda.ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        found = ctypes.c_void_p()
        name = "cuModuleLoadDataEx"
        status = self.library.status(
            name, ctypes.byref(found), image, len(options), ctypes.addressof(options), ctypes.addressof(values)
        )
        if status:
            error = self.library.error(name, status)
            words = log.value.decode("utf-8", "replace").strip()
            raise DriverError(name, status, [*error.words, *([words] if words else [])], error.failure)
        return found.value or 0

    def unload(self, module: int) -> None:
        self.library.call("cuModuleUnload", module)

    def function(self, module: int, name: str) -> int:
        found = self._asked("cuModuleGetFunction", ctypes.c_void_p, module, name.encode())
        self._shared[found] = _ALWAYS_SHARED  # a handle may be one that an unloaded module had
        return found

    def prepare(
        self, function: int, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, stream: int, arguments: bytes
    ) -> Callable[[], None]:
        self._allow(function, shared)
        return functools.partial(
            self._launch_with, self._blocks.take(arguments), function, *grid, *block, shared, stream, None
        )

    def _launch_with(self, taken: TakenBlock, *args: Any) -> None:
        self._launched("cuLaunchKernel", self._launch, *args, taken.address)
        self._blocks.give_back(taken)

    def launch_between(
        self, events: tuple[int, int], function: int, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
        stream: int, arguments: bytes,
    ) -> None:
        """As the base's, in one frame: what a launch takes of the host is calls of Python's."""
        if shared > _ALWAYS_SHARED:
            self._allow(function, shared)
        taken, record = self._blocks.take(arguments), self._record
        status = record(events[0], stream)
        if not status:
            status = self._launch(function, *grid, *block, shared, stream, None, taken.address)
            if status:
                raise self._refused("cuLaunchKernel", status)
            self._blocks.give_back(taken)
            status = record(events[1], stream)
        if status:
            raise self.library.error("cuEventRecord", status)

    def _allow(self, function: int, shared: int) -> None:
        """Let launches of a function have so much shared memory."""
        if shared > self._shared.get(function, _ALWAYS_SHARED):
            for attribute, value in ((cuda.MAX_DYNAMIC_SHARED, shared), (cuda.PREFERRED_SHARED, cuda.ALL_SHARED)):
                self._launched("cuFuncSetAttribute", self.library.function("cuFuncSetAttribute"), function, attribute, value)
            self._shared[function] = shared

    def _launched(self, name: str, call: Callable[..., int], *args: Any) -> None:
        """A call whose values are right but for extents and sizes: one that is invalid is such a one."""
        status = call(*args)
        if status:
            raise self._refused(name, status)

    def _refused(self, name: str, status: int) -> DriverError:
        error = self.library.error(name, status)
        return DriverError(name, status, error.words, "shape") if status == cuda.INVALID_VALUE else error

    # -- streams, events, peers -----------------------------------------------------------------------------------------------

    def new_stream(self) -> int:
        return self._asked("cuStreamCreate", ctypes.c_void_p, cuda.STREAM_NON_BLOCKING)

    def end_stream(self, stream: int) -> None:
        self.library.call("cuStreamDestroy_v2", stream)

    def wait_stream(self, stream: int) -> None:
        self.library.call("cuStreamSynchronize", stream)

    def wait_card(self) -> None:
        self.library.call("cuCtxSynchronize")

    def new_event(self) -> int:
        return self._asked("cuEventCreate", ctypes.c_void_p, 0)

    def end_event(self, event: int) -> None:
        self.library.call("cuEventDestroy_v2", event)

    def record(self, event: int, stream: int) -> None:
        status = self._record(event, stream)
        if status:
            raise self.library.error("cuEventRecord", status)

    def happened(self, event: int) -> bool:
        status = self.library.status("cuEventQuery", event)
        if status not in (cuda.SUCCESS, cuda.NOT_READY):
            raise self.library.error("cuEventQuery", status)
        return status == cuda.SUCCESS

    def wait_event(self, event: int) -> None:
        self.library.call("cuEventSynchronize", event)

    def order(self, stream: int, event: int) -> None:
        self.library.call("cuStreamWaitEvent", stream, event, 0)

    def seconds(self, start: int, end: int) -> float:
        milliseconds = ctypes.c_float()
        self.library.call("cuEventElapsedTime", ctypes.byref(milliseconds), start, end)
        return milliseconds.value / 1000

    def reaches(self, number: int, peer: int) -> bool:
        return bool(self._asked("cuDeviceCanAccessPeer", ctypes.c_int, self._device(number), self._device(peer)))

    def enable_peer(self, peer: int) -> None:
        status = self.library.status("cuCtxEnablePeerAccess", self._context(peer), 0)
        if status not in (cuda.SUCCESS, cuda.PEER_ALREADY_ENABLED):
            raise self.library.error("cuCtxEnablePeerAccess", status)

    def _asked(self, name: str, kind: Any, *args: Any) -> int:
        """What a function writes to its first parameter; a null handle is 0."""
        found = kind()
        self.library.call(name, ctypes.byref(found), *args)
        return found.value or 0
