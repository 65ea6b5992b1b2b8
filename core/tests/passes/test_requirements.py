"""What a kernel needs is read off its operations, and claims cover it by their patterns."""

from __future__ import annotations

import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import BufferPlacement, LaunchArguments, UnsupportedError, capabilities
from tilefw.api.capabilities import missing
from tilefw.api.ir import ModuleOp
from tilefw.kernels.spec import load
from tilefw.kernels.verify import verify
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.passes.requirements import refuse_unserved, required
from tilefw.runtime.compilation.kernel_source import from_jit
from tilefw.tile.elementwise import ROWS
from tilefw.tile.text.module import parse

DOT = "tensor<16x16x{0}>, tensor<16x16x{0}>, tensor<16x16x{1}>"
OPERATIONS = [
    ("tensor<16x16xf16>", "%y = tile.dot %x, %x, %c : " + DOT.format("f16", "f32"), "f32", {"dot.fp16.fp16.fp32"}),
    ("tensor<16x16xf32>", "%y = tile.dot %x, %x, %c tf32x3 : " + DOT.format("f32", "f32"), "f32", {"dot.fp32.fp32.fp32.tf32x3"}),
    ("tensor<16x16xi8>", "%y = tile.dot %x, %x, %c : " + DOT.format("i8", "i32"), "i32", {"dot.int8.int8.int32"}),
    ("tensor<16x16xi8>", "%y = tile.dot %x, %x, %c unsigned : " + DOT.format("i8", "i32"), "i32", {"dot.uint8.uint8.int32"}),
    ("tensor<16x16xbf16>", "%y = tile.trans %x [1, 0] : tensor<16x16xbf16>", "f32", {"shape.trans.bf16"}),
    ("tensor<16x16xi32>", "%y = tile.flip %x axis 1 : tensor<16x16xi32>", "f32", {"shape.flip.int32"}),
    (
        "tensor<16x16xf32>",
        "%y = tile.reduce %x axis 0 : tensor<16x16xf32> {\n^bb0(%a : f32, %b : f32):\n"
        "%s = tile.addf %a, %b : f32\ntile.reduce_return %s : f32\n}",
        "f32", {"reduce.fp32", "float.add.fp32"},
    ),
    (
        "tensor<16x16xi8>",
        "%y = tile.scan %x axis 1 reverse : tensor<16x16xi8> {\n^bb0(%a : i8, %b : i8):\n"
        "%s = tile.muli %a, %b : i8\ntile.scan_return %s : i8\n}",
        "f32", {"scan.int8", "int.mul.int8"},
    ),
]


def needed(module: ModuleOp, launch: LaunchArguments | None = None) -> frozenset[str]:
    """What a compiler must serve, which gets a kernel as the default passes leave it."""
    PassManager(default_passes(launch)).run(module)
    return required(module, launch)


@pytest.mark.parametrize(("type", "operation", "accumulator", "needed"), OPERATIONS)
def test_an_operation_needs_its_capability(type: str, operation: str, accumulator: str, needed: set[str]) -> None:
    text = f"func.func public @f(%x : {type}, %c : tensor<16x16x{accumulator}>) {{\n{operation}\nfunc.return\n}}\n"
    assert required(parse(text)) == needed | {"shape.dims"}


@pytest.mark.parametrize(("claims", "left"), [
    ({"dot.*"}, {"reduce.fp32"}),
    ({"dot.fp16.*", "*.fp32"}, set()),
    ({"reduce.fp16", "dot.fp16.fp16.fp16"}, {"dot.fp16.fp16.fp32", "reduce.fp32"}),
])
def test_claims_cover_by_pattern(claims: set[str], left: set[str]) -> None:
    assert missing({"dot.fp16.fp16.fp32", "reduce.fp32"}, frozenset(claims)) == left


