"""Where PTX can be broken on purpose: one wait, barrier, predicate, address, size, distance or order of one instruction at a time.

Works on text alone, so that a mutant is exactly what a buggy compiler would have written. Constants that reach a shared address
through several instructions are in `constants`, conditions that reach the guard of a store in `conditions`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from oracles.site import Site, changed

KINDS = ("wait", "weaken", "barrier", "predicate", "address")
# `address` moves every access; `offset` flips a bit of shared ones, and sizes, commits and distances are what pipelines add.
# What products of warpgroups add, and what engines and barriers that count do.
WARPGROUP_KINDS = (*KINDS, "commit", "fence", "descriptor", "operand")
ENGINE_KINDS = (*(kind for kind in WARPGROUP_KINDS if kind != "address"), "engine", "arrival", "bytes", "phase", "field")
LINE_KINDS = ("wait", "weaken", "barrier", "predicate", "commit", "size", "offset", "shuffle", "order", "fence")
NODE_KINDS = ("wait", "weaken", "barrier", "commit", "order", "fence", "scope", "signal")  # what ranks say to each other
OWN_ENGINE_KINDS = (*LINE_KINDS, "descriptor", "operand", "engine", "arrival", "bytes", "phase")

_INSTRUCTION = re.compile(r"^\s*(?:@(?P<guard>!?%\w+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>[^;]*);\s*$")
_ADDRESS = re.compile(r"\[\s*(?P<base>[%\w$]+)\s*(?:\+\s*(?P<offset>-?\d+))?\s*\]")
_MEMORY = re.compile(r"^(ld|st|atom|red|ldmatrix|cp\.async)\b(?!\.param)")
_SHARED = re.compile(r"^(ld\.shared|st\.shared|ldmatrix|cp\.async\.c[ag])")
_ELEMENT = re.compile(r"\.[bsuf](8|16|32|64)$")
_COPY = re.compile(r"\]\s*,\s*(?P<bytes>\w+)\s*,\s*(?P<taken>%?\w+)\s*;")
_DISTANCE = re.compile(r"^(?P<head>.*shfl\.sync\.(?:bfly|up|down)\.b32\s+[^,]+,\s*[^,]+,\s*)(?P<lanes>\w+)(?P<tail>,.*)$")
_ORDERED = re.compile(r"\.(?:acquire|release|acq_rel)\.")
_COPY_BYTES = 16  # shift of an address of cp.async and ldmatrix, whose unit is a row of 16 bytes
_LANES = 32
# The halves of a matrix descriptor, its upper one a constant with a swizzle: bit 62 or 63 of the whole.
_UPPER_HALF = re.compile(r"(?P<head>%rd\d+\s*,\s*\{%r\d+\s*,\s*)(?P<word>-?\d{9,})\}")
_WAITS = ("cp.async.wait_group", "wgmma.wait_group", "cp.async.bulk.wait_group")
# Bits of a matrix descriptor: the stride in units of 16 bytes, one bit of it and that of 128-byte rows; base offset; swizzle.
_STRIDE_BITS, _BASE_BIT, _SWIZZLE_BITS = (32, 38), 49, (62, 63)
# Of the constants of wgmma.mma_async, so many are signs; orders follow.
_SIGNS = 2


def sites(ptx: str, kinds: Collection[str] = KINDS) -> Iterator[Site]:
    """Every site of the file of these kinds, in order of lines."""
    lines = ptx.splitlines()
    for number, line in enumerate(lines):
        for kind, after in _changes(line.split("//")[0], kinds):
            yield changed(lines, number, kind, after)


def _changes(line: str, kinds: Collection[str]) -> Iterator[tuple[str, str]]:
    match = _INSTRUCTION.match(line)
    if match is None:
        return
    for kind in kinds:
        yield from ((kind, after) for after in _OF_KIND[kind](line, match))


def _waits(line: str, match: re.Match[str]) -> Iterator[str]:
    if match["opcode"].startswith(_WAITS):
        yield ""


def _weakened(line: str, match: re.Match[str]) -> Iterator[str]:
    if match["opcode"].startswith(_WAITS):
        head, _, _ = line.rpartition(match["operands"])
        yield f"{head}{int(match['operands']) + 1};"


def _engines(line: str, match: re.Match[str]) -> Iterator[str]:
    """A copy by the engine that never starts."""
    if match["opcode"].startswith(("cp.async.bulk.tensor", "cp.reduce.async.bulk")):
        yield ""


def _arrivals(line: str, match: re.Match[str]) -> Iterator[str]:
    """A barrier that nobody makes or arrives at, and one that wants an arrival more."""
    if match["opcode"].startswith(("mbarrier.arrive", "mbarrier.init")):
        yield ""
    if match["opcode"].startswith("mbarrier.init"):
        count = _last_operand(match)
        yield _with_last_operand(line, match, int(count) + 1) if count.isdigit() else ""


def _announced(line: str, match: re.Match[str]) -> Iterator[str]:
    """A barrier that is told of 16 bytes more or fewer than come."""
    if not match["opcode"].startswith("mbarrier.arrive.expect_tx"):
        return
    count = _last_operand(match)
    for more in (16, -16):
        if count.isdigit():
            yield _with_last_operand(line, match, int(count) + more)
        else:
            yield f"{{ .reg .b32 told; add.s32 told, {count}, {more}; {_with_last_operand(line, match, 'told').strip()} }}"


def _phases(line: str, match: re.Match[str]) -> Iterator[str]:
    """A wait for each parity whatever the phase, and none at all."""
    if match["opcode"].startswith("mbarrier.try_wait.parity"):
        for value in sorted({"0", "1"} - {_last_operand(match)}):
            yield _with_last_operand(line, match, value)
        yield f"setp.eq.u32 {match['operands'].partition(',')[0].strip()}, 0, 0;"


def _fields(line: str, match: re.Match[str]) -> Iterator[str]:
    """A tensor map without one of its fields, and with another one: a bit of a mode, an element more."""
    if not match["opcode"].startswith("tensormap.replace"):
        return
    yield ""
    value = _last_operand(match)
    if re.fullmatch(r"0x[0-9a-fA-F]+", value):
        yield _with_last_operand(line, match, int(value, 16) ^ 1)


def _last_operand(match: re.Match[str]) -> str:
    return match["operands"].rpartition(",")[2].strip()


def _with_last_operand(line: str, match: re.Match[str], value: object) -> str:
    """The line with another value as the last of its operands."""
    head, _, _ = match["operands"].rpartition(",")
    return line.replace(match["operands"].strip(), f"{head.strip()}, {value}")


def _barriers(line: str, match: re.Match[str]) -> Iterator[str]:
    if match["opcode"].startswith(("bar.sync", "barrier.sync", "barrier.cluster")):
        yield ""


def _guards(line: str, match: re.Match[str]) -> Iterator[str]:
    if match["guard"] is not None:
        yield line.replace("@" + match["guard"], "", 1)


def _fences(line: str, match: re.Match[str]) -> Iterator[str]:
    if match["opcode"].startswith(("fence", "membar", "wgmma.fence")):
        yield ""


def _relaxed(line: str, match: re.Match[str]) -> Iterator[str]:
    """An atomic that orders nothing, and one that orders one way where it ordered both."""
    order = _ORDERED.search(match["opcode"])
    if not match["opcode"].startswith(("atom", "red")) or order is None:
        return
    for weaker in ("acquire", "release", "relaxed") if order[0] == ".acq_rel." else ("relaxed",):
        yield line.replace(order[0], f".{weaker}.", 1)


def _narrowed(line: str, match: re.Match[str]) -> Iterator[str]:
    """An access or a fence that orders for its device alone, and for its workgroup."""
    if ".sys" in match["opcode"]:
        for narrower in (".gpu", ".cta"):
            yield line.replace(".sys", narrower, 1)


def _signals(line: str, match: re.Match[str]) -> Iterator[str]:
    """A signal of another value: none, and twice the usual 1."""
    if re.match(r"(atom|red)\..*\.(exch|add)\.", match["opcode"]):
        for value in (0, 2):
            yield _with_last_operand(line, match, value)


def polls(ptx: str) -> Iterator[Site]:
    """Every innermost loop around an atomic, left after one turn: a wait that waits for nothing."""
    lines = ptx.splitlines()
    labels = {line.strip().removesuffix(":"): number for number, line in enumerate(lines) if line.rstrip().endswith(":")}
    for number, line in enumerate(lines):
        jump = re.match(r"\s*@\S+ bra (?P<label>[^;]+);", line)
        begin = labels.get(jump["label"], number) if jump else number
        turn = lines[begin + 1 : number]
        if any(inside.endswith(":") for inside in turn):
            continue
        if any(re.match(r"\s*(@\S+ )?(atom|red|ld\.(acquire|relaxed))\.", inside) for inside in turn):
            yield changed(lines, number, "poll", "")


def _commits(line: str, match: re.Match[str]) -> Iterator[str]:
    if match["opcode"].startswith(("cp.async.commit_group", "wgmma.commit_group", "cp.async.bulk.commit_group")):
        yield ""


def _descriptors(line: str, match: re.Match[str]) -> Iterator[str]:
    """The upper half of a matrix descriptor with another stride, base offset or swizzle."""
    halves = _UPPER_HALF.fullmatch(match["operands"]) if match["opcode"] == "mov.b64" else None
    whole = re.fullmatch(r"(?P<head>.*,\s*)(?P<word>\d+)", match["operands"]) if match["opcode"] == "or.b64" else None
    for bit in (*_STRIDE_BITS, _BASE_BIT, *_SWIZZLE_BITS):
        if halves is not None:
            upper = (int(halves["word"]) & 0xFFFFFFFF) ^ 1 << bit - 32
            yield line.replace(match["operands"], f"{halves['head']}{upper}}}")
        elif whole is not None and int(whole["word"]) >> 61:
            yield line.replace(match["operands"], f"{whole['head']}{int(whole['word']) ^ 1 << bit}")


def _operand_forms(line: str, match: re.Match[str]) -> Iterator[str]:
    """A product of a warpgroup with the sign or the order of an operand changed."""
    written = re.fullmatch(r"(?P<head>.*%p\d+)(?P<words>(?:,\s*-?\d+)+)", match["operands"])
    if not match["opcode"].startswith("wgmma.mma_async") or written is None:
        return
    words = [int(word) for word in written["words"].split(",")[1:]]
    for place, word in enumerate(words):
        changed_words = [*words[:place], -word if place < _SIGNS else 1 - word, *words[place + 1 :]]
        yield line.replace(match["operands"], written["head"] + "".join(f", {each}" for each in changed_words))


def _shifted(line: str, match: re.Match[str]) -> Iterator[str]:
    """The line with one of its addresses moved up by an element, and by 16 bytes."""
    opcode = match["opcode"]
    if not _MEMORY.match(opcode):
        return
    for address in _ADDRESS.finditer(line):
        for step in sorted({_element_bytes(opcode), _COPY_BYTES}):
            yield _at(line, address, int(address["offset"] or 0) + step)


def _flipped(line: str, match: re.Match[str]) -> Iterator[str]:
    """The line with one bit of its shared address' immediate flipped: that of the access's own size, and the highest set one."""
    opcode = match["opcode"]
    address = _ADDRESS.search(line)
    if not _SHARED.match(opcode) or address is None:
        return
    offset = int(address["offset"] or 0)
    for bit in sorted({access_bytes(line, opcode), 1 << (max(offset.bit_length(), 1) - 1)} - {1}):
        yield _at(line, address, offset ^ bit)


def _at(line: str, address: re.Match[str], offset: int) -> str:
    return f"{line[: address.start()]}[{address['base']}+{offset}]{line[address.end() :]}"


def _sizes(line: str, match: re.Match[str]) -> Iterator[str]:
    """An asynchronous copy that takes all of its bytes where it may take fewer, and one that takes half of them."""
    copy = _COPY.search(line)
    if not match["opcode"].startswith("cp.async.c") or copy is None:
        return
    for taken in (copy["bytes"], str(int(copy["bytes"], 0) // 2)):
        yield line[: copy.start("taken")] + taken + line[copy.end("taken") :]


def _distances(line: str, match: re.Match[str]) -> Iterator[str]:
    """A shuffle from the lane itself, and one from twice as far: any other single bit may span the same lanes in another order."""
    shuffle = _DISTANCE.match(line)
    if shuffle is None or shuffle["lanes"].startswith("%"):
        return
    lanes = int(shuffle["lanes"], 0)
    for other in (0, 2 * lanes if 2 * lanes < _LANES else 1):
        yield f"{shuffle['head']}{other}{shuffle['tail']}"


_OF_KIND = {
    "wait": _waits, "weaken": _weakened, "barrier": _barriers, "predicate": _guards, "address": _shifted,
    "commit": _commits, "size": _sizes, "offset": _flipped, "shuffle": _distances, "order": _relaxed, "fence": _fences,
    "descriptor": _descriptors, "operand": _operand_forms, "engine": _engines, "arrival": _arrivals, "bytes": _announced,
    "phase": _phases, "field": _fields, "scope": _narrowed, "signal": _signals,
}


def access_bytes(line: str, opcode: str) -> int:
    """The bytes that one lane's access moves."""
    size = _element_bytes(opcode)
    vector = re.search(r"\.v([24])\b", opcode)
    if opcode.startswith("cp.async") and (copy := re.search(r"\]\s*,\s*(\w+)\s*[,;]", line)):
        return int(copy[1], 0)
    return size * int(vector[1]) if vector else size


def _element_bytes(opcode: str) -> int:
    if opcode.startswith(("cp.async", "ldmatrix")):
        return _COPY_BYTES
    found = _ELEMENT.search(opcode)
    if found is None:
        raise ValueError(f"no element type at the end of {opcode}")
    return int(found[1]) // 8
