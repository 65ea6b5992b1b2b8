"""Fragment loads give exactly the layout's elements: against a model of the instruction made from its description's words."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_up import BLOCKS
from xdsl.dialects.builtin import StringAttr, UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, FragmentLoad, LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout, atoms, f2
from tilefw.simt.layout.atoms import DotTypes
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.lower import fragment_load
from tilefw.simt.lower.access import Addressing
from tilefw.simt.lower.fragment_load import FragmentRead
from tilefw.testing.lane_interpreter import run
from tilefw.tile import types

NARROW = {"f16": 16, "f32": 32, "i8": 8}


def swizzled(shape: tuple[int, int], bits: int, turned: bool, swizzle: list[int]) -> SharedLayout:
    """Rows (or, turned, columns) one after the other; each bit of the row number moves 16-byte pieces of a row by a swizzle."""
    rows, columns = (log2(s) for s in shape)
    flat = [1 << i for i in range(columns)], [1 << columns + i for i in range(rows)]
    fast, slow = flat[::-1] if turned else flat
    piece = log2(128 // bits)
    pieces = fast[piece:]
    shifted = [s ^ f2.apply(pieces, swizzle[i] & ((1 << len(pieces)) - 1)) for i, s in enumerate(slow)]
    return SharedLayout(shape, (*fast, *shifted))


def executed(read: FragmentRead, memory: np.ndarray, lanes: int, waves: int) -> np.ndarray:
    """Every thread's loaded bytes, (threads, bytes): lane rows·i + r says where row r of matrix i begins; words of 4 bytes of
    its rows go to the lanes in order, after rows and cells have changed places if the load is transposed."""
    load = read.load
    result = []
    for constant in read.constants:
        for wave in range(waves):
            starts = [f2.apply(read.thread, lane + lanes * wave) ^ constant for lane in range(load.rows * read.count)]
            assert all(start % load.row_bytes == 0 for start in starts)
            matrices = np.stack([memory[s : s + load.row_bytes] for s in starts]).reshape(read.count, load.rows, load.row_bytes)
            if read.transposed:
                cells = matrices.reshape(read.count, load.rows, -1, load.cell_bits // 8)
                matrices = cells.swapaxes(1, 2)
            result.append(matrices.reshape(read.count, lanes, 4).swapaxes(0, 1).reshape(lanes, -1))
    shaped = np.stack(result).reshape(len(read.constants), waves * lanes, -1)
    return shaped.swapaxes(0, 1).reshape(waves * lanes, -1)


def is_right(read: FragmentRead, shared: SharedLayout, layout: LinearLayout, bits: int, flip: int = 0) -> None:
    size = bits // 8
    offsets = np.arange(shared.size, dtype=np.uint32)
    elements = np.array([shared.element(int(o)) for o in offsets], np.uint32)
    memory = elements.view(np.uint8).reshape(-1, 4)[:, :size].copy().reshape(-1)  # the low bytes of each element's number
    lanes, waves = 1 << len(layout.lane), 1 << len(layout.wave)
    got = executed(read, memory, lanes, waves).reshape(lanes * waves, -1, size)[:, list(read.order)]
    want = np.array(
        [[layout.element(r, t) ^ flip for r in range(layout.registers)] for t in range(lanes * waves)], np.uint32
    )
    np.testing.assert_array_equal(got, want.view(np.uint8).reshape(*want.shape, 4)[:, :, :size])


operands = st.tuples(
    st.sampled_from([DotTypes("f16", "f16", "f32"), DotTypes("f32", "f32", "f32", "tf32"), DotTypes("i8", "i8", "i32")]),
    st.sampled_from([16, 32, 64]), st.sampled_from([8, 16, 64]), st.sampled_from([32, 64]), st.sampled_from([1, 2, 4]),
    st.sampled_from("ab"), st.booleans(), st.booleans(), st.lists(st.integers(0, 15), min_size=8, max_size=8),
)


@settings(max_examples=150, deadline=None)
@given(operands)
def test_a_match_reads_the_layout(case):
    kinds, m, n, k, waves, side, by_step, turned, swizzle = case
    layouts = atoms.choose((m, n, k), kinds, LaneMachine(BLOCKS, waves))
    bits = NARROW[kinds.a]
    whole = layouts.a if side == "a" else layouts.b
    shared = swizzled(whole.shape, bits, turned, swizzle)
    steps = range(layouts.steps) if by_step else range(1)
    for step in steps:
        layout, flip = whole, 0
        if by_step:
            layout = layouts.a_step if side == "a" else layouts.b_step
            flip = (layouts.a_offset if side == "a" else layouts.b_offset)(step)
        read = fragment_load.match(shared, layout, bits, BLOCKS.fragment_loads, flip)
        # Where k runs along a row of the buffer the read is straight, else crosswise, which takes elements of a cell's size.
        along_k = turned == (side == "b")
        assert (read is not None) == (along_k or bits == 16)
        if read is not None:
            assert read.transposed == (not along_k)
            assert read.count == min(4, layout.registers * bits // 32)
            is_right(read, shared, layout, bits, flip)


@settings(max_examples=200, deadline=None)
@given(st.permutations(range(10)), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3), st.data())
def test_any_layout_that_matches_is_read_right(order, additions, data):
    """Layouts and buffers at random: most do not match, those that do are right."""
    columns = [1 << i for i in range(10)]
    for a, b in additions:
        if a != b:
            columns[a] ^= columns[b]
    shared = SharedLayout((32, 32), tuple(columns))
    bits = data.draw(st.sampled_from([8, 16, 32]))
    inner = log2(32 // bits)
    straight = [shared.bases[i] for i in range(10)]
    held, words, rest = straight[:inner], straight[inner : inner + 2], straight[inner + 2 :]
    rest = [rest[i % len(rest)] for i in order]
    layout = LinearLayout((32, 32), (*held, *rest[3:5]), (*words, *rest[:3]), tuple(rest[5:6]))
    read = fragment_load.match(shared, layout, bits, BLOCKS.fragment_loads)
    assume(read is not None)
    assert read is not None
    is_right(read, shared, layout, bits)


def test_other_sizes_of_matrices_are_matched_from_the_description():
    """64 lanes, 16 rows of 16 bytes, at most two matrices, never transposed."""
    load = FragmentLoad("rows", rows=16, row_bytes=16, cell_bits=16, most=2, transposed=False)
    chip = ChipDescription("wide", 64, 64, 16, shared_bytes=4096, fragment_loads=(load,))
    shared = swizzled((32, 32), 16, False, [1, 2, 3, 0, 1])
    layout = LinearLayout((32, 32), (1, 8, 16), (2, 4, 32, 64, 128, 256), (512,))
    read = fragment_load.match(shared, layout, 16, chip.fragment_loads)
    assert read is not None and read.count == 2 and len(read.constants) == 2
    is_right(read, shared, layout, 16)
    turned = LinearLayout((32, 32), (32, 256, 512), (64, 128, 1, 2, 4, 8), (16,))
    assert fragment_load.match(shared, turned, 16, chip.fragment_loads) is None


def test_a_chip_without_fragment_loads_matches_nothing():
    layouts = atoms.choose((16, 8, 16), DotTypes("f16", "f16", "f32"), LaneMachine(BLOCKS, 1))
    plain = dataclasses.replace(BLOCKS, fragment_loads=())
    assert fragment_load.match(swizzled((16, 16), 16, False, [0] * 4), layouts.a, 16, plain.fragment_loads) is None


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("waves", [1, 4])
def test_the_addresses_that_are_emitted_are_those_of_the_read(turned, waves):
    """Through the lane interpreter, in a buffer that does not begin at 0."""
    machine = LaneMachine(BLOCKS, waves)
    layouts = atoms.choose((64, 64, 32), DotTypes("f16", "f16", "f32"), machine)
    shared = swizzled((32, 64), 16, turned, [1, 2, 4, 0, 0, 0])
    i16 = types.i16
    block = Block(arg_types=[types.i64, types.i64])
    builder = LaneBuilder(block, UnknownLoc())
    address = Addressing(builder, {}, None, types.i64, 16)  # type: ignore[arg-type]
    context: Any = SimpleNamespace(builder=builder, address=address, machine=machine)
    builder.alloc(256, 16, "another")
    buffer = builder.alloc(2 * shared.size, 16, "tile")

    def how(parts: str, immediates: list[int]) -> dict[str, Attribute]:
        return lane.access_properties(parts, 1, [0] * len(immediates), immediates, -1)

    each = shared.size // machine.threads
    at = builder.op("muli", address.thread_id(), builder.constant(2 * each, lane.vector(1, types.i32)))
    source = builder.op("addi", builder.splat(block.args[0], 1), builder.extend(at, types.i64))
    immediates = [2 * i for i in range(each)]
    op = lane.LoadOp.create(operands=[source], result_types=[lane.vector(each, i16)], properties=how("address", immediates))
    value = builder.insert(op).results[0]
    target = builder.op("addi", builder.splat(buffer.result, 1), at)
    properties = {**how("address,value", immediates), **lane.shared_properties(buffer.id), "space": StringAttr(lane.SHARED)}
    builder.insert(lane.StoreOp.create(operands=[target, value], properties=properties))
    builder.insert(lane.BarrierOp.create())
    layout = layouts.b
    read = fragment_load.match(shared, layout, 16, BLOCKS.fragment_loads)
    assert read is not None and read.transposed != turned
    found = fragment_load.emit(context, buffer.result, read, i16, lane.shared_properties(buffer.id))
    n = layout.registers
    place = address.scaled(address.thread_id(), 2 * n)
    target = builder.op("addi", builder.splat(block.args[1], 1), place)
    builder.insert(lane.StoreOp.create(operands=[target, found], properties=how("address,value", [2 * i for i in range(n)])))
    builder.insert(ReturnOp())
    function = FuncOp("read", ([types.i64] * 2, []), Region(block))
    function.verify()
    memory = np.array([shared.element(o) for o in range(shared.size)], np.int16)
    out = np.zeros((machine.threads, n), np.int16)
    run(function, [memory, out], (1,), machine)
    want = [[layout.element(r, t) for r in range(n)] for t in range(machine.threads)]
    np.testing.assert_array_equal(out, np.array(want))
