"""The checks of one launch: the state that checked code reads, the order of programs by their atomics, and the finding."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilefw.api import Finding, LaunchError, LaunchOptions, Place, UsageError
from tilefw.api.hardware import HeldMemory, ProcessorModule
from tilefw_cpu.checked_access import REGION_WORDS, STATE, Reason, StateWord
from tilefw_cpu.checked_writer import SITES, SMALLEST
from tilefw_cpu.compile import NativeCode

CHECKS = frozenset({"bounds", "alignment", "initialisation", "races"})
_FOUND = {
    Reason.BOUNDS: ("bounds", "TFW0801"), Reason.READ_ONLY: ("bounds", "TFW0809"), Reason.ALIGNMENT: ("alignment", "TFW0802"),
    Reason.INITIALISATION: ("initialisation", "TFW0803"), Reason.RACE: ("races", "TFW0804"),
}
_WRONG = {
    Reason.BOUNDS: "out of bounds", Reason.READ_ONLY: "of read-only memory", Reason.ALIGNMENT: "not aligned to them",
    Reason.INITIALISATION: "that nobody has written", Reason.RACE: "that races with another program's access",
}
_BEGIN = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
_ORDER = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)
_ACQUIRES, _RELEASES = 1, 2
_LAZY = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
_MOST_PROGRAMS = 1 << 31
"""A word of shadow has so many bits for a program."""


def refuse_checked(module: ProcessorModule, entry: str) -> None:
    """Refuse checked code in a launch without checks: the state that it reads is one launch's. Raises UsageError TFW0903."""
    if SITES in module.artifact.metadata:
        raise UsageError(
            f"the code of {entry} makes checks", code="TFW0903", note="it was compiled for launches with some",
            help="say which with `checks=`, or launch code that was compiled without",
        )


class LaunchChecks:
    """State of checked code, which stays where it is until the launch has ended. `serial`: races are followed program by program.
    """

    def __init__(
        self, module: ProcessorModule, entry: str, grid: Sequence[int], memory: Sequence[HeldMemory], options: LaunchOptions
    ) -> None:
        metadata = module.artifact.metadata
        if SITES not in metadata:
            raise UsageError(
                f"the code of {entry} makes no checks", code="TFW0903", note="it was compiled for launches without any",
                help="launch the kernel that the code was made of, with `checks=`",
            )
        self.serial = "races" in options.checks
        self._sites: Sequence[dict[str, Any]] = metadata[SITES].get(entry, ())
        self._grid, self._memory = grid, memory
        self._state = np.zeros(len(StateWord), np.uint64)
        self._order: _ProgramOrder | None = None
        self._kept: list[Any] = []
        shift = int(metadata[SMALLEST][entry]).bit_length() - 1
        table = [self._region(held, shift, options.checks) for held in memory]
        self._put(StateWord.REGIONS, len(table))
        self._put(StateWord.TABLE, self._address(np.array(table, np.uint64).reshape(-1, REGION_WORDS)))
        self._put(StateWord.ALIGNMENT, "alignment" in options.checks)
        self._put(StateWord.SHIFT, shift)
        if self.serial:
            self._follow_order(prod(grid))
        code = module.code
        assert isinstance(code, NativeCode)
        ctypes.c_void_p.from_address(code.variable(STATE)).value = self._state.ctypes.data

    def _put(self, word: StateWord, value: int) -> None:
        self._state[word] = value

    def _address(self, array: np.ndarray[Any, Any]) -> int:
        self._kept.append(array)
        return array.ctypes.data

    def _region(self, held: HeldMemory, shift: int, checks: frozenset[str]) -> tuple[int, ...]:
        defined = 0 if held.defined is None or "initialisation" not in checks else self._address(held.defined)
        shadow = self._address(_zeros(24 * ((held.nbytes >> shift) + 1))) if "races" in checks else 0
        return held.address, held.address + held.nbytes, held.readonly, defined, shadow

    def _follow_order(self, programs: int) -> None:
        if programs >= _MOST_PROGRAMS:
            raise LaunchError(f"races between {programs} programs cannot be followed", "TFW0323", note="2^31 - 1 can")
        self._order = order = _ProgramOrder(programs, self._state[StateWord.EPOCH : StateWord.EPOCH + 1])
        begin, turn = _BEGIN(order.begin), _ORDER(order.turn)
        self._kept += [begin, turn]
        self._put(StateWord.KNOWN, order.known.ctypes.data)
        self._put(StateWord.BEGIN, ctypes.cast(begin, ctypes.c_void_p).value or 0)
        self._put(StateWord.ORDER, ctypes.cast(turn, ctypes.c_void_p).value or 0)

    def findings(self) -> Sequence[Finding]:
        """The first one: an access that fails is not made, and ends the launch."""
        state = self._state
        if not state[StateWord.CLAIMED]:
            return ()
        reason = Reason(int(state[StateWord.REASON]))
        check, code = _FOUND[reason]
        address = int(state[StateWord.ADDRESS])
        site = self._sites[int(state[StateWord.SITE])]
        access = f"{site['verb']} {site['bytes']} bytes"
        message = f"{access} {_WRONG[reason]}, {_location(self._memory, address, site['bytes'])}"
        place = Place(site["file"], site["line"], site["column"]) if "file" in site else None
        program = self._program(int(state[StateWord.PROGRAM]))
        other = self._other() if reason is Reason.RACE else None
        return (Finding(check, code, message, source=place, workgroup=program, address=address, other=other),)

    def _other(self) -> str:
        word = int(self._state[StateWord.OTHER])
        return f"{'an atomic' if word >> 63 else 'an'} access of workgroup {self._program((word & 0xFFFFFFFF) - 1)}"

    def _program(self, number: int) -> tuple[int, int, int]:
        x, y = self._grid[0], self._grid[1]
        return number % x, number // x % y, number // x // y


