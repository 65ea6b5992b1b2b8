"""The two hash tables of dynamic symbols that loaders look names up in (System V ABI "Hash Table"; GNU's with a Bloom filter)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_WORD = 64
# As ld.lld makes them: four symbols a bucket, twelve bits of the filter a symbol, this second shift.
_SYMBOLS_A_BUCKET, _BITS_A_SYMBOL, _SHIFT = 4, 12, 26


def system_v_hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def gnu_hash(name: str) -> int:
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def buckets(count: int) -> int:
    """Buckets of GNU's table for so many symbols."""
    return max(count // _SYMBOLS_A_BUCKET, 1)


def in_bucket_order(names: Sequence[str]) -> list[str]:
    """The order in which GNU's table wants the symbols to stand."""
    return sorted(names, key=lambda name: gnu_hash(name) % buckets(len(names)))


def system_v_table(names: Sequence[str]) -> bytes:
    """`.hash` for the symbols 1, 2, … of these names."""
    count = len(names) + 1
    first, chain = [0] * count, [0] * count
    for number, name in enumerate(names, 1):
        bucket = system_v_hash(name) % count
        chain[number], first[bucket] = first[bucket], number
    return struct.pack(f"<{2 + 2 * count}I", count, count, *first, *chain)


def gnu_table(names: Sequence[str]) -> bytes:
    """`.gnu.hash` for the symbols 1, 2, … of these names, which stand in bucket order."""
    count = buckets(len(names))
    words = 1 << (len(names) * _BITS_A_SYMBOL // _WORD).bit_length()
    bloom, first, chain = [0] * words, [0] * count, []
    for number, name in enumerate(names, 1):
        value = gnu_hash(name)
        bloom[value // _WORD % words] |= 1 << value % _WORD | 1 << (value >> _SHIFT) % _WORD
        bucket = value % count
        first[bucket] = first[bucket] or number
        last = number == len(names) or gnu_hash(names[number]) % count != bucket
        chain.append(value & ~1 | last)
    header = struct.pack("<IIII", count, 1, words, _SHIFT)
    return header + struct.pack(f"<{words}Q{count}I{len(chain)}I", *bloom, *first, *chain)
