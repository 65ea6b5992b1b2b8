"""Chips that nobody makes, to test the kit on: the layouts of their atoms follow no vendor's figure but are as good as one."""

from __future__ import annotations

from dataclasses import replace

from tilefw.simt.description import ChipDescription, CopyEngine, FragmentLoad, MatrixAtom, SharedForm, TransposedLoad
from tilefw.simt.layout import LinearLayout


def atom(m: int, n: int, k: int, a: str, d: str, lanes: int, **more: object) -> MatrixAtom:
    """Lanes along m and then k for A, along n and then k for B, along n and then m for D; registers take what is left."""

    def over(shape: tuple[int, int], fast: list[int], slow: list[int]) -> LinearLayout:
        bits = [*fast, *slow]
        count = lanes.bit_length() - 1
        lane = (*bits[:count], *[0] * (count - len(bits)))
        return LinearLayout(shape, tuple(bits[count:]), lane, ())

    def bits(size: int, stride: int) -> list[int]:
        return [stride << i for i in range(size.bit_length() - 1)]

    return MatrixAtom(
        f"times.{m}x{n}x{k}.{a}.{d}{''.join(f'.{v}' for v in more.values())}", m, n, k, a, a, d,
        over((m, k), bits(m, k), bits(k, 1)), over((k, n), bits(n, 1), bits(k, n)), over((m, n), bits(n, 1), bits(m, n)),
        cost=m * n * k / 256, **more,  # type: ignore[arg-type]
    )


PLAIN = ChipDescription("plain", lanes=32, pointer_bits=64, access_bytes=16, shared_bytes=1 << 16)

WIDE = ChipDescription(
    "wide", lanes=64, pointer_bits=64, access_bytes=16, shared_bytes=1 << 16, shuffles=True,
    atoms=(
        atom(16, 16, 16, "f16", "f32", 64), atom(32, 32, 8, "f16", "f32", 64), atom(16, 16, 4, "f32", "f32", 64),
        atom(16, 16, 16, "bf16", "f32", 64), atom(16, 16, 32, "i8", "i32", 64), atom(16, 16, 4, "f64", "f64", 64),
    ),
)