class _ProgramOrder:
    """Which accesses of earlier programs come before those of the one that runs, by atomics that release and acquire.

    A release at an address hands on all that its program comes after, and what it did itself; whoever acquires there comes after
    that. `known` has for each program the number of its releases that the running one comes after, and 1.
    """

    def __init__(self, programs: int, epoch: np.ndarray[Any, Any]) -> None:
        self.known = np.zeros(programs, np.uint32)
        self._epoch = epoch
        self._program = 0
        self._after: dict[int, int] = {}
        self._released: dict[int, dict[int, int]] = {}

    def begin(self, program: int) -> None:
        """A program begins, after the end of the one before."""
        for other in self._after:
            self.known[other] = 0
        self._after = {}
        self._program = program
        self._epoch[0] = 1

    def turn(self, address: int, what: int) -> None:
        """The program is about to make an atomic access at an address."""
        handed = self._released.setdefault(address, {})
        if what & _ACQUIRES:
            for other, until in handed.items():
                if until > self._after.get(other, 0):
                    self._after[other] = until
                    self.known[other] = until
        if what & _RELEASES:
            now = int(self._epoch[0])
            for other, until in (*self._after.items(), (self._program, now)):
                handed[other] = max(until, handed.get(other, 0))
            self._epoch[0] = now + 1


def _zeros(nbytes: int) -> np.ndarray[Any, Any]:
    """Bytes that take memory only where they are written: of a large array a launch may touch little."""
    try:
        return np.frombuffer(mmap.mmap(-1, nbytes, flags=_LAZY), np.uint8)
    except OSError as error:
        raise LaunchError(f"races are followed in {nbytes:,} bytes of memory, which there are not: {error}", "TFW0340") from None


def _location(memory: Sequence[HeldMemory], address: int, size: int) -> str:
    """Where an address lies, in words; elements have `size` bytes."""
    if address < 4096:
        return f"at address {address:#x}: a null pointer"
    if not memory:
        return f"at address {address:#x}; the launch has no array"
    near = min(memory, key=lambda held: max(held.address - address, address - held.address - held.nbytes + 1, 0))
    name = near.label or f"the memory at {near.address:#x}"
    offset = address - near.address
    if offset < 0:
        return f"at address {address:#x}, {-offset} bytes before {name} of {near.nbytes} bytes"
    element = "" if offset % size else f" (element {offset // size})"
    return f"at address {address:#x}, offset {offset}{element} of {name}, which has {near.nbytes} bytes"
