"""The instructions of a kernel as they stand in a code object: decoded from end to end, with where each of them may lead.

The kernel's own code comes first, from the place where execution begins; then what is before that place, and the functions that
it may call. What no path leads to stays only if it is code: padding, data and the prologue for other firmware go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tilefw.api.errors import CodeError
from tilefw_amd.code_object import CodeObject, ObjectKernel
from tilefw_amd.code_object.descriptor import PRELOAD_PROLOGUE_BYTES
from tilefw_amd.isa.encoding.decode import decode
from tilefw_amd.isa.model import BranchTarget, MCInst
from tilefw_amd.isa.set import InstructionSet

WORD = 4
_PADDING = frozenset({"s_nop", "s_code_end", "v_nop"})
_ENDS = frozenset({"s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"})
_JUMPS = frozenset({"s_setpc_b64", "s_swappc_b64"})


@dataclass(frozen=True, slots=True)
class Word:
    """One decoded instruction at byte `offset` of the image, in the `function` that begins at `start`. `inst` None: the bytes mean
    nothing, or (`size` 0) there are none; `why` says it."""

    offset: int
    size: int
    inst: MCInst | None
    function: str
    start: int
    why: str = ""

    @property
    def jumps(self) -> bool:
        """Whether it goes to an address that the code computes."""
        return self.inst is not None and self.inst.form.row.name in _JUMPS

    @property
    def calls(self) -> bool:
        """Whether somebody may come back to the next instruction."""
        return self.inst is not None and self.inst.form.row.name in ("s_swappc_b64", "s_call_b64", "s_getpc_b64")

    @property
    def falls_through(self) -> bool:
        """Whether the next instruction may follow; code goes on behind bytes that mean nothing, though nobody comes that far."""
        if self.inst is None:
            return self.size > 0
        return not self.jumps and self.inst.form.row.name not in _ENDS | {"s_branch"}

    @property
    def target(self) -> int | None:
        """The byte offset that a branch goes to."""
        if self.inst is None:
            return None
        goal = next((operand for operand in self.inst.operands if isinstance(operand, BranchTarget)), None)
        return None if goal is None else self.offset + self.size + WORD * goal.offset


def words(isa: InstructionSet, code_object: CodeObject, kernel: ObjectKernel) -> tuple[Word, ...]:
    """The instructions of the kernel's program, its entry first."""
    prologue = PRELOAD_PROLOGUE_BYTES if kernel.descriptor.user_sgpr_kernarg_preload_length else 0
    entry = min(prologue, kernel.size)
    image = code_object.image
    found = list(_sweep(isa, image, kernel.name, kernel.address, entry, kernel.size))
    found += _sweep(isa, image, kernel.name, kernel.address, 0, entry)
    if not any(word.jumps for word in found):
        return tuple(_without_padding(found, entry and kernel.address + entry))
    for function in code_object.functions:
        found += _sweep(isa, image, function.name, function.address, 0, function.size)
    return tuple(found)


def branch_pairs(found: Sequence[Word]) -> frozenset[int]:
    """Numbers of the conditional branches that an unconditional one follows."""
    names = [word.inst.form.row.name if word.inst is not None else "" for word in found]
    pairs = enumerate(pairwise(names))
    return frozenset(i for i, (first, second) in pairs if first.startswith("s_cbranch_") and second == "s_branch")


def by_offset(found: Sequence[Word]) -> dict[int, int]:
    """Numbers of instructions by byte offset."""
    return {word.offset: index for index, word in enumerate(found) if word.size}


def _sweep(isa: InstructionSet, image: bytes, function: str, address: int, begin: int, end: int) -> Iterator[Word]:
    """Instructions one behind the other, 4 bytes further after what means nothing; at last one for running past the end."""
    code = image[: address + end]
    at = address + begin
    while at < len(code):
        try:
            found = decode(isa, code, at)
        except CodeError as error:
            yield Word(at, WORD, None, function, address, f"undefined encoding: {error.note}")
            at += WORD
        else:
            yield Word(at, found.size, found, function, address)
            at += found.size
    if begin < end:
        yield Word(at, 0, None, function, address, f"execution runs past the end of {function}")


def _without_padding(found: list[Word], entry: int) -> Iterator[Word]:
    """All that a path leads to, and what else is code behind the byte offset `entry`; where the kernel asks for its own address,
    what no path leads to may be its data."""
    reached = _reached(found)
    has_data = any(word.inst is not None and word.inst.form.row.name == "s_getpc_b64" for word in found)
    for index, word in enumerate(found):
        code = word.inst is not None and word.inst.form.row.name not in _PADDING and word.offset >= entry
        if index in reached or (code and not has_data):
            yield word


def _reached(found: list[Word]) -> set[int]:
    at = by_offset(found)
    reached: set[int] = set()
    open_ = [0]
    while open_:
        index = open_.pop()
        while index not in reached and index < len(found):
            reached.add(index)
            word = found[index]
            if word.target is not None and word.target in at:
                open_.append(at[word.target])
            if not word.falls_through:
                break
            index += 1
    return reached