def _row_by_row(shape: tuple[int, int], inner: int, words: int) -> LinearLayout:
    """Lane bits 0-1 a word in a row of 16 bytes, the rest rows; registers: places in a word, further rows, further words."""
    rows, columns = shape
    place = [1 << i for i in range(inner.bit_length() - 1)]
    word = [inner << i for i in range(words)]
    row = [columns << i for i in range(rows.bit_length() - 1)]
    more = [inner << i for i in range(words, (columns // inner).bit_length() - 1)]
    return LinearLayout(shape, (*place, *row[3:], *more), (*word, *row[:3]), ())


def _turned(layout: LinearLayout) -> LinearLayout:
    return layout.before_trans((1, 0))[0]


def _blocks(m: int, n: int, k: int, a: str, d: str, **more: object) -> MatrixAtom:
    inner = {"f16": 2, "bf16": 2, "f32": 1, "i8": 4}[a]
    return MatrixAtom(
        f"blocks.{m}x{n}x{k}.{a}.{d}{''.join(f'.{v}' for v in more.values())}", m, n, k, a, a, d,
        _row_by_row((m, k), inner, 2), _turned(_row_by_row((n, k), inner, 2)), _row_by_row((m, n), 2, 2),
        cost=m * n * k / 256, **more,  # type: ignore[arg-type]
    )


BLOCKS = ChipDescription(
    "blocks", lanes=32, pointer_bits=64, access_bytes=16, shared_bytes=1 << 16, shuffles=True, copy_bytes=(4, 8, 16), registers=128,
    atoms=(
        _blocks(16, 8, 16, "f16", "f32"), _blocks(16, 8, 16, "f16", "f16"), _blocks(16, 8, 8, "f16", "f32"),
        _blocks(16, 8, 16, "bf16", "f32"), _blocks(16, 8, 8, "f32", "f32", precision="tf32"),
        _blocks(16, 8, 32, "i8", "i32"), _blocks(16, 8, 32, "i8", "i32", unsigned=True),
    ),
    fragment_loads=(FragmentLoad("rows", rows=8, row_bytes=16, cell_bits=16, most=4, transposed=True),),
)


def _runs(m: int, k: int, a: str, d: str) -> MatrixAtom:
    """A lane has a run of k of one row of A, and of one column of B; four columns of a row of D, which lies as A does."""
    rows, run = m.bit_length() - 1, (m * k // 64).bit_length() - 1
    bits = [1 << i for i in range(k.bit_length() - 1)]
    left = LinearLayout((m, k), tuple(bits[:run]), (*[k << i for i in range(rows)], *bits[run:]), ())
    wide = [1 << i for i in range(rows)]
    lanes = (*[m << i for i in range(rows)], *wide[2 : 2 + 6 - rows])
    sums = LinearLayout((m, m), (*wide[:2], *wide[2 + 6 - rows :]), lanes, ())
    return MatrixAtom(f"runs.{m}x{m}x{k}.{a}.{d}", m, m, k, a, a, d, left, _turned(left), sums, cost=m * m * k / 256)


RUNS = ChipDescription(
    "runs", lanes=64, pointer_bits=64, access_bytes=16, shared_bytes=1 << 16, shuffles=True, registers=256, issue_cycles=4,
    atoms=(
        _runs(32, 8, "f16", "f32"), _runs(16, 16, "f16", "f32"), _runs(32, 8, "bf16", "f32"), _runs(16, 16, "bf16", "f32"),
        _runs(32, 16, "i8", "i32"), _runs(16, 4, "f32", "f32"), _runs(32, 2, "f32", "f32"), _runs(16, 4, "f64", "f64"),
    ),
)
CHIPS = (PLAIN, WIDE, BLOCKS, RUNS)

# What a wave copies lands in one piece, and reads transpose.
PIECES = replace(
    RUNS, name="pieces", shared_bytes=1 << 17, banks=64, offsets=True, bounded=True, copy_bytes=(16,), copies_consecutive=True,
    transposed_loads=(TransposedLoad("columns", 4, 8, 16), TransposedLoad("byte_columns", 4, 8, 8)),
)


def _of_four(m: int, n: int, k: int, a: str, d: str, forms: tuple[SharedForm, ...], registers: bool) -> MatrixAtom:
    """Four waves, a quarter of the rows each; B, and A unless it comes from `registers`, stand in shared memory."""
    inner = {"f16": 2, "bf16": 2, "i8": 4}[a]

    def dealt(layout: LinearLayout, columns: int) -> LinearLayout:
        quarter = m.bit_length() - 3
        return LinearLayout((m, columns), layout.register, layout.lane, (columns << quarter, columns << quarter + 1))

    def pointed(shape: tuple[int, int]) -> LinearLayout:
        return LinearLayout(shape, (), (0,) * 5, (0, 0))

    left = dealt(_row_by_row((m // 4, k), inner, 2), k) if registers else pointed((m, k))
    return MatrixAtom(
        f"fours.{m}x{n}x{k}.{a}.{d}{'.registers' * registers}", m, n, k, a, a, d, left, pointed((k, n)),
        dealt(_row_by_row((m // 4, n), 2, 2), n), cost=m * n * k / 1024, waves=4, asynchronous=True,
        a_forms=() if registers else forms, b_forms=forms,
    )


_ROWS = tuple(SharedForm(size, along, rows=4) for size in (64, 32) for along in (True, False))
# Blocks whose chip has a unit beside that multiplies what stands in shared memory; that of bytes takes rows of k alone.
FOURS = replace(
    BLOCKS, name="fours", shared_views=True, atoms=(
        *BLOCKS.atoms,
        *(_of_four(32, n, 16, "f16", "f32", _ROWS, registers) for n in (16, 32) for registers in (False, True)),
        *(_of_four(32, n, 32, "i8", "i32", tuple(form for form in _ROWS if form.along_k), False) for n in (16, 32)),
    ),
)
# Fours whose chip copies blocks by an engine, which exchanges pieces as the unit's forms have them.
ENGINE = replace(
    FOURS, name="engine", barrier_bytes=8, copy_engine=CopyEngine(
        rank=4, extent=64, alignment=16, element_bytes=(1, 2, 4), descriptor_bytes=128, descriptor_alignment=64,
        forms=tuple(form for form in _ROWS if form.along_k),
    ),
)
# It also copies back, what fragment stores put into shared memory.
STORING = replace(
    ENGINE, name="storing engine", copy_engine=replace(ENGINE.copy_engine, stores=True),
    fragment_stores=(FragmentLoad("rows", rows=8, row_bytes=16, cell_bits=16, most=4, transposed=True),),
)
