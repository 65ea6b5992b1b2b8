"""What the functions of the HIP runtime do, on our simulator; rules and status codes as ROCm's clr has them (`hip_module.cpp`,
`hip_memory.cpp`, `hip_event.cpp`, `hip_peer.cpp`)."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from standin.streams import Event, HipError, Stream
from tilefw.api import DEFAULT_CHECKS, Artifact, CodeError, Entry, LaunchOptions
from tilefw.api.errors import LaunchError
from tilefw.api.sim import LoadedProgram
from tilefw_amd import code_object
from tilefw_amd.chips.targets import target
from tilefw_amd.simulate import arguments
from tilefw_amd.simulate.decode import KernelProgram
from tilefw_amd.simulate.device import Simulator

if TYPE_CHECKING:
    from standin.server import Process, StandIn

INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONFIGURATION, INVALID_DEVICE, NO_BINARY, INVALID_KERNEL_FILE = 1, 2, 9, 101, 209, 218
INVALID_HANDLE, NOT_FOUND, NOT_READY, ILLEGAL_ADDRESS, PEER_ALREADY_ENABLED, LAUNCH_FAILURE = 400, 500, 600, 700, 704, 719
NAMES = {
    0: ("hipSuccess", "no error"), 1: ("hipErrorInvalidValue", "invalid argument"), 2: ("hipErrorOutOfMemory", "out of memory"),
    9: ("hipErrorInvalidConfiguration", "invalid configuration argument"),
    98: ("hipErrorInvalidDeviceFunction", "invalid device function"),
    209: ("hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"),
    218: ("hipErrorInvalidKernelFile", "invalid kernel file"), 500: ("hipErrorNotFound", "named symbol not found"),
    700: ("hipErrorIllegalAddress", "an illegal memory access was encountered"),
    719: ("hipErrorLaunchFailure", "unspecified launch failure"),
}  # fmt: skip
NANOSECOND = 1e-9  # what the stand-in's card takes for an instruction


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


class Runtime:
    """The runtime of one process; methods are the library's functions, with their parameters as 64-bit words."""

    def __init__(self, standin: StandIn, process: Process) -> None:
        self.standin, self.process, self.thread = standin, process, 0
        self.current: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.simulator = None if standin.simulated is None else GivenArguments(target(standin.simulated))
        self.allocations: dict[int, tuple[int, int, int]] = {}  # address: (handle, bytes, card)
        self.objects: dict[int, Any] = {}  # modules, functions, streams, events by handle
        self.default = [Stream(card) for card in range(len(standin.cards))]
        self.clock = [0.0] * len(standin.cards)
        self.enabled: set[tuple[int, int]] = set()
        self.failed = 0

    # -- what the functions share ---------------------------------------------------------------------------------------------

    @property
    def card(self) -> int:
        return self.current.get(self.thread, 0)

    def out(self, place: int, form: str, value: Any) -> None:
        self.process.write(place, struct.pack("<" + form, value))

    def keep(self, thing: Any) -> int:
        handle = 0x10000 + 16 * len(self.objects)
        self.objects[handle] = thing
        return handle

    def found(self, handle: int, kind: type) -> Any:
        thing = self.objects.get(handle)
        if not isinstance(thing, kind):
            raise HipError(INVALID_HANDLE)
        return thing

    def stream(self, handle: int) -> Stream:
        return self.found(handle, Stream) if handle else self.default[self.card]

    def streams(self) -> list[Stream]:
        return [*self.default, *(one for one in self.objects.values() if isinstance(one, Stream))]

    def finish(self, stream: Stream | None = None) -> None:
        """Do the work of a stream, or of all; a card that has failed says so from then on."""
        for one in self.streams() if stream is None else [stream]:
            one.run()
        self.check()

    def check(self) -> None:
        if self.failed:
            raise HipError(self.failed)

    def region(self, address: int) -> tuple[int, int]:
        """(Base address, offset) of the allocation around an address."""
        bases = sorted(self.allocations)
        at = bisect.bisect_right(bases, address) - 1
        if at < 0 or address >= bases[at] + max(1, self.allocations[bases[at]][1]):
            raise HipError(INVALID_VALUE)
        return bases[at], address - bases[at]

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
            raise HipError(INVALID_DEVICE)
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
        self.out(place, "i", int(peer in self.standin.cards[card].peers))

    def hipDeviceEnablePeerAccess(self, peer: int, flags: int) -> int:  # noqa: N802
        if flags or peer not in self.standin.cards[self.card].peers:
            raise HipError(INVALID_DEVICE)
        pair = self.card, peer
        status = PEER_ALREADY_ENABLED if pair in self.enabled else 0
        self.enabled.add(pair)
        return status

    def hipGetErrorName(self, place: int, status: int) -> None:  # noqa: N802
        self.process.write(place, NAMES.get(status, ("hipErrorUnknown", ""))[0].encode() + b"\0")

    def hipGetErrorString(self, place: int, status: int) -> None:  # noqa: N802
        self.process.write(place, NAMES.get(status, ("", "unknown error"))[1].encode() + b"\0")

    # -- memory ---------------------------------------------------------------------------------------------------------------

    def hipMalloc(self, place: int, size: int) -> None:  # noqa: N802
        self.check()
        used = sum(nbytes for _, nbytes, card in self.allocations.values() if card == self.card)
        if used + size > self.standin.cards[self.card].memory_bytes:
            raise HipError(OUT_OF_MEMORY)
        assert self.simulator is not None
        handle = self.simulator.allocate(size)
        address = self.simulator._memory.region(handle).base
        self.allocations[address] = handle, size, self.card
        self.out(place, "Q", address)

    def hipFree(self, address: int) -> None:  # noqa: N802
        self.finish()
        if address not in self.allocations:
            raise HipError(INVALID_VALUE)
        assert self.simulator is not None
        self.simulator.free(self.allocations.pop(address)[0])

    def hipMemGetInfo(self, free: int, total: int) -> None:  # noqa: N802
        size = self.standin.cards[self.card].memory_bytes
        used = sum(nbytes for _, nbytes, card in self.allocations.values() if card == self.card)
        self.out(free, "Q", size - used)
        self.out(total, "Q", size)

    def hipMemcpy(self, target: int, source: int, size: int, kind: int) -> None:  # noqa: N802
        self.finish(self.default[self.card])
        self.copy(target, source, size, kind)

    def hipMemcpyAsync(self, target: int, source: int, size: int, kind: int, stream: int) -> None:  # noqa: N802
        self.check()
        self.stream(stream).put(lambda: self.copy(target, source, size, kind))

    def copy(self, target: int, source: int, size: int, kind: int) -> None:
        assert self.simulator is not None
        if kind == 1:
            data = self.process.read(source, size)
        else:
            base, offset = self.region(source)
            data = self.simulator.read(self.allocations[base][0], size, offset)
        if kind == 2:
            self.process.write(target, data)
        else:
            base, offset = self.region(target)
            self.simulator.write(self.allocations[base][0], data, offset)

    def hipPointerGetAttributes(self, place: int, address: int) -> int:  # noqa: N802
        try:
            base, _ = self.region(address)
        except HipError:
            self.last[self.thread] = INVALID_VALUE
            return INVALID_VALUE
        self.process.write(place, struct.pack("<iiQQiI", 2, self.allocations[base][2], address, 0, 0, 0))
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
            raise HipError(NO_BINARY if data[18:20] == b"\xe0\x00" else INVALID_KERNEL_FILE) from None
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
            raise HipError(NOT_FOUND)
        self.out(place, "Q", self.keep([loaded, kernels[word]]))

    def hipModuleLaunchKernel(self, function: int, *words: int) -> None:  # noqa: N802
        self.check()
        loaded, kernel = self.found(function, list)
        grid, block, (shared, stream, parameters, extra) = words[:3], words[3:6], words[6:]
        assert self.simulator is not None
        limits = self.simulator.isa.chip.limits
        threads = block[0] * block[1] * block[2]
        if not all(grid) or threads > limits["threads_per_workgroup"] or shared > limits["shared_bytes"]:
            raise HipError(INVALID_VALUE)
        if max(grid[1:]) > 1 << 16 or parameters or not extra:
            raise HipError(INVALID_VALUE)
        if not threads or grid[0] * block[0] >= 1 << 32:
            raise HipError(INVALID_CONFIGURATION)
        given = self.given(extra)
        queue = self.stream(stream)
        card = self.card
        queue.put(lambda: self.execute(loaded, kernel, grid, block, shared, given, card))

    def given(self, extra: int) -> bytes:
        """The argument block of the `extra` array."""
        keys = struct.unpack("<5Q", self.process.read(extra, 40))
        if (keys[0], keys[2], keys[4]) != (1, 2, 3):
            raise HipError(INVALID_VALUE)
        (size,) = struct.unpack("<Q", self.process.read(keys[3], 8))
        return self.process.read(keys[1], size)

    def execute(self, loaded: Any, kernel: Any, grid: Any, block: Any, shared: int, given: bytes, card: int) -> None:
        assert self.simulator is not None
        if self.failed:
            return
        if self.unreachable(kernel, given, card):
            self.failed = ILLEGAL_ADDRESS
            return
        self.simulator.given = given
        options = LaunchOptions(block=tuple(block), dynamic_shared=shared, checks=DEFAULT_CHECKS, numerics="hw")
        try:
            report = self.simulator.launch(loaded, kernel.name, grid, (), options)
        except LaunchError as error:
            self.standin.problems.append(error.message)
            self.failed = LAUNCH_FAILURE
            return
        self.clock[card] += report.counters.get("instructions", 0) * NANOSECOND
        if report.errors:
            self.standin.problems += [f"{finding.check}: {finding.message}" for finding in report.errors]
            self.failed = ILLEGAL_ADDRESS if report.errors[0].check == "bounds" else LAUNCH_FAILURE

    def unreachable(self, kernel: Any, given: bytes, card: int) -> bool:
        """Whether an argument points to memory of another card that is not a peer."""
        for argument in kernel.metadata.arguments:
            if argument.pointer:
                address = int.from_bytes(given[argument.offset : argument.offset + 8], "little")
                owner = next((c for base, (_, size, c) in self.allocations.items() if base <= address < base + max(1, size)), card)
                if owner != card and (card, owner) not in self.enabled:
                    return True
        return False

    # -- streams and events ---------------------------------------------------------------------------------------------------

    def hipStreamCreateWithFlags(self, place: int, flags: int) -> None:  # noqa: N802
        self.out(place, "Q", self.keep(Stream(self.card)))

    def hipStreamDestroy(self, stream: int) -> None:  # noqa: N802
        self.finish(self.found(stream, Stream))
        self.objects[stream] = None

    def hipStreamSynchronize(self, stream: int) -> None:  # noqa: N802
        self.finish(self.stream(stream))

    def hipStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:  # noqa: N802
        found = self.found(event, Event)
        # The record that stands now counts, not one that comes later.
        before, place = found.stream, found.place
        self.stream(stream).put(lambda: before.run(place) if before is not None else None)

    def hipEventCreateWithFlags(self, place: int, flags: int) -> None:  # noqa: N802
        self.out(place, "Q", self.keep(Event(self.card)))

    def hipEventDestroy(self, event: int) -> None:  # noqa: N802
        self.found(event, Event)
        self.objects[event] = None

    def hipEventRecord(self, event: int, stream: int) -> None:  # noqa: N802
        self.check()
        found, queue = self.found(event, Event), self.stream(stream)
        if found.card != queue.card:
            raise HipError(INVALID_HANDLE)
        found.record(queue, lambda: self.clock[queue.card])

    def hipEventQuery(self, event: int) -> int:  # noqa: N802
        self.check()
        found = self.found(event, Event)
        if found.stream is not None and found.stream.done < found.place:
            self.last[self.thread] = NOT_READY
            return NOT_READY
        return 0

    def hipEventSynchronize(self, event: int) -> None:  # noqa: N802
        self.found(event, Event).wait()
        self.check()

    def hipEventElapsedTime(self, place: int, start: int, end: int) -> None:  # noqa: N802
        first, last = self.found(start, Event), self.found(end, Event)
        if first.time is None or last.time is None:
            raise HipError(NOT_READY)
        self.out(place, "f", 1000 * (last.time - first.time))


def _elf_bytes(header: bytes) -> int:
    """The size of an ELF file, from its header: the section headers come last, as clr takes it."""
    if header[:4] != b"\x7fELF":
        raise HipError(INVALID_KERNEL_FILE)
    (offset,) = struct.unpack_from("<Q", header, 40)
    size, count = struct.unpack_from("<HH", header, 58)
    return offset + size * count
