"""The text of Triton's IR: what of it becomes which tile IR, and mistakes, which name their place in the text."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from importlib import import_module

import pytest

from tilefw.api.errors import CompileError, IRError, KernelError, UnsupportedError
from tilefw.frontend.builtins.library import meaning as library
from tilefw.importers.triton_ir import parse
from tilefw.importers.triton_ir.operations.external import function_of
from tilefw.tile.text.source_location import place_of


def kernel(body: str, parameters: str = "%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32") -> str:
    return "module {\n  tt.func public @k(" + parameters + ") attributes {noinline = false} {\n" + textwrap.indent(
        textwrap.dedent(body).strip("\n"), "    "
    ) + "\n    tt.return\n  }\n}\n"


def ops(text: str) -> str:
    return str(parse(text))


def test_parameters_keep_names_types_and_divisibility() -> None:
    text = ops(kernel("", "%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %n: i64 loc(unknown), %f: f32"))
    assert '%x: !tile.ptr<bf16> {tile.name = "x", tile.divisible = 16 : i64}' in text
    assert '%n: i64 {tile.name = "n"}, %f: f32 {tile.name = "f"}' in text


def test_a_descriptor_of_the_host_is_a_pointer_with_its_extents_and_strides() -> None:
    parameters = "%d: !tt.tensordesc<8x16xf16>, %r: i32, %c: i32, %s: i64, %t: i64"
    body = """
        %0 = arith.constant 0 : i32
        %1 = tt.descriptor_load %d[%0, %r] : !tt.tensordesc<8x16xf16> -> tensor<8x16xf16>
        tt.descriptor_store %d[%0, %0], %1 : !tt.tensordesc<8x16xf16>, tensor<8x16xf16>
    """
    text = ops(kernel(body, parameters))
    assert "!tile.ptr<f16>" in text and "tile.load_block" in text and "tile.store_block" in text
    with pytest.raises(IRError, match="do not follow it"):
        parse(kernel(body, "%d: !tt.tensordesc<8x16xf16>, %r: i32, %c: i64"))


@pytest.mark.parametrize(
    "constant, printed",
    [
        ("dense<0xFF800000> : tensor<4xf32>", "-inf : tensor<4xf32>"), ("0x7FC0 : bf16", "nan : bf16"),
        ("0x3E00 : f16", "1.5 : f16"), ("1.5e+02 : f64", "150.0 : f64"), ("-3 : i8", "-3 : i8"),
        ("true", "true : i1"), ("dense<false> : tensor<2xi1>", "false : tensor<2xi1>"),
    ],
)
def test_constants_are_read_in_decimal_and_as_bits(constant: str, printed: str) -> None:
    assert f"tile.constant {printed}" in ops(kernel(f"%c = arith.constant {constant}"))


@pytest.mark.parametrize("predicate", ["ult", "ule", "ugt", "uge", "one", "ueq", "ord", "uno", "true", "false", "une", "oeq"])
def test_every_predicate_of_floats_is_there(predicate: str) -> None:
    parse(kernel(f"%c = arith.constant 1.0 : f32\n%d = arith.cmpf {predicate}, %c, %c : f32"))


def test_hints_and_wishes_are_kept() -> None:
    text = ops(kernel("""
        %r = tt.make_range {end = 8 : i32, start = 0 : i32, tt.contiguity = dense<8> : tensor<1xi32>} : tensor<8xi32>
        %0 = arith.constant 0 : i32
        %1 = arith.constant 1 : i32
        scf.for %i = %0 to %n step %1  : i32 {
          %p = tt.addptr %x, %i : !tt.ptr<f32>, i32
          %v = tt.load %p cacheModifier = cg evictionPolicy = evict_last {isVolatile = true} : !tt.ptr<f32>
          tt.store %p, %v cacheModifier = wt : !tt.ptr<f32>
        } {tt.num_stages = 3 : i32, tt.flatten}
    """))
    assert "tile.contiguous = array<i64: 8>" in text and "tile.num_stages = 3 : i32" in text and "tile.flatten" in text
    assert 'cache ".cg" eviction "evict_last" volatile' in text and 'cache ".wt"' in text


def test_operations_keep_the_lines_of_the_python_source() -> None:
    body = "%p = tt.get_program_id x : i32 loc(#loc3)\ntt.store %x, %f : !tt.ptr<f32> loc(#loc4)"
    aliases = '#loc1 = loc("a.py":3:7)\n#loc2 = loc("b.py":9:1)\n#loc3 = loc("p"(#loc1))\n#loc4 = loc(callsite(#loc1 at #loc2))\n'
    store = next(op for op in parse(aliases + kernel(body, "%x: !tt.ptr<f32>, %f: f32")).walk() if op.name == "tile.store")
    place = place_of(store)
    assert place is not None and (place.file, place.line, place.column) == ("a.py", 3, 7)
    assert place.caller is not None and (place.caller.file, place.caller.line) == ("b.py", 9)


@pytest.mark.parametrize(
    "body, kind, line, column, said",
    [
        ("%a = tt.frobnicate %n : i32", UnsupportedError, 3, 5, "tt.frobnicate of Triton IR is not imported"),
        ("%a = arith.addi %n, %m : i32", IRError, 3, 5, "the value %m is not defined"),
        ("%a = arith.addi %n, : i32\n%b = )", IRError, 4, 10, "expected an operation"),
        ("%a = arith.addi %n, %n : tensor<", IRError, 5, 3, "closes no bracket"),
        ("%a = arith.addi %n, %n : i64", IRError, 3, 5, "do not fit arith.addi"),
        ("%a = arith.constant dense<[1, 2]> : tensor<2xi32>", UnsupportedError, 3, 5, "whose elements differ"),
        ("%a = tt.splat %n : i32 -> tensor<4xi32, #blocked>", UnsupportedError, 3, 5, "has a layout"),
        ("%a = tt.call @nowhere(%n) : (i32) -> i32", IRError, 3, 5, "do not fit tt.call"),
        ("%a, %b = arith.addi %n, %n : i32", IRError, 3, 5, "do not fit arith.addi"),
        ("%a = tt.load %n : i32", IRError, 3, 5, "do not fit tt.load"),
        ("cf.br ^a\n^a:\ncf.br ^b\n^b:\ncf.br ^a\n^c:", UnsupportedError, 2, 3, "a jump backwards"),
        ("cf.br ^a\n^a:\ncf.br ^a", IRError, 5, 5, "ends its block"),
        ('%a = tt.extern_elementwise %n {symbol = "__nv_frexpf"} : (i32) -> i32', UnsupportedError, 3, 5, "__nv_frexpf"),
        ("%a = tt.dot %n, %n, %n : i32 * i32 -> i32", IRError, 3, 5, "takes matrices"),
    ],
)
def test_mistakes_name_their_place(body: str, kind: type[KernelError], line: int, column: int, said: str) -> None:
    with pytest.raises(KernelError) as caught:
        parse(kernel(body), "k.ttir")
    error = caught.value
    assert isinstance(error, kind) and said in str(error)
    assert error.place is not None and (error.place.file, error.place.line, error.place.column) == ("k.ttir", line, column)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "has 0"), ("module {", "not closed"), ("module {\n  func.func @f() {\n  }\n}", "tt.func"),
        (kernel("").replace("  }\n}\n", ""), "not closed"), (kernel("") + kernel("").replace("@k", "@l"), "this one has 2"),
        (kernel('%a = "x'), "expected"), (kernel("") .replace("%n: i32", "%n: i33"), "i33"),
        (kernel("tt.call @k(%x, %n) : (!tt.ptr<f32>, i32) -> ()"), "nested too deeply"),
    ],
)
def test_texts_that_are_no_kernel_are_refused(text: str, said: str) -> None:
    with pytest.raises((IRError, CompileError), match=said):
        parse(text)


def test_a_text_cut_anywhere_is_refused_in_words() -> None:
    text = kernel("""
        %0 = arith.constant dense<0.0> : tensor<4xf32> loc(#loc)
        %1 = tt.splat %x : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
        %2 = "tt.reduce"(%0) <{axis = 0 : i32}> ({
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          tt.reduce.return %c : f32
        }) : (tensor<4xf32>) -> f32
        tt.store %x, %2 : !tt.ptr<f32>
    """)
    parse(text)
    for end in range(len(text.rstrip()) - 1):
        with pytest.raises(KernelError):
            parse(text[:end])


@pytest.mark.parametrize("vendor", ["cuda", "hip"])
def test_symbols_of_device_libraries_are_the_functions_that_they_are_named_for(vendor: str) -> None:
    """By the functions of Triton's own modules: each calls its symbols."""
    pytest.importorskip("triton", reason="Triton is not installed")
    module = ast.parse(inspect.getsource(import_module(f"triton.language.extra.{vendor}.libdevice")))
    found = 0
    for function in (node for node in module.body if isinstance(node, ast.FunctionDef)):
        due = library.of.get(f"libdevice.{function.name}")
        for symbol in re.findall(r"__(?:nv|ocml)_\w+", ast.unparse(function)) if due is not None else ():
            found += 1
            assert function_of(symbol) is due, symbol
    assert found > 80
