"""What the functions of the CUDA driver do, on our simulator; rules and status codes as "CUDA Driver API" has them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from oracles.standin import Event, Process, StandIn, StatusError
from oracles.standin import card_runtime as codes
from oracles.standin.card_runtime import BETWEEN_CARDS, TO_CARD, TO_HOST, CardRuntime
from tilefw.api import CodeError, LaunchOptions
from tilefw.api.errors import LaunchError
from tilefw.api.sim import LoadedProgram
from tilefw_nvidia import isa, load
from tilefw_nvidia.chips import Architecture, Chip, chips
from tilefw_nvidia.simulate.device import Simulator

NO_CONTEXT, INVALID_PTX, UNSUPPORTED_PTX, OUT_OF_RESOURCES = 201, 218, 222, 701
NAMES = {
    0: ("CUDA_SUCCESS", "no error"), 1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"), 3: ("CUDA_ERROR_NOT_INITIALIZED", "initialization error"),
    209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
    218: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
    719: ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
}  # fmt: skip
_CONTEXT = 0xC0DE0000  # handles of primary contexts: this and the card's number
_ALWAYS_SHARED = 48 << 10
_STATIC_AND_DYNAMIC = 227 << 10


class GivenArguments(Simulator):
    """The simulator of all of the plugin's chips, with an argument block that is given as bytes."""

    given = b""

    def argument_block(
        self, loaded: LoadedProgram, args: Sequence[Any], grid: Sequence[int], block: tuple[int, int, int], options: LaunchOptions
    ) -> bytes:
        size = max((p.offset + p.size for p in loaded.program.parameters), default=0)
        if len(self.given) < size:
            raise LaunchError(f"the block has {len(self.given)} bytes, and the entry takes {size}", code="TFW0347")
        return self.given[:size]


class Kernel:
    """A function of a module: where its pointers are, what it may use of shared memory."""

    def __init__(self, module: Any, name: str, pointers: Sequence[int], static: int) -> None:
        self.module, self.name, self.pointers, self.static = module, name, pointers, static
        self.dynamic = _ALWAYS_SHARED


