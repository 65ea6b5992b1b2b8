"""What the PTX of small kernels looks like: vector accesses, predicates, one pointer a buffer, versions, fusion, hoisting."""

from __future__ import annotations

import time

import pytest
from chips_here import OLDEST
from row_kernels import compile_text

from tilefw.api import PluginError, UnsupportedError
from tilefw_nvidia.ptxas import assemble, find_ptxas
from tilefw_nvidia.select.rules import rules


def vector_add(n: str, element: str = "f32", block: int = 1024) -> str:
    """x + y over a block of one program, bounded by n, whose facts are given."""
    pointers = ", ".join(f'%{p}: !tile.ptr<{element}> {{tile.name = "{p}", tile.divisible = 16 : i64}}' for p in "xyo")
    tile = f"tensor<{block}x{element}>"
    where = "at (%offset : i32) strides (%one : i32) shape (%n : i32) checks [upper]"
    return f"""func.func @add({pointers}, %n: i32 {n}) {{
  %pid = tile.program_id 0
  %block = tile.constant {block} : i32
  %one = tile.constant 1 : i32
  %offset = tile.muli %pid, %block : i32
  %a = tile.load_block %x {where} : !tile.ptr<{element}>, {tile}
  %b = tile.load_block %y {where} : !tile.ptr<{element}>, {tile}
  %c = tile.addf %a, %b : {tile}
  tile.store_block %o, %c {where} : !tile.ptr<{element}>, {tile}
  func.return
}}"""


def body(text: str) -> list[str]:
    """Instructions without directives and line information."""
    return [line.strip() for line in text.splitlines() if line.startswith("\t") and not line.startswith("\t.")]


def test_divisible_bounds_give_vector_accesses_under_one_predicate_each():
    text = compile_text(vector_add('{tile.name = "n", tile.divisible = 16 : i64}')).text
    assert [line.split(" ")[1] for line in body(text) if "ld.global" in line] == ["ld.global.v4.b32"] * 4
    assert sum(line.startswith("@%p1 st.global.v4.b32") for line in body(text)) == 1
    assert text.count("+2048]") == 3, "a second access is an immediate away"
    assert ".version 7.0\n.target sm_80" in text and ".reqntid 128, 1, 1" in text


def test_unknown_bounds_give_one_predicate_an_element():
    text = compile_text(vector_add('{tile.name = "n"}')).text
    assert "v4" not in text and sum("ld.global.b32" in line for line in body(text)) == 16


@pytest.mark.parametrize(("element", "wide"), [("f16", "v4.b32"), ("bf16", "v4.b32"), ("f32", "v4.b32"), ("f64", "v2.b64")])
def test_sixteen_bytes_an_access(element, wide):
    text = compile_text(vector_add('{tile.name = "n", tile.divisible = 16 : i64}', element, 2048)).text
    assert f"ld.global.{wide}" in text and f"st.global.{wide}" in text


def test_halves_are_added_in_pairs():
    assert "add.f16x2" in compile_text(vector_add('{tile.name = "n", tile.divisible = 16 : i64}', "f16")).text


def test_without_fusion_additions_are_rn():
    text = vector_add('{tile.name = "n"}')
    assert "add.f32" in compile_text(text).text
    assert "add.rn.f32" in compile_text(text, enable_fp_fusion=False).text


def test_only_one_copy_of_a_small_tile_stores():
    text = compile_text(vector_add('{tile.name = "n", tile.divisible = 16 : i64}', block=32)).text
    assert "and.b32" in text and sum("st.global" in line for line in body(text)) == 1


def test_a_tile_of_48_is_refused():
    with pytest.raises(UnsupportedError) as caught:
        compile_text(vector_add('{tile.name = "n"}', block=48))
    assert caught.value.code == "TFW0611"


@pytest.mark.parametrize("row", ["extu.i8.i32", "trunci.i32.i16", "addf.f32"])
def test_a_chip_that_lacks_a_base_row_is_refused_by_name(row, monkeypatch):
    """Its expansions would stand on themselves: a RecursionError from the depth of the kit."""
    monkeypatch.setattr("tilefw_nvidia.select.lanes.rules", lambda *chip: {k: v for k, v in rules(*chip).items() if k != row})
    with pytest.raises(PluginError, match=row) as caught:
        compile_text(vector_add('{tile.name = "n"}', "i8").replace("addf", "addi"))
    assert caught.value.code == "TFW0510"


def test_registers_of_vector_add_and_no_spills():
    if find_ptxas() is None:
        pytest.skip("no ptxas: pip install tilefw-nvidia[ptxas]")
    artifact = assemble(compile_text(vector_add('{tile.name = "n", tile.divisible = 16 : i64}')), OLDEST, ours=True)
    assert artifact.resources.spills == 0
    assert artifact.resources.registers is not None and artifact.resources.registers["add"] <= 32
    assert artifact.binary is not None and artifact.binary.startswith(b"\x7fELF")


def test_lowering_vector_add_takes_milliseconds():
    text = vector_add('{tile.name = "n", tile.divisible = 16 : i64}')
    compile_text(text)
    best = min(_seconds(text) for _ in range(5))
    assert best < 0.05  # Triton 3.9 takes 50 ms from source to PTX


def _seconds(text: str) -> float:
    start = time.process_time()
    compile_text(text)
    return time.process_time() - start
