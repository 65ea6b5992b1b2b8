"""Linear layouts: the algebra over bits, and what blocked layouts promise about coverage, copies and coalescing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilefw.simt.layout import blocked, f2

columns = st.lists(st.integers(0, 255), max_size=10).map(tuple)


@given(columns, columns.map(lambda c: tuple(x & 0xFF for x in c)), st.integers(0, 255))
def test_composition_is_application_twice(outer, inner, x):
    inner = tuple(c & ((1 << len(outer)) - 1) for c in inner)
    x &= (1 << len(inner)) - 1
    assert f2.apply(f2.compose(outer, inner), x) == f2.apply(outer, f2.apply(inner, x))


@given(columns, st.integers(0, 255))
def test_solutions_solve_and_are_found_when_they_exist(matrix, x):
    target = f2.apply(matrix, x & ((1 << len(matrix)) - 1))
    found = f2.solve(matrix, target)
    assert found is not None and f2.apply(matrix, found) == target


@given(columns)
def test_rank_and_kernel_add_up(matrix):
    kernel = f2.kernel(matrix)
    assert f2.rank(matrix) + len(kernel) == len(matrix)
    assert all(f2.apply(matrix, k) == 0 for k in kernel)


@given(st.permutations(range(6)), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_an_inverse_undoes(order, additions):
    matrix = [1 << i for i in order]
    for a, b in additions:
        if a != b:
            matrix[a] ^= matrix[b]
    inverse = f2.invert(matrix)
    assert f2.compose(matrix, inverse) == tuple(1 << i for i in range(6))


@given(columns, columns)
def test_an_intersection_holds_what_both_spans_hold(a, b):
    common = f2.intersection(a, b)
    assert len(common) == f2.rank(common) == f2.rank(a) + f2.rank(b) - f2.rank((*a, *b))
    assert all(v in f2.Subspace(a) and v in f2.Subspace(b) for v in common)


@given(columns)
def test_completion_spans_everything_with_plain_bits(matrix):
    added = f2.complete(matrix, 8)
    assert f2.rank((*matrix, *added)) == 8 == f2.rank(matrix) + len(added)
    assert all(a.bit_count() == 1 for a in added)


@given(columns, st.randoms())
def test_the_echelon_form_is_that_of_the_span(matrix, random):
    form = f2.echelon(matrix)
    assert len(form) == f2.rank(matrix) == f2.rank((*form, *matrix))
    mixed = list(matrix)
    random.shuffle(mixed)
    for i in range(1, len(mixed)):
        mixed[i] ^= mixed[random.randrange(i)]
    assert f2.echelon(mixed) == form


@given(columns)
def test_a_right_inverse_is_undone_by_the_matrix(matrix):
    whole = (*matrix, *f2.complete(matrix, 8))
    assert f2.compose(whole, f2.right_inverse(whole, 8)) == f2.identity(8)
    assert f2.table(whole[:5]) == tuple(f2.apply(whole[:5], x) for x in range(32))


shapes = st.lists(st.sampled_from([1, 2, 4, 16]), min_size=1, max_size=3).map(tuple)


@given(shapes, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 4]), st.data())
def test_one_copy_of_every_element_stores(shape, width, waves, data):
    order = data.draw(st.permutations(range(len(shape))))
    layout = blocked(shape, order, width, 32, waves)
    total = 1
    for size in shape:
        total *= size
    stored = [
        layout.element(r, t) for t in range(32 * waves) if not t & layout.copies for r in range(layout.registers)
    ]
    assert sorted(stored) == list(range(total))
    assert layout.covers and layout.disjoint


@given(shapes, st.data())
def test_an_operand_of_expand_dims_holds_what_its_result_holds(shape, data):
    axis = data.draw(st.integers(0, len(shape)))
    wide = (*shape[:axis], 1, *shape[axis:])
    layout = blocked(wide, tuple(reversed(range(len(wide)))), 2, 32, 4)
    source, registers = layout.before_expand_dims(axis)
    for thread in (0, 1, 31, 77):
        for r, s in enumerate(registers):
            coordinates = layout.coordinates(layout.element(r, thread))
            assert source.coordinates(source.element(s, thread)) == coordinates[:axis] + coordinates[axis + 1 :]


def test_neighbouring_lanes_hold_neighbouring_vectors():
    layout = blocked((64, 64), (1, 0), 4, 32, 4)
    assert [layout.element(r, 1) for r in range(4)] == [4, 5, 6, 7]
    assert layout.contiguous() == 4
