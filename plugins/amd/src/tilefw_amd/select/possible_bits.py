"""Which bits of a word may be set, by what made it: thread indices, and what is masked, shifted and joined of them.

The bits of layouts come from disjoint fields of the thread index. Where two words share no bit that may be set, their exclusive or
is their sum, which instructions of three sources take in (`combine`): V_LSHL_ADD_U32, V_ADD3_U32, V_ADD_LSHL_U32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Code, Const, Element

_MASK = 0xFFFFFFFF
_DEPTH = 16  # makers that are looked through, one behind the other


def disjoint(code: Code, x: Element, y: Element) -> bool:
    """Whether no bit may be set in both of two words."""
    return possible_bits(code, x) & possible_bits(code, y) == 0


def possible_bits(code: Code, word: Element) -> int:
    """The bits of a word of 32 that may be set."""
    return word.bits & _MASK if isinstance(word, Const) else _of(code, word, _DEPTH, {})


def _of(code: Code, operand: Operand, depth: int, known: dict[Operand, int]) -> int:
    if operand not in known:
        known[operand] = operand & _MASK if isinstance(operand, int) else _made(code, operand, depth, known)
    return known[operand]


def _made(code: Code, operand: Operand, depth: int, known: dict[Operand, int]) -> int:
    inst = code.maker(operand) if depth and isinstance(operand, Slice) else None
    if inst is None:
        return _MASK
    if inst.opcode == "move.v":
        source = inst.uses[0]
        if isinstance(source, Slice) and source.reg.physical:
            return _thread_bits(code) if source.reg.cls == "v" else _MASK
        return _of(code, source, depth - 1, known)
    rule = _RULES.get(inst.opcode)
    return _MASK if rule is None else rule([_of(code, use, depth - 1, known) for use in inst.uses], inst.uses)


def _thread_bits(code: Code) -> int:
    """Of the index of a thread in its workgroup, the one register that a launch sets."""
    workgroup = code.function.attributes.workgroup
    return _MASK if workgroup is None else (1 << (workgroup[0] - 1).bit_length()) - 1


def _shifted(shift: Callable[[int, int], int]) -> Callable[[Sequence[int], Sequence[Operand]], int]:
    """By a constant, which stands first."""
    return lambda bits, uses: shift(bits[1], uses[0] & 31) & _MASK if isinstance(uses[0], int) else _MASK


def _sum(bits: Sequence[int], uses: Sequence[Operand]) -> int:
    """Of what shares no bit nothing is carried."""
    return bits[0] | bits[1] if bits[0] & bits[1] == 0 else _MASK


_RULES: dict[str, Callable[[Sequence[int], Sequence[Operand]], int]] = {
    "v_and_b32": lambda bits, uses: bits[0] & bits[1],
    "v_or_b32": lambda bits, uses: bits[0] | bits[1],
    "v_xor_b32": lambda bits, uses: bits[0] | bits[1],
    "v_add_u32": _sum,
    "v_lshlrev_b32": _shifted(lambda bits, amount: bits << amount),
    "v_lshrrev_b32": _shifted(lambda bits, amount: bits >> amount),
}
