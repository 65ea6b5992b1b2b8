"""What the functions of the HIP runtime do, on our simulator; rules and status codes as ROCm's clr has them (`hip_module.cpp`,
`hip_memory.cpp`, `hip_event.cpp`, `hip_peer.cpp`)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oracles.standin import Event, StatusError
from oracles.standin import card_runtime as codes
from oracles.standin.card_runtime import CardRuntime
from tilefw.api import Artifact, CodeError, Entry, LaunchOptions
from tilefw.api.errors import LaunchError
from tilefw.api.sim import LoadedProgram
from tilefw_amd import code_object
from tilefw_amd.chips import Chip
from tilefw_amd.chips.targets import target
from tilefw_amd.simulate import arguments
from tilefw_amd.simulate.decode import KernelProgram
from tilefw_amd.simulate.device import Simulator

if TYPE_CHECKING:
    from oracles.standin import Process, StandIn

INVALID_CONFIGURATION, INVALID_KERNEL_FILE = 9, 218
NAMES = {
    0: ("hipSuccess", "no error"), 1: ("hipErrorInvalidValue", "invalid argument"), 2: ("hipErrorOutOfMemory", "out of memory"),
    9: ("hipErrorInvalidConfiguration", "invalid configuration argument"),
    98: ("hipErrorInvalidDeviceFunction", "invalid device function"),
    209: ("hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"),
    218: ("hipErrorInvalidKernelFile", "invalid kernel file"), 500: ("hipErrorNotFound", "named symbol not found"),
    700: ("hipErrorIllegalAddress", "an illegal memory access was encountered"),
    719: ("hipErrorLaunchFailure", "unspecified launch failure"),
}  # fmt: skip


class GivenArguments(Simulator):
    """The simulator with an argument block that is given as bytes: hidden arguments are added, as the runtime does."""

    given = b""

    def argument_block(
        self, loaded: LoadedProgram, args: Sequence[Any], grid: Sequence[int], block: tuple[int, int, int], options: LaunchOptions
    ) -> bytes:
        assert isinstance(loaded.program, KernelProgram)
        kernel = loaded.program.kernel
        taken = bytearray()
        for argument in kernel.metadata.arguments:
            if not argument.hidden:
                end = argument.offset + argument.size
                if end > len(self.given):
                    raise LaunchError(f"the block ends before {argument.name}", code="TFW0347")
                taken = taken.ljust(end, b"\0")
                taken[argument.offset : end] = self.given[argument.offset : end]
        return arguments.block(kernel, bytes(taken), grid, block, options.dynamic_shared or 0)


class HipRuntime(CardRuntime):
    """The runtime of one process; methods are the library's functions, with their parameters as 64-bit words."""

    def __init__(self, standin: StandIn, process: Process, simulated: Chip | None) -> None:
        super().__init__(standin, process, None if simulated is None else GivenArguments(target(simulated)))
        self.current: dict[int, int] = {}
        self.last: dict[int, int] = {}

    @property
    def card(self) -> int:
        return self.current.get(self.thread, 0)

    # -- the runtime and its cards --------------------------------------------------------------------------------------------

    def hipInit(self, flags: int) -> int:  # noqa: N802
        return 0 if self.standin.cards else 100

    def hipRuntimeGetVersion(self, place: int) -> None:  # noqa: N802
        major, minor, patch = self.standin.version
        self.out(place, "i", major * 10_000_000 + minor * 100_000 + patch)

    def hipGetLastError(self, _: int) -> None:  # noqa: N802
        self.last.pop(self.thread, None)

    def hipGetDeviceCount(self, place: int) -> int:  # noqa: N802
        self.out(place, "i", len(self.standin.cards))
        return 0 if self.standin.cards else 100

    def hipGetDevice(self, place: int) -> None:  # noqa: N802
        self.out(place, "i", self.card)

    def hipSetDevice(self, card: int) -> None:  # noqa: N802
        if card >= len(self.standin.cards):
            raise StatusError(codes.INVALID_DEVICE)
        self.current[self.thread] = card

    def hipDeviceGetName(self, place: int, length: int, card: int) -> None:  # noqa: N802
        self.process.write(place, self.standin.cards[card].name.encode()[: length - 1] + b"\0")

    def hipDeviceTotalMem(self, place: int, card: int) -> None:  # noqa: N802
        self.out(place, "Q", self.standin.cards[card].memory_bytes)

    def hipGetDevicePropertiesR0600(self, place: int, card: int) -> None:  # noqa: N802
        """A C compiler puts `gcnArchName` of the public header's struct at byte 1,160 of 1,472."""
        properties = bytearray(1472)
        model = self.standin.cards[card]
        for offset, text in ((0, model.name), (1160, model.architecture)):
            properties[offset : offset + len(text)] = text.encode()
        self.process.write(place, bytes(properties))

    def hipDeviceSynchronize(self, _: int) -> None:  # noqa: N802
        self.finish()

    def hipDeviceCanAccessPeer(self, place: int, card: int, peer: int) -> None:  # noqa: N802
        self.can_access(place, card, peer)

    def hipDeviceEnablePeerAccess(self, peer: int, flags: int) -> int:  # noqa: N802
        return self.enable_peer(peer, flags)

    def hipGetErrorName(self, place: int, status: int) -> None:  # noqa: N802
        self.text(place, NAMES.get(status, ("hipErrorUnknown", ""))[0])

    def hipGetErrorString(self, place: int, status: int) -> None:  # noqa: N802
        self.text(place, NAMES.get(status, ("", "unknown error"))[1])

    # -- memory ---------------------------------------------------------------------------------------------------------------

    def hipMalloc(self, place: int, size: int) -> None:  # noqa: N802
        self.allocate(place, size)

    def hipFree(self, address: int) -> None:  # noqa: N802
        self.free(address)

    def hipMemGetInfo(self, free: int, total: int) -> None:  # noqa: N802
        for place, size in zip((free, total), self.memory(), strict=True):
            self.out(place, "Q", size)

    def hipMemcpy(self, target: int, source: int, size: int, kind: int) -> None:  # noqa: N802
        self.copy_now(target, source, size, kind)

    def hipMemcpyAsync(self, target: int, source: int, size: int, kind: int, stream: int) -> None:  # noqa: N802
        self.copy_later(target, source, size, kind, stream)

    def hipPointerGetAttributes(self, place: int, address: int) -> int:  # noqa: N802
        try:
            owner = self.owner(address)
        except StatusError:
            self.last[self.thread] = codes.INVALID_VALUE
            return codes.INVALID_VALUE
        self.process.write(place, struct.pack("<iiQQiI", 2, owner, address, 0, 0, 0))
        return 0

    # -- code -----------------------------------------------------------------------------------------------------------------

    def hipModuleLoadData(self, place: int, image: int) -> None:  # noqa: N802
        self.check()
        data = self.process.read(image, _elf_bytes(self.process.read(image, 64)))
        assert self.simulator is not None
        chip = self.simulator.isa.chip
        try:
            found = code_object.read(data, "image", chip)
        except CodeError as error:
            self.standin.problems.append(error.message)
            raise StatusError(codes.NO_BINARY if data[18:20] == b"\xe0\x00" else INVALID_KERNEL_FILE) from None
        # What a launch needs beside the code is in the call, so an entry has no more than its name.
        entries = tuple(Entry(kernel.name, (), kernel.metadata.required_workgroup or (0, 0, 0)) for kernel in found.kernels)
        artifact = Artifact(chip.target, "hsaco", "", entries, data)
        self.out(place, "Q", self.keep((self.simulator.load(artifact), {kernel.name: kernel for kernel in found.kernels})))

    def hipModuleUnload(self, module: int) -> None:  # noqa: N802
        self.found(module, tuple)
        self.objects[module] = None

    def hipModuleGetFunction(self, place: int, module: int, name: int) -> None:  # noqa: N802
        loaded, kernels = self.found(module, tuple)
        word = self.process.string(name)
        if word not in kernels:
            raise StatusError(codes.NOT_FOUND)
        self.out(place, "Q", self.keep([loaded, kernels[word]]))

    def hipModuleLaunchKernel(self, function: int, *words: int) -> None:  # noqa: N802
        self.check()
        loaded, kernel = self.found(function, list)
        grid, block, (shared, stream, parameters, extra) = words[:3], words[3:6], words[6:]
        assert self.simulator is not None
        limits = self.simulator.isa.chip.limits
        threads = block[0] * block[1] * block[2]
        if not all(grid) or threads > limits["threads_per_workgroup"] or shared > limits["shared_bytes"]:
            raise StatusError(codes.INVALID_VALUE)
        if max(grid[1:]) > 1 << 16 or parameters or not extra:
            raise StatusError(codes.INVALID_VALUE)
        if not threads or grid[0] * block[0] >= 1 << 32:
            raise StatusError(INVALID_CONFIGURATION)
        given = self.block(extra, (1, 2, 3))
        pointers = [argument.offset for argument in kernel.metadata.arguments if argument.pointer]
        self.launch(loaded, kernel.name, grid, block, shared, stream, given, pointers)

    # -- streams and events ---------------------------------------------------------------------------------------------------

    def hipStreamCreateWithFlags(self, place: int, flags: int) -> None:  # noqa: N802
        self.new_stream(place)

    def hipStreamDestroy(self, stream: int) -> None:  # noqa: N802
        self.end_stream(stream)

    def hipStreamSynchronize(self, stream: int) -> None:  # noqa: N802
        self.finish(self.stream(stream))

    def hipStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:  # noqa: N802
        self.wait_event_on(stream, event)

    def hipEventCreateWithFlags(self, place: int, flags: int) -> None:  # noqa: N802
        self.new_event(place)

    def hipEventDestroy(self, event: int) -> None:  # noqa: N802
        self.end(event, Event)

    def hipEventRecord(self, event: int, stream: int) -> None:  # noqa: N802
        self.record(event, stream)

    def hipEventQuery(self, event: int) -> int:  # noqa: N802
        status = self.query(event)
        if status:
            self.last[self.thread] = status
        return status

    def hipEventSynchronize(self, event: int) -> None:  # noqa: N802
        self.wait_event(event)

    def hipEventElapsedTime(self, place: int, start: int, end: int) -> None:  # noqa: N802
        self.elapsed(place, start, end)


def _elf_bytes(header: bytes) -> int:
    """The size of an ELF file, from its header: the section headers come last, as clr takes it."""
    if header[:4] != b"\x7fELF":
        raise StatusError(INVALID_KERNEL_FILE)
    (offset,) = struct.unpack_from("<Q", header, 40)
    size, count = struct.unpack_from("<HH", header, 58)
    return offset + size * count
