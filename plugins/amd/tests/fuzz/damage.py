"""How files are damaged: bytes cut, flipped, overwritten, spliced; text with pieces moved, repeated, put in."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence

# Values at which sizes, offsets and counts go wrong.
_EDGES = (0, 1, 2, 3, 7, 63, 64, 127, 128, 255, 256, 4095, 4096, 0x7FFF, 0x8000, 0xFFFF, 1 << 20, 1 << 27, 1 << 31, (1 << 32) - 1,
          1 << 32, 1 << 48, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_EHDR_BYTES, _SHDR_BYTES = 64, 64
PIECES = (
    "{", "}", "[", "]", "(", ")", ",", ":", ";", "/*", "*/", "//", "-", "+", "~", "|", "||", "<<", "%", "/0", '"', "\\", "'",
    "\n", "\x00", "é", "0x", "0b", "1e", "1e999", "-0.0", "9" * 60, "s0", "s[0:1]", "s[1:2]", "v255", "v[255:256]", "a0", "vcc",
    "exec", "m0", "off", "lds", ".L", ".Lx:", ".set x, x", ".text", ".section", ".zero 99999999999", ".fill 1<<40",
    ".rept 9999999", ".endr", ".if 1", ".p2align 63", ".org 1<<40", ".byte", ".long .", ".amdhsa_kernel k",
    ".end_amdhsa_kernel", ".amdhsa_next_free_vgpr 1<<70", ".amdgpu_metadata", ".end_amdgpu_metadata", "v_add_f32",
    "s_waitcnt vmcnt(64)", "offset:", "dst_sel:BYTE_9", "quad_perm:[0,1,2,9]", "op_sel:[1,1,1,1,1]", "hwreg(", "sendmsg(MSG_",
    "v_mfma_f32_32x32x8_f16", "s_branch 99999", "&a", "*a", "<<: *a", "- - - -", "&a [*a,*a,*a]", "!!python/object:os.system",
)


def cut(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """The beginning of the file."""
    return data[: rng.randrange(len(data))]


def flip(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """One to eight bits, wherever the file says something."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        made[_place(rng, data)] ^= 1 << rng.randrange(8)
    return bytes(made)


def overwrite(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """One to three fields of 1, 2, 4 or 8 bytes with values at which sizes go wrong."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        width = rng.choice((1, 2, 4, 8))
        at = _place(rng, data) // width * width
        value = rng.choice((*_EDGES, len(data), len(data) - at)) % (1 << 8 * width)
        made[at : at + width] = value.to_bytes(width, "little")
    return bytes(made[: len(data)])


def splice(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The head of one file and the tail of another, a part of another put in, or a part left out."""
    other = rng.choice(others)
    at = rng.randrange(len(data))
    kind = rng.randrange(4)
    if kind == 0:
        return data[:at] + other[rng.randrange(len(other)) :]
    if kind == 1:
        return data[:at] + other[at:]
    size = 1 << rng.randrange(10)
    begin = rng.randrange(len(other))
    piece = other[begin : begin + size] if kind == 2 else b""
    return data[:at] + piece + data[at + size :]


def _place(rng: random.Random, data: bytes) -> int:
    """A byte: as often of the headers, of a section that is not code, as of all."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randrange(min(_EHDR_BYTES, len(data)))
    (sections,) = struct.unpack_from("<Q", data, 40)
    if kind == 1 and sections < len(data):
        return rng.randrange(sections, len(data))
    if kind == 2:
        return rng.randrange(min(len(data), 0x900))  # program headers, note, symbols, descriptors
    return rng.randrange(len(data))


Damage = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
DAMAGES: Mapping[str, Damage] = {"cut": cut, "flipped": flip, "overwritten": overwrite, "spliced": splice}


def text(rng: random.Random, whole: str, others: Sequence[str]) -> str:
    """One to four places changed: left out, repeated, from elsewhere or another file, or a piece that means something."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        start = rng.randrange(len(whole) + 1)
        end = min(len(whole), start + rng.choice((0, 1, 1, 2, 5, 20, 200)))
        source = rng.choice((whole, rng.choice(others)))
        begin = rng.randrange(len(source))
        piece = rng.choice((
            "", rng.choice(PIECES), "\n" + rng.choice(PIECES) + "\n", source[begin : begin + rng.randint(1, 60)],
            rng.choice(PIECES) * rng.randint(1, 200),
        ))
        whole = whole[:start] + piece + whole[end:]
    return whole
