"""Elements of six bits that stand in bytes, one behind the other as matrix instructions take them: 16 in three registers."""

from __future__ import annotations

from tilefw.api.simt import Code, Const, Element, Registers

_TOGETHER = 4  # registers of bytes that fill three


def packed(code: Code, registers: Registers) -> list[Element]:
    """The elements of registers of four bytes, whatever the bytes hold beside them."""
    words = [_four(code, register) for register in registers]
    return [
        register for first in range(0, len(words), _TOGETHER) for register in _three(code, words[first : first + _TOGETHER])
    ]


def _four(code: Code, register: Element) -> Element:
    """Four elements in 24 bits: neighbours come together by twos, and then the pairs."""
    word = Const("i32", register.bits) if isinstance(register, Const) else register
    return _both(code, _both(code, word, 0x003F003F, 2, 0x0FC00FC0), 0x00000FFF, 4, 0x00FFF000)


def _both(code: Code, word: Element, low: int, shift: int, high: int) -> Element:
    """The bits `low` of a word where they are, and beside them the bits `high` of the shifted one."""
    above = code("andi.i32", code("shru.i32", word, code.i32(shift)), code.i32(high))
    return code("ori.i32", above, code("andi.i32", word, code.i32(low)))


def _three(code: Code, words: list[Element]) -> tuple[Element, ...]:
    """Four words of 24 bits as three of 32."""

    def joined(low: Element, down: int, high: Element, up: int) -> Element:
        below = code("shru.i32", low, code.i32(down)) if down else low
        return code("ori.i32", code("shl.i32", high, code.i32(up)), below)

    return tuple(joined(words[i], 8 * i, words[i + 1], 24 - 8 * i) for i in range(_TOGETHER - 1))
