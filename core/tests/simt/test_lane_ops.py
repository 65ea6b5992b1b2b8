"""Lane IR's own ops: their text reads back as it was, and what is malformed is refused in words."""

from __future__ import annotations

import re

import pytest

from tilefw.api.errors import IRError
from tilefw.simt.lane import Lane
from tilefw.tile.text.module import parse

HEAD = "func.func @f(%p: !tile.ptr<f16>) {\n  %t = lane.thread_id : () -> vector<1xi32>\n  %g = lane.constant 0 : vector<1xi64>\n"
ALLOC = '  %m = lane.alloc {id = 0 : i64, bytes = 1024 : i64, align = 16 : i64, label = "a"} : () -> i32\n'
FAR = "  %s = lane.constant 0 : vector<1xi32>\n  %x = lane.constant 1.0 : vector<8xf16>\n  %c = lane.constant 0.0 : vector<4xf32>\n"
FAR += "  %y = lane.constant 1.0 : vector<2xf16>\n  %z = lane.constant 1 : vector<1xi1>\n  %o = lane.constant 0 : i32\n"
ONE = "slots = array<i64: 0>, immediates = array<i64: 16>"
SHARED = f'width = 8 : i64, {ONE}, buffer = 0 : i64, space = "shared"'
LINES = {
    "load": f'%0 = lane.load %s {{parts = "address", {SHARED}}} : (vector<1xi32>) -> vector<8xf16>',
    "store": f'lane.store %s, %x {{parts = "address,value", {SHARED}, ring = 3 : i64, phase = 2 : i64}}'
    " : (vector<1xi32>, vector<8xf16>) -> ()",
    "fragments": f'%0 = lane.fragment_load %s {{parts = "address", load = "rows", count = 4 : i64, {ONE}, buffer = 0 : i64,'
    " transposed} : (vector<1xi32>) -> vector<8xf16>",
    "fragments stored": f'lane.fragment_store %s, %x {{parts = "address,value", store = "rows", count = 4 : i64, {ONE},'
    " buffer = 0 : i64} : (vector<1xi32>, vector<8xf16>) -> ()",
    "bulk store": 'lane.bulk_store %o, %p, %o, %z {parts = "address,descriptor,at0,when", bytes = 64 : i64, argument = 0 : i64,'
    " buffer = 0 : i64} : (i32, !tile.ptr<f16>, i32, vector<1xi1>) -> ()",
    "stored": 'lane.bulk_store_wait %z {parts = "when", buffer = 0 : i64} : (vector<1xi1>) -> ()',
    "copy": f'lane.copy_async %s, %g {{parts = "address,source", bytes = 16 : i64, {ONE}, source_slots = array<i64: 0>,'
    " source_immediates = array<i64: 0>, buffer = 0 : i64, argument = 0 : i64} : (vector<1xi32>, vector<1xi64>) -> ()",
    "atomic": '%0 = lane.atomic %g, %y {parts = "address,value", kind = "add", order = "acq_rel", scope = "device",'
    f" width = 2 : i64, {ONE}, buffer = 0 : i64}} : (vector<1xi64>, vector<2xf16>) -> vector<2xf16>",
    "swap": 'lane.atomic %g, %t, %t {parts = "address,compare,value", kind = "cas", order = "relaxed", scope = "system",'
    f" width = 1 : i64, {ONE}, buffer = -1 : i64}} : (vector<1xi64>, vector<1xi32>, vector<1xi32>) -> ()",
    "begin": "lane.begin_barriers %m {number = 3 : i64, count = 1 : i64, buffer = 0 : i64} : (i32) -> ()",
    "arrive": 'lane.arrive %m, %z {parts = "address,when", buffer = 0 : i64, ring = 3 : i64, phase = 1 : i64, bytes = 32 : i64}'
    " : (i32, vector<1xi1>) -> ()",
    "phase": 'lane.wait_phase %m, %o {parts = "address,parity", buffer = 0 : i64} : (i32, i32) -> ()',
    "commit": "lane.commit",
    "wait": "lane.wait {pending = 2 : i64}",
    "barrier": "lane.barrier",
    "xor": '%0 = lane.shuffle %x {mode = "xor", amount = 16 : i64} : (vector<8xf16>) -> vector<8xf16>',
    "index": '%0 = lane.shuffle %x, %t {mode = "index"} : (vector<8xf16>, vector<1xi32>) -> vector<8xf16>',
    "uniform": "%0 = lane.uniform %t : (vector<1xi32>) -> i32",
    "atom": '%0 = lane.atom %x, %x, %c {atom = "mma", a = array<i64: 0>, b = array<i64: 4>, d = array<i64: 0>}'
    " : (vector<8xf16>, vector<8xf16>, vector<4xf32>) -> vector<4xf32>",
}


