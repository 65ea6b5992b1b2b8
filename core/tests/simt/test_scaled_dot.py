"""Products with scales by atoms with scales, on a made-up chip, are those of the reference; what no atom serves is expanded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from library_on_chips import check, lowered
from made_up import RUNS

from tilefw.simt import lane
from tilefw.simt.description import AtomScales, MatrixAtom
from tilefw.simt.layout import LinearLayout

E4M3, E5M2, E2M1 = "f8E4M3FN", "f8E5M2", "f4E2M1FN"
M, K, GROUP = 16, 128, 32


def bits(count: int, first: int) -> tuple[int, ...]:
    return tuple(first << i for i in range(count))


def operand(element: str) -> LinearLayout:
    """A lane has 32 k of a row in a run; of two elements a byte, 16 bytes."""
    held = 4 if element == E2M1 else 5
    return LinearLayout((M, 4 << held), bits(held, 1), (*bits(4, 4 << held), *bits(2, 1 << held)), ())


def atom(a: str, b: str) -> MatrixAtom:
    scales = LinearLayout((M, K // GROUP), (), (*bits(4, K // GROUP), *bits(2, 1)), ())
    sums = LinearLayout((M, M), bits(2, 1), (*bits(4, M), *bits(2, 4)), ())
    return MatrixAtom(
        f"scaled.{a}.{b}", M, M, K, a, b, "f32", operand(a), operand(b).before_trans((1, 0))[0], sums, cost=16.0,
        scales=AtomScales(GROUP, scales, scales),
    )


CHIP = replace(RUNS, name="scaled", atoms=(*RUNS.atoms, *(atom(a, b) for a in (E4M3, E5M2, E2M1) for b in (E4M3, E2M1))))
TILE: dict[str, Any] = {"m": 32, "n": 64, "k": 128}


def scaled_atoms(name: str, parameters: dict[str, Any]) -> int:
    function = lowered(name, parameters, CHIP)[0]
    found = [op for op in function.walk() if isinstance(op, lane.AtomOp)]
    return sum(op.atom.startswith("scaled.") for op in found)


@pytest.mark.parametrize("parameters", [
    {"a_format": "e2m1", "b_format": "e2m1"}, {"a_format": "e4m3", "b_format": "e2m1"}, {"a_format": "e2m1", "b_format": "e4m3"},
    {"a_format": "e5m2", "b_format": "e4m3", "k": 256}, {"a_format": "e2m3", "b_format": "e3m2", "m": 16},
    {"a_format": "e4m3", "b_format": "e2m1", "scaled": "a"}, {"a_format": "e2m1", "b_format": "e2m1", "scaled": "b", "k": 512},
    {"a_format": "e2m1", "b_format": "e2m1", "packing": "outer"},
    {"a_format": "e4m3", "b_format": "e2m1", "packing": "outer", "batch": 2},
    {"a_format": "e2m1", "b_format": "e4m3", "batch": 2}, {"a_format": "e4m3", "b_format": "e4m3", "scales": "ends"},
], ids=lambda p: ",".join(map(str, p.values())))
def test_atoms_with_scales_serve_products_of_their_formats(parameters: dict[str, Any]) -> None:
    assert scaled_atoms("dot_scaled_tile", TILE | parameters)
    check("dot_scaled_tile", TILE | parameters, CHIP)


@pytest.mark.parametrize("parameters", [
    {"a_format": "e2m1", "b_format": "e2m1", "scales": "e4m3", "group": 16}, {"a_format": "bf16", "b_format": "e2m1"},
    {"a_format": "e4m3", "b_format": "e4m3", "k": 64}, {"a_format": "e4m3", "b_format": "e4m3", "m": 8},
    {"a_format": "e2m1", "b_format": "e2m1", "packing": "outer", "scales": "e4m3"},
    {"a_format": "e4m3", "b_format": "e4m3", "scaled": "none"}, {"a_format": "e4m3", "b_format": "e5m2"},
], ids=lambda p: ",".join(map(str, p.values())))
def test_what_no_atom_serves_is_expanded(parameters: dict[str, Any]) -> None:
    assert not scaled_atoms("dot_scaled_tile", TILE | parameters)
    check("dot_scaled_tile", TILE | parameters, CHIP)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_loop_takes_each_step_with_its_own_scales(stages: int) -> None:
    parameters = {
        "a_format": "e4m3", "b_format": "e2m1", "m": 40, "n": 33, "k": 352, "block_m": 32, "block_n": 32, "block_k": 128,
        "num_stages": stages,
    }
    assert scaled_atoms("block_scaled_matmul", parameters)
    check("block_scaled_matmul", parameters, CHIP)
