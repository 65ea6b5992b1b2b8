"""The registers of the family: their names in LLVM's syntax, the rules of tuples, and their numbers in a program of the simulator.

Codes: CDNA3 ISA, table "Scalar operands". Names: LLVM's `AMDGPUUsage.rst` and `SIRegisterInfo.td`. Tuples: 64 bits and wider of
vector and accumulation registers begin at an even register, unless the instruction takes any (`any first register` of its row);
pairs of scalar registers begin at an even one, wider tuples at a multiple of four.
"""

from __future__ import annotations

import functools
import re

from tilefw_amd.isa.model import File, RegisterTuple

SGPRS = 102
VECTORS = 256

VCC = RegisterTuple("s", 106, 2)
TTMP0 = 108
M0 = RegisterTuple("s", 124)
EXEC = RegisterTuple("s", 126, 2)

# Scalar pairs with a name of their own, by the code of their low half.
PAIRS = {102: "flat_scratch", 104: "xnack_mask", 106: "vcc", 126: "exec"}
# Scalar operands that are read only: they have a code, but no register of the file behind it.
READ_ONLY = {
    235: "src_shared_base",
    236: "src_shared_limit",
    237: "src_private_base",
    238: "src_private_limit",
    239: "src_pops_exiting_wave_id",
    251: "src_vccz",
    252: "src_execz",
    253: "src_scc",
}

# Numbers in a program of the simulator: a vector or accumulation register, a scalar code, then what has no code.
_BASE: dict[File, int] = {"v": 0, "a": VECTORS, "s": 2 * VECTORS}
SCC = 2 * VECTORS + 128
EXEC_MASK = SCC + 1
COUNT = EXEC_MASK + 1


def number(register: RegisterTuple) -> tuple[int, ...]:
    """The numbers of the 32-bit registers that `register` names; ValueError for a read-only operand, which has none."""
    if register.file == "s" and register.index >= 128:
        raise ValueError(f"{name(register)} is a value that is read, no register")
    first = _BASE[register.file] + register.index
    return tuple(range(first, first + register.count))


def register(number: int) -> RegisterTuple:
    """The 32-bit register of a number below `SCC`: what `number` gave."""
    if number >= 2 * VECTORS:
        return RegisterTuple("s", number - 2 * VECTORS)
    return RegisterTuple("a" if number >= VECTORS else "v", number % VECTORS)


@functools.cache
def name(register: RegisterTuple) -> str:
    """The name as LLVM prints it: `v3`, `a[0:3]`, `s[4:5]`, `vcc`, `vcc_lo`, `ttmp[4:7]`."""
    file, index, count = register
    if file != "s":
        return _tuple(file, index, count)
    if index in READ_ONLY:
        return READ_ONLY[index]
    if index == M0.index:
        return "m0"
    if index & ~1 in PAIRS:
        pair = PAIRS[index & ~1]
        return pair if count == 2 else f"{pair}_{'hi' if index & 1 else 'lo'}"
    if index >= TTMP0:
        return _tuple("ttmp", index - TTMP0, count)
    return _tuple("s", index, count)


def _tuple(letter: str, index: int, count: int) -> str:
    return f"{letter}{index}" if count == 1 else f"{letter}[{index}:{index + count - 1}]"


def named(text: str) -> RegisterTuple | None:
    """The register that `text` names, or None when it is not a name; `missing` and `misaligned` say whether it exists."""
    found = _SPECIAL.get(text)
    if found is not None:
        return found
    match = _NAME.match(text)
    if match is None:
        return None
    first = int(match["single"] or match["first"])
    last = int(match["last"] or first)
    if last < first:
        return None
    if match["file"] == "ttmp":
        if TTMP0 + first >= M0.index:  # the code of another register
            return None
        first, last = first + TTMP0, last + TTMP0
    file: File = "a" if match["file"] in ("a", "acc") else "v" if match["file"] == "v" else "s"
    if match["file"] == "s" and last >= SGPRS:  # s102 is not a register: codes from 102 have other names
        return None
    return RegisterTuple(file, first, last - first + 1)


def missing(register: RegisterTuple) -> str:
    """Why there is no such register or tuple, wherever it begins, or ""."""
    file, index, count = register
    end = VECTORS if file != "s" else _end_of_run(index)
    return f"{name(register)} goes beyond the last register" if index + count > end else ""


def misaligned(register: RegisterTuple) -> str:
    """What is wrong with the first register of a tuple where it must be aligned, or ""."""
    file, index, count = register
    if file == "s" and index in READ_ONLY:
        return ""
    step = alignment(file, count)
    relative = index - TTMP0 if file == "s" and TTMP0 <= index < M0.index else index
    if relative % step:
        wanted = "an even number" if step == 2 else f"a multiple of {step}"
        return f"{name(register)} must begin at {wanted}"
    return ""


def alignment(file: File, count: int) -> int:
    """What the first register of a tuple of `count` is a multiple of."""
    if count == 1:
        return 1
    return min(4, 1 << (count - 1).bit_length()) if file == "s" else 2


def _end_of_run(index: int) -> int:
    """The first scalar code behind those that a tuple from `index` on may take."""
    if index < SGPRS:
        return SGPRS
    if TTMP0 <= index < M0.index:
        return M0.index
    if index in READ_ONLY:
        return index + 2  # their 64-bit value is read by one code
    return index + 1 if index == M0.index else (index & ~1) + 2


_NAME = re.compile(r"(?P<file>v|acc|a|s|ttmp)(?:(?P<single>\d{1,5})|\[(?P<first>\d{1,5})(?::(?P<last>\d{1,5}))?\])$")


def _special() -> dict[str, RegisterTuple]:
    found = {"m0": M0}
    for code, pair in PAIRS.items():
        found |= {
            pair: RegisterTuple("s", code, 2), f"{pair}_lo": RegisterTuple("s", code), f"{pair}_hi": RegisterTuple("s", code + 1)
        }
    for code, text in READ_ONLY.items():
        short = text.removeprefix("src_")
        found |= {text: RegisterTuple("s", code), short: RegisterTuple("s", code)}
    return found


_SPECIAL = _special()