LOOPS = """
func.func public @f(%p : !tile.ptr<i32> {tile.name = "p"}, %q : !tile.ptr<f32> {tile.name = "q"}, %n : i32 {tile.name = "n"}) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %id = tile.program_id 0
  %end = tile.muli %id, %n : i32
  LOADED
  scf.for %i = %zero to %BOUND step %one : i32 {
    %at = tile.addptr %q, %i : !tile.ptr<f32>, i32
    %x = tile.load %at : !tile.ptr<f32>
    %y = tile.sqrt %x : f32
    tile.store %at, %y : !tile.ptr<f32>
  }
  func.return
}
"""
# What the loop needs: an iteration may load what an earlier one stored.
BODY = {"control.for", "math.sqrt.fp32", "memory.load.fp32", "memory.store.fp32", "memory.reload.fp32"}
LOADED = "%place = tile.addptr %p, %id : !tile.ptr<i32>, i32\n  %many = tile.load %place : !tile.ptr<i32>"


def loop(bound: str, loaded: str = "") -> str:
    return LOOPS.replace("BOUND", bound).replace("LOADED", loaded)


def test_a_trip_count_from_loaded_data_is_dynamic() -> None:
    assert "cf.dynamic" in needed(parse(loop("many", LOADED)))
    assert "cf.dynamic" not in needed(parse(loop("end")))


def test_scalars_that_the_compiler_gets_count() -> None:
    found = needed(parse(loop("end")))
    assert found == BODY | {"int.mul.int32"}


def test_one_launch_folds_what_it_tells() -> None:
    launch = LaunchArguments((4, 1, 1), {"n": 3}, {"p": BufferPlacement(0, 0, 64), "q": BufferPlacement(1, 0, 64)})
    found = needed(parse(loop("end")), launch)
    assert found == BODY


PLACES = """
func.func public @f(
  %p : !tile.ptr<i32> {tile.name = "p"}, %q : !tile.ptr<f32> {tile.name = "q"}, %r : !tile.ptr<f32> {tile.name = "r"}
) {
  %id = tile.program_id 0
  %zero = tile.constant 0 : i32
  %from = tile.addptr %p, %id : !tile.ptr<i32>, i32
  %index = tile.load %from : !tile.ptr<i32>
  %far = tile.addptr %q, %index : !tile.ptr<f32>, i32
  %near = tile.addptr %q, %id : !tile.ptr<f32>, i32
  %other = tile.addptr %r, %id : !tile.ptr<f32>, i32
  %x = tile.constant 1.0 : f32
  %c = tile.lts %index, %zero : i32
  BODY
  func.return
}
"""


@pytest.mark.parametrize(("body", "special"), [
    ("%y = tile.load %far : !tile.ptr<f32>", {"memory.gather.fp32"}),
    ("%y = tile.load %near : !tile.ptr<f32>", set()),
    ("tile.store %far, %x : !tile.ptr<f32>", {"memory.scatter.fp32"}),
    ("%y = tile.load %near : !tile.ptr<f32>\ntile.store %near, %y : !tile.ptr<f32>", set()),
    ("tile.store %near, %x : !tile.ptr<f32>\n%y = tile.load %near : !tile.ptr<f32>", {"memory.reload.fp32"}),
    ("tile.store %near, %x : !tile.ptr<f32>\n%y = tile.load %other : !tile.ptr<f32>", set()),
    ("scf.if %c {\ntile.store %near, %x : !tile.ptr<f32>\n}", {"cf.branch"}),
    ("%y = tile.atomic_rmw add acq_rel device %far, %x : !tile.ptr<f32>", {"memory.scatter.fp32"}),
])
def test_what_loaded_data_decides_has_a_name(body: str, special: set[str]) -> None:
    found = required(parse(PLACES.replace("BODY", body)))
    kinds = ("memory.gather", "memory.scatter", "memory.reload", "cf.branch")
    assert {name for name in found if name.startswith(kinds)} == special


