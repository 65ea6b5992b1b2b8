"""Which bits of a register can be set at all, from the number of threads and the bit instructions between: masks of other bits
change nothing."""

from __future__ import annotations

import functools
import re

from oracles.site import Site

_ALL = (1 << 32) - 1
_DEFINITION = re.compile(r"^\s*(?P<guard>@!?%\w+\s+)?(?P<opcode>[a-z][\w.]*)\s+(?P<result>%r\d+),\s*(?P<sources>[^;{]*);")
_WORD = re.compile(r"[%\w]+")
_VECTOR = re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z][\w.]*\s+\{(?P<results>[^}]*)\}")
_MASK = re.compile(r"and\.b32 (?P<result>%r\d+), (?P<source>%r\d+), (?P<literal>\d+);")
_THREADS = re.compile(r"\.(?:req|max)ntid (\d+)(?:, 1, 1)?\s*$", re.M)


def same_value(ptx: str, site: Site) -> str:
    """Why the register that the changed instruction writes is the same in every thread; empty where this does not show it."""
    before, after = _MASK.fullmatch(site.before), _MASK.fullmatch(site.after)
    if before is None or after is None:
        return ""
    differing = int(before["literal"]) ^ int(after["literal"])
    if differing & _known(ptx).possible(before["source"]):
        return ""
    return f"proved: no thread has bit {differing.bit_length() - 1} of {before['source']} set"


def same_number(ptx: str, site: Site) -> str:
    """Why a register that a number has replaced has this very value; empty where this does not show it."""
    replaced = [pair for pair in zip(_WORD.findall(site.before), _WORD.findall(site.after), strict=False) if pair[0] != pair[1]]
    if len(replaced) != 1 or not replaced[0][1].isdigit():
        return ""
    register, number = replaced[0]
    value = _known(ptx).number(register)
    return f"proved: {register} is {number} in every thread" if value == int(number) else ""


@functools.lru_cache(4)
def _known(ptx: str) -> _KnownBits:
    return _KnownBits(ptx)


class _KnownBits:
    """The registers that one instruction alone writes, in every thread."""

    def __init__(self, ptx: str) -> None:
        self._made: dict[str, tuple[str, list[str]] | None] = {}
        for line in ptx.splitlines():
            if vector := _VECTOR.match(line):
                self._made |= dict.fromkeys((part.strip() for part in vector["results"].split(",")), None)
            elif match := _DEFINITION.match(line.split("//")[0]):
                sources = [part.strip() for part in match["sources"].split(",")]
                once = match["result"] not in self._made and match["guard"] is None
                self._made[match["result"]] = (match["opcode"], sources) if once else None
        threads = _THREADS.search(ptx)
        self._index = _below(int(threads[1])) if threads else _ALL
        self._masks: dict[str, int] = {}

    def number(self, register: str) -> int | None:
        """The value of a register that one move of a number alone writes; None of any other."""
        made = self._made.get(register)
        if made is None or made[0] not in ("mov.b32", "mov.u32") or not made[1][0].isdigit():
            return None
        return int(made[1][0])

    def possible(self, operand: str) -> int:
        """A mask of the bits that may be set in some thread."""
        if operand.isdigit():
            return int(operand)
        if operand == "%tid.x":
            return self._index
        if operand not in self._masks:
            self._masks[operand] = _ALL  # what a loop comes back to
            made = self._made.get(operand)
            if made is not None:
                self._masks[operand] = self._result(*made)
        return self._masks[operand]

    def _result(self, opcode: str, sources: list[str]) -> int:
        masks = [self.possible(source) for source in sources]
        match opcode:
            case "mov.u32" | "mov.b32":
                return masks[0]
            case "and.b32":
                return masks[0] & masks[1]
            case "or.b32" | "xor.b32":
                return masks[0] | masks[1]
            case "shl.b32" if sources[1].isdigit():
                return masks[0] << int(sources[1]) & _ALL
            case "shr.u32" if sources[1].isdigit():
                return masks[0] >> int(sources[1])
        return _ALL


def _below(count: int) -> int:
    """The bits of numbers below `count`."""
    return (1 << (count - 1).bit_length()) - 1
