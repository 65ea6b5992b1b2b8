"""Layouts through shape ops: what a register holds before and after, forward and backward, products and quotients."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from random_layouts import layouts, shapes

from tilefw.api.integers import log2
from tilefw.simt.layout import LinearLayout, f2

LANES, WARPS = 8, 2
THREADS = (0, 1, 5, 7, 8, 14)


@st.composite
def some(draw, shape=None):
    return draw(layouts(shape or draw(shapes), LANES, WARPS))


def held(layout: LinearLayout, register: int, thread: int) -> tuple[int, ...]:
    return layout.coordinates(layout.element(register, thread))


@settings(deadline=None)
@given(some(), st.data())
def test_an_operand_of_expand_dims_broadcast_and_trans_holds_what_the_result_holds(layout, data):
    rank = len(layout.shape)
    axis = data.draw(st.integers(0, rank - 1))
    small = tuple(1 if data.draw(st.booleans()) else size for size in layout.shape)
    order = data.draw(st.permutations(range(rank)))
    sliced, reduced = layout.slice(axis)
    shrunk, broadcast = layout.before_broadcast(small)
    turned, _ = layout.before_trans(order)
    assert f2.rank(sliced.register) == len(sliced.register) and f2.rank(shrunk.register) == len(shrunk.register)
    for thread in THREADS:
        for r in range(layout.registers):
            here = held(layout, r, thread)
            assert held(sliced, reduced[r], thread) == here[:axis] + here[axis + 1 :]
            assert held(shrunk, broadcast[r], thread) == tuple(0 if s == 1 else c for s, c in zip(small, here, strict=True))
            before = held(turned, r, thread)
            assert tuple(before[d] for d in order) == here


@settings(deadline=None)
@given(some(), st.data())
def test_forward_undoes_backward(layout, data):
    order = data.draw(st.permutations(range(len(layout.shape))))
    flat = (1 << layout.bits,)
    assert layout.before_trans(order)[0].after_trans(order) == layout
    assert layout.after_trans(order).before_trans(order)[0] == layout
    assert layout.after_reshape(flat).before_reshape(layout.shape)[0] == layout
    assert layout.after_expand_dims(0).before_expand_dims(0)[0] == layout
    joined, sources = layout.after_join()
    assert joined.before_join() == (layout, sources)
    assert layout.before_split()[0] == joined
    assert joined.after_split() == (layout, layout.before_split()[1])


@settings(deadline=None)
@given(some(), st.data())
def test_a_broadcast_layout_holds_the_operand_and_covers_what_it_reaches(layout, data):
    grown = tuple(data.draw(st.sampled_from([2, 8])) if size == 1 else size for size in layout.shape)
    result = layout.after_broadcast(grown)
    back, registers = result.before_broadcast(layout.shape)
    assert back == layout
    assert registers == tuple(r % layout.registers for r in range(result.registers))
    assert result.covers


@settings(deadline=None)
@given(some())
def test_a_join_takes_the_registers_it_says(layout):
    wide, sources = layout.after_join()
    for thread in THREADS:
        for r, source in enumerate(sources):
            which, register = divmod(source, layout.registers)
            assert held(wide, r, thread) == (*held(layout, register, thread), which)


@settings(deadline=None)
@given(st.data(), shapes)
def test_a_join_whose_threads_agree_on_the_last_dim_takes_each_register_from_one_operand(data, shape):
    layout = data.draw(some((*shape, 2)))
    found = layout.before_join()
    if found is None:
        assert any(b & 1 for b in layout.thread)
        return
    operand, sources = found
    for thread in THREADS:
        for r, source in enumerate(sources):
            which, register = divmod(source, operand.registers)
            assert (*held(operand, register, thread), which) == held(layout, r, thread)
    halves = layout.after_split()
    if halves is not None:
        for which, registers in enumerate(halves[1]):
            for r, source in enumerate(registers):
                assert all((*held(halves[0], r, t), which) == held(layout, source, t) for t in THREADS)


@settings(deadline=None)
@given(some(), st.data())
def test_a_flip_takes_elements_from_where_its_constant_says(layout, data):
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    constant = layout.flipped(axis)
    here = held(layout, layout.registers - 1, 5)
    there = layout.coordinates(layout.element(layout.registers - 1, 5) ^ constant)
    assert there == (*here[:axis], layout.shape[axis] - 1 - here[axis], *here[axis + 1 :])


@settings(deadline=None)
@given(st.data(), st.integers(1, 3))
def test_a_quotient_undoes_a_product(data, rank):
    sizes = st.tuples(*[st.sampled_from([1, 2, 4, 8])] * rank)
    tile, rest = (data.draw(some(data.draw(sizes))) for _ in range(2))
    whole = tile.times(rest)
    assert whole.over(tile) == rest
    for r in (0, tile.registers - 1, whole.registers - 1):
        inner, outer = held(tile, r % tile.registers, 0), held(rest, r // tile.registers, 0)
        assert held(whole, r, 0) == tuple(a + b * size for a, b, size in zip(inner, outer, tile.shape, strict=True))


@settings(deadline=None)
@given(some(), some())
def test_a_quotient_is_refused_unless_the_low_bits_are_the_tile(whole, tile):
    found = whole.over(tile)
    if found is not None:
        assert tile.times(found) == whole


@settings(deadline=None)
@given(some(), st.data())
def test_the_canonical_form_forgets_the_order_of_registers_and_nothing_else(layout, data):
    order = data.draw(st.permutations(layout.register))
    mixed = list(order)
    if len(mixed) > 1:
        mixed[0] ^= mixed[1]
    other = LinearLayout(layout.shape, tuple(mixed), layout.lane, layout.wave)
    assert other.canonical == layout.canonical
    assert sorted(layout.elements) == sorted(layout.canonical.elements)
    moved = LinearLayout(layout.shape, layout.register, (*layout.lane[:-1], layout.lane[-1] ^ 1), layout.wave)
    assert moved.canonical != layout.canonical or layout.bits == 0


@settings(deadline=None)
@given(some())
def test_the_inverse_finds_every_element_and_one_copy_stores_it(layout):
    for element in range(1 << layout.bits):
        register, lane, wave = layout.split(f2.apply(layout.inverse, element))
        assert layout.element(register, lane | wave << log2(LANES)) == element
    threads = [t for t in range(LANES * WARPS) if not t & layout.copies]
    stored = sorted(layout.element(r, t) for t in threads for r in range(layout.registers))
    assert stored == list(range(1 << layout.bits))
    free = [t for t in range(LANES * WARPS) if not t & ~layout.free]
    assert all(layout.element(0, t) == 0 for t in free)