def test_arguments_of_one_storage_are_one_memory() -> None:
    module = parse(PLACES.replace("BODY", "tile.store %near, %x : !tile.ptr<f32>\n%y = tile.load %other : !tile.ptr<f32>"))
    apart = LaunchArguments(
        (4, 1, 1), {}, {"p": BufferPlacement(0, 0, 64), "q": BufferPlacement(1, 0, 64), "r": BufferPlacement(2, 0, 64)}
    )
    shared = LaunchArguments(
        (4, 1, 1), {}, {"p": BufferPlacement(0, 0, 64), "q": BufferPlacement(1, 0, 64), "r": BufferPlacement(1, 32, 64)}
    )
    assert "memory.reload.fp32" not in required(module, apart)
    assert "memory.reload.fp32" in required(module, shared)


def test_a_loop_that_no_launch_enters_is_gone_but_one_that_a_launch_may_enter_counts() -> None:
    assert needed(parse(loop("zero"))) == frozenset()
    assert needed(parse(loop("n"))) == BODY


@tilefw.jit
def block_of(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    inside = (place[:, None] < columns) & (place[None, :] < columns)
    values = tl.load(x_ptr + place[:, None] * columns + place[None, :], mask=inside)
    tl.store(out_ptr + place[:, None] * columns + place[None, :], values, mask=inside)


def test_tiles_of_addresses_need_nothing_and_tiles_of_two_dims_need_dims() -> None:
    source = from_jit(block_of, {"x_ptr": "*fp32:16", "out_ptr": "*fp32:16", "columns": "i32"}, {"BLOCK": 16})
    assert needed(source.build()) == {"shape.dims", "memory.load.fp32", "memory.store.fp32"}


def test_a_launch_without_trips_needs_what_the_body_needs() -> None:
    spec = load("swiglu")
    found = verify(spec, {"rows": 3, "columns": 0, "dtype": "bf16", "block": 64}, "reference", stop_after="verify").required
    assert {"memory.load.bf16", "memory.store.bf16", "math.exp.fp32"} <= found and "shape.dims" not in found


def test_the_registry_has_just_the_groups_of_the_table() -> None:
    rows = {row.group for row in ROWS.values()}
    kinds = {group.name for group in capabilities.GROUPS if group.name.split(".")[0] in ("int", "float", "math", "cast", "select")}
    assert rows == kinds
    assert all(group.doc and not group.doc.endswith(".") for group in capabilities.GROUPS)


@pytest.mark.parametrize(("name", "there"), [
    ("int.mul.int32", True), ("int.mull.int32", False), ("int.mul.fp32", False), ("int.*", True), ("*.fp32", True), ("*", True),
    ("math.exq.*", False), ("cf.dynamic", True), ("x-acme.matrix", True), ("x-.matrix", False), ("dot.fp16.bf16.fp32", False),
    ("dot.fp8e5.fp8e4nv.fp16", True), ("atomic.cas.fp16", True), ("atomic.and.fp32", False), ("", False), ("scan", False),
])
def test_a_capability_is_in_the_registry_or_no_capability(name: str, there: bool) -> None:
    assert capabilities.known(name) is there


def test_a_profile_needs_all_of_it() -> None:
    assert capabilities.profiles(frozenset({"*"})) == tuple(capabilities.PROFILES)
    mma = capabilities.PROFILES["tile-mma"]
    assert capabilities.profiles(frozenset(mma)) == ("tile-mma",)
    assert capabilities.profiles(frozenset(mma[1:])) == ()
    assert all(capabilities.known(name) for profile in capabilities.PROFILES.values() for name in profile)


def test_what_a_target_does_not_serve_is_refused_at_its_line() -> None:
    module = parse(PLACES.replace("BODY", "%y = tile.load %far : !tile.ptr<f32>"), "kernel.mlir")
    refuse_unserved(module, "made-up", frozenset({"memory.*", "int.*"}))
    with pytest.raises(UnsupportedError, match=r"made-up does not serve memory\.gather\.fp32") as caught:
        refuse_unserved(module, "made-up", frozenset({"memory.load.*", "memory.store.*", "int.*"}))
    assert caught.value.code == "TFW0611"
    assert "addresses that depend on data" in (caught.value.note or "")