def text(line: str, alloc: str = ALLOC) -> str:
    return f"{HEAD}{alloc}{FAR}  {line}\n  %end = lane.thread_id : () -> vector<1xi32>\n  func.return\n}}"


@pytest.mark.parametrize("op", LINES)
def test_text_reads_back(op: str) -> None:
    printed = str(parse(text(LINES[op]), dialects=[Lane]))
    assert str(parse(printed, dialects=[Lane])) == printed
    assert re.sub(r"%\w+", "%", LINES[op]) in re.sub(r"%\w+", "%", printed)


@pytest.mark.parametrize(
    ("op", "change", "words"),
    [
        ("load", ("width = 8", "width = 4"), "1 accesses of 4 elements are not the 8 elements"),
        ("load", ('"shared"', '"texture"'), "there is no memory called texture"),
        ("load", ("slots = array<i64: 0>", "slots = array<i64: 1>"), "the address has 1 elements"),
        ("fragments", ("count = 4", "count = 2"), "2 registers of 32 bits are not vector<8xf16>"),
        ("copy", ("source_slots = array<i64: 0>", "source_slots = array<i64: 0, 0>"), "1 places for 2 sources"),
        ("atomic", ('"add"', '"nand"'), "the kind 'nand' is none of add, maxs"),
        ("atomic", ('"add"', '"xchg"'), "2 elements of f16 are not an atomic access of the kind xchg"),
        ("atomic", ("width = 2", "width = 1"), "1 accesses of 1 elements are not vector<2xf16>"),
        ("atomic", ('"device"', '"galaxy"'), "the scope 'galaxy' is none of workgroup, device, system"),
        ("atomic", ("-> vector<2xf16>", "-> vector<2xf32>"), "the result is vector<2xf32>, the value vector<2xf16>"),
        ("swap", ('"relaxed"', '"eventually"'), "the order 'eventually' is none of relaxed, acquire, release, acq_rel"),
        ("swap", ('"cas"', '"add"'), "a comparison belongs to the kind cas alone"),
        ("begin", ("count = 1", "count = 0"), "for one arrival at least"),
        ("arrive", ("bytes = 32", "bytes = -32"), "a negative number of bytes"),
        ("arrive", ("address,when", "place,when"), "there is no address"),
        ("phase", ("address,parity", "address,place"), "the parity is an i32"),
        ("wait", ("pending = 2", "pending = -1"), "a negative number of groups"),
        ("xor", ('"xor"', '"rotate"'), "the mode is one of xor, index, up, down"),
        ("xor", ("amount = 16", "amount = -1"), "a negative amount"),
        ("index", ('"index"', '"up"'), "for the mode index"),
        ("uniform", ("-> i32", "-> i64"), "takes vector<1xT> to T"),
        ("atom", ("b = array<i64: 4>", "b = array<i64: 8>"), "a first element is out of the range of vector<8xf16>"),
        ("atom", ("a = array<i64: 0>", "a = array<i64: 0, 0>"), "one first element for each repeat"),
    ],
)
def test_what_is_malformed_is_refused(op: str, change: tuple[str, str], words: str) -> None:
    with pytest.raises(IRError, match=re.escape(words)):
        parse(text(LINES[op].replace(*change)), dialects=[Lane])


@pytest.mark.parametrize("op", [op for op, line in LINES.items() if "buffer = " in line])
@pytest.mark.parametrize("written", ["", 'buffer = "x"'])
def test_an_access_without_its_buffer_is_refused(op: str, written: str) -> None:
    line = re.sub(r"buffer = -?[0-9]+ : i64", written, LINES[op]).replace(", ,", ",").replace(", }", "}")
    with pytest.raises(IRError, match="needs the integer property buffer") as caught:
        parse(text(line), dialects=[Lane])
    assert caught.value.code == "TFW0402" and caught.value.place is not None


def test_a_copy_without_its_size_is_refused() -> None:
    with pytest.raises(IRError, match="needs the integer property bytes"):
        parse(text(LINES["copy"].replace("bytes = 16 : i64, ", "")), dialects=[Lane])


@pytest.mark.parametrize("change", [("align = 16", "align = 12"), ("bytes = 1024", "bytes = 0")])
def test_an_allocation_has_a_size_and_an_alignment(change: tuple[str, str]) -> None:
    with pytest.raises(IRError, match="sizes are positive and alignments powers of two"):
        parse(text("lane.barrier", ALLOC.replace(*change)), dialects=[Lane])
