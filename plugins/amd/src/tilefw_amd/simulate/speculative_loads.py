"""Loads that a compare-and-swap verifies: the speculative first load of a loop that makes an atomic operation out of them.

Where a chip has no instruction for an atomic operation of some scope or type, LLVM writes such a loop (AtomicExpandPass,
`insertRMWCmpXchgLoop`), and its first load is a plain one: a stale value costs one more iteration and nothing else. So it races
with no atomic operation, only with plain stores, as a load of the system's scope does; it is bound as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilefw_amd.isa.model import MCInst, Operand, RegisterTuple
from tilefw_amd.simulate.kernel import Word

_PREFIXES = ("global", "flat", "buffer")
# By the load's name: the name of the compare-and-swap, and the registers of one value.
_VERIFIED_BY = {
    f"{prefix}_load_{load}": (f"{prefix}_atomic_{swap}", count)
    for prefix in _PREFIXES for load, swap, count in (("dword", "cmpswap", 1), ("dwordx2", "cmpswap_x2", 2))
}
_SWAPS = frozenset(swap for swap, _ in _VERIFIED_BY.values())
_REACH = 64  # instructions from the load to the swap, at most: the operation itself stands between


def with_speculative_loads(words: Sequence[Word]) -> list[MCInst | None]:
    """The instructions of the words, speculative loads with the scope that they act with."""
    found = [word.inst for word in words]
    for index, word in enumerate(words):
        if word.inst is None or word.inst.form.row.name not in _SWAPS:
            continue
        for before in _speculative_loads(words[max(0, index - _REACH) : index], word.inst):
            position = index - min(_REACH, index) + before
            inst = words[position].inst
            assert inst is not None
            found[position] = replace(inst, modifiers={**inst.modifiers, "sc0": 1, "sc1": 1})
    return found


def _speculative_loads(words: Sequence[Word], swap: MCInst) -> Iterator[int]:
    """Which of the words load what the swap compares with, from where it swaps."""
    data = _operand(swap, "a") or _operand(swap, "d")  # buffers have the data where the result goes
    assert isinstance(data, RegisterTuple)
    count = data.count // 2  # CDNA3 ISA, "Flat memory instructions": the value to store, then the one to compare with
    compared = RegisterTuple(data.file, data.index + count, count)
    for index, word in enumerate(words):
        if word.inst is None or _VERIFIED_BY.get(word.inst.form.row.name) != (swap.form.row.name, count):
            continue
        if _operand(word.inst, "d") == compared and _address(word.inst) == _address(swap):
            yield index


def _operand(inst: MCInst, name: str) -> Operand:
    place = inst.form.by_name.get(name)
    return None if place is None else inst.operands[place]


def _address(inst: MCInst) -> tuple[list[Operand], object]:
    pairs = zip(inst.form.operands, inst.operands, strict=True)
    return [operand for form, operand in pairs if form.role == "address"], inst.modifiers.get("offset", 0)