class CudaRuntime(CardRuntime):
    """The driver of one process; methods are the library's functions, with their parameters as 64-bit words."""

    def __init__(self, standin: StandIn, process: Process) -> None:
        super().__init__(standin, process, GivenArguments(_newest()))
        self.current: dict[int, int] = {}  # contexts by thread
        self.ready = False

    @property
    def card(self) -> int:
        context = self.current.get(self.thread, 0)
        if not context:
            raise StatusError(NO_CONTEXT)
        return context - _CONTEXT

    # -- the driver and its cards ---------------------------------------------------------------------------------------------

    def cuInit(self, flags: int) -> int:  # noqa: N802
        self.ready = True
        return 0 if self.standin.cards else codes.NO_DEVICE

    def cuDriverGetVersion(self, place: int) -> None:  # noqa: N802
        major, minor = self.standin.version
        self.out(place, "i", 1000 * major + 10 * minor)

    def cuDeviceGetCount(self, place: int) -> None:  # noqa: N802
        if not self.ready:
            raise StatusError(3)
        self.out(place, "i", len(self.standin.cards))

    def cuDeviceGet(self, place: int, ordinal: int) -> None:  # noqa: N802
        if ordinal >= len(self.standin.cards):
            raise StatusError(codes.INVALID_DEVICE)
        self.out(place, "i", ordinal)

    def cuDeviceGetName(self, place: int, length: int, card: int) -> None:  # noqa: N802
        self.process.write(place, self.standin.cards[card].name.encode()[: length - 1] + b"\0")

    def cuDeviceTotalMem_v2(self, place: int, card: int) -> None:  # noqa: N802
        self.out(place, "Q", self.standin.cards[card].memory_bytes)

    def cuDeviceGetAttribute(self, place: int, attribute: int, card: int) -> None:  # noqa: N802
        number = Architecture.parse(self.standin.cards[card].architecture).number
        self.out(place, "i", {75: number // 10, 76: number % 10}[attribute])

    def cuDeviceCanAccessPeer(self, place: int, card: int, peer: int) -> None:  # noqa: N802
        self.can_access(place, card, peer)

    def cuDevicePrimaryCtxRetain(self, place: int, card: int) -> None:  # noqa: N802
        self.out(place, "Q", _CONTEXT + card)

    def cuCtxGetCurrent(self, place: int) -> None:  # noqa: N802
        self.out(place, "Q", self.current.get(self.thread, 0))

    def cuCtxSetCurrent(self, context: int) -> None:  # noqa: N802
        self.current[self.thread] = context

    def cuCtxSynchronize(self, _: int) -> None:  # noqa: N802
        self.finish()

    def cuCtxEnablePeerAccess(self, context: int, flags: int) -> int:  # noqa: N802
        return self.enable_peer(context - _CONTEXT, flags)

    def cuGetErrorName(self, place: int, status: int) -> None:  # noqa: N802
        self.text(place, NAMES.get(status, ("CUDA_ERROR_UNKNOWN", ""))[0])

    def cuGetErrorString(self, place: int, status: int) -> None:  # noqa: N802
        self.text(place, NAMES.get(status, ("", "unknown error"))[1])

    # -- memory ---------------------------------------------------------------------------------------------------------------

    def cuMemAlloc_v2(self, place: int, size: int) -> None:  # noqa: N802
        if not size:
            raise StatusError(codes.INVALID_VALUE)
        self.allocate(place, size)

    def cuMemFree_v2(self, address: int) -> None:  # noqa: N802
        self.free(address)

    def cuMemGetInfo_v2(self, free: int, total: int) -> None:  # noqa: N802
        for place, size in zip((free, total), self.memory(), strict=True):
            self.out(place, "Q", size)

    def cuMemcpyHtoD_v2(self, target: int, source: int, size: int) -> None:  # noqa: N802
        self.copy_now(target, source, size, TO_CARD)

    def cuMemcpyDtoH_v2(self, target: int, source: int, size: int) -> None:  # noqa: N802
        self.copy_now(target, source, size, TO_HOST)

    def cuMemcpyHtoDAsync_v2(self, target: int, source: int, size: int, stream: int) -> None:  # noqa: N802
        self.copy_later(target, source, size, TO_CARD, stream)

    def cuMemcpyDtoHAsync_v2(self, target: int, source: int, size: int, stream: int) -> None:  # noqa: N802
        self.copy_later(target, source, size, TO_HOST, stream)

    def cuMemcpyAsync(self, target: int, source: int, size: int, stream: int) -> None:  # noqa: N802
        self.copy_later(target, source, size, BETWEEN_CARDS, stream)

    def cuPointerGetAttribute(self, place: int, attribute: int, address: int) -> None:  # noqa: N802
        self.out(place, "i", {2: 2, 9: self.owner(address)}[attribute])

    # -- code -----------------------------------------------------------------------------------------------------------------

    def cuModuleLoadDataEx(self, place: int, image: int, count: int, options: int, values: int) -> int:  # noqa: N802
        self.check()
        name = f"image for card {self.card}"
        text = self.process.string(image)
        try:
            target = Architecture.parse(isa.parse(text, name).target)
            if not target.runs_on(Architecture.parse(self.standin.cards[self.card].architecture)):
                return codes.NO_BINARY
            artifact = load.artifact(text, name, _newest())
        except CodeError as error:
            self._log(error.message, count, options, values)
            return INVALID_PTX
        module = isa.parse(text, name)
        self.out(place, "Q", self.keep((self.simulator.load(artifact), module, artifact)))
        return 0

    def _log(self, words: str, count: int, options: int, values: int) -> None:
        """Options 5 and 6 are the place for the compiler's words and its size."""
        kinds = struct.unpack(f"<{count}i", self.process.read(options, 4 * count))
        given = dict(zip(kinds, struct.unpack(f"<{count}Q", self.process.read(values, 8 * count)), strict=True))
        self.process.write(given[5], words.encode()[: given[6] - 1] + b"\0")

    def cuModuleUnload(self, module: int) -> None:  # noqa: N802
        self.end(module, tuple)

    def cuModuleGetFunction(self, place: int, module: int, name: int) -> None:  # noqa: N802
        loaded, text, artifact = self.found(module, tuple)
        word = self.process.string(name)
        if word not in text.entries:
            raise StatusError(codes.NOT_FOUND)
        pointers = [p.offset for p in artifact.entry(word).parameters if p.kind == "pointer"]
        self.out(place, "Q", self.keep(Kernel(loaded, word, pointers, text.shared_bytes(text.entries[word]))))

    def cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:  # noqa: N802
        kernel = self.found(function, Kernel)
        if attribute == 9 and value <= 100:  # a hint
            return
        if attribute != 8 or kernel.static + value > _STATIC_AND_DYNAMIC:
            raise StatusError(codes.INVALID_VALUE)
        kernel.dynamic = value

    def cuLaunchKernel(self, function: int, *words: int) -> None:  # noqa: N802
        self.check()
        kernel = self.found(function, Kernel)
        grid, block, (shared, stream, parameters, extra) = words[:3], words[3:6], words[6:]
        if not all(grid) or not all(block) or max(grid[1:]) > 65535 or shared > kernel.dynamic or parameters or not extra:
            raise StatusError(codes.INVALID_VALUE)
        if block[0] * block[1] * block[2] > 1024:
            raise StatusError(codes.INVALID_VALUE)
        given = self.block(extra, (1, 2, 0))
        self.launch(kernel.module, kernel.name, grid, block, shared, stream, given, kernel.pointers)

    # -- streams and events ---------------------------------------------------------------------------------------------------

    def cuStreamCreate(self, place: int, flags: int) -> None:  # noqa: N802
        self.new_stream(place)

    def cuStreamDestroy_v2(self, stream: int) -> None:  # noqa: N802
        self.end_stream(stream)

    def cuStreamSynchronize(self, stream: int) -> None:  # noqa: N802
        self.finish(self.stream(stream))

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:  # noqa: N802
        self.wait_event_on(stream, event)

    def cuEventCreate(self, place: int, flags: int) -> None:  # noqa: N802
        self.new_event(place)

    def cuEventDestroy_v2(self, event: int) -> None:  # noqa: N802
        self.end(event, Event)

    def cuEventRecord(self, event: int, stream: int) -> None:  # noqa: N802
        self.record(event, stream)

    def cuEventQuery(self, event: int) -> int:  # noqa: N802
        return self.query(event)

    def cuEventSynchronize(self, event: int) -> None:  # noqa: N802
        self.wait_event(event)

    def cuEventElapsedTime(self, place: int, start: int, end: int) -> None:  # noqa: N802
        self.elapsed(place, start, end)


def _newest() -> Chip:
    return list(chips().values())[-1]
