"""Machine text: what is printed parses back to the same text; malformed text is an error with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilefw.api.artifact import Parameter
from tilefw.api.errors import IRError, Place
from tilefw.api.remark import Remark
from tilefw.machine.function_attributes import FunctionAttributes
from tilefw.machine.inst import Function, Inst
from tilefw.machine.text import parse_function, parse_functions, print_function

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
SIZES = st.integers(0, 1 << 40)
COUNTS = st.dictionaries(WORDS, SIZES, max_size=3)
PARAMETERS = st.builds(
    Parameter, WORDS, st.sampled_from(["pointer", "scalar", "struct"]), WORDS, SIZES, SIZES, SIZES, st.none() | st.booleans(),
    st.none() | WORDS,
)
REMARKS = st.builds(Remark, WORDS, WORDS, WORDS, st.none() | st.builds(Place, WORDS, SIZES, SIZES))
ATTRIBUTES = st.just(FunctionAttributes()) | st.builds(
    FunctionAttributes,
    workgroup=st.none() | st.tuples(*[st.integers(1, 1024)] * 3), parameters=st.lists(PARAMETERS, max_size=3).map(tuple),
    shared_bytes=SIZES, shared_align=st.integers(1, 1024), acquires=st.booleans(), remarks=st.lists(REMARKS, max_size=2).map(tuple),
    spills=COUNTS, scratch_bytes=SIZES, registers=st.none() | COUNTS,
)


@st.composite
def functions(draw):
    function = Function("f", "toy", draw(ATTRIBUTES))
    kinds = draw(st.lists(st.sampled_from([("v", 1, 1), ("v", 4, 2), ("p", 1, 1)]), min_size=1, max_size=8))
    regs = [function.register(*kind) for kind in kinds]
    if draw(st.booleans()):
        regs.append(function.file("v", 64))

    def piece():
        reg = draw(st.sampled_from(regs))
        first = draw(st.integers(0, reg.width - 1))
        return reg.slice(first, draw(st.integers(1, reg.width - first)))

    def operand():
        text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=6)
        return draw(st.one_of(st.integers(-(2**63), 2**63), text)) if draw(st.booleans()) else piece()

    for label in ("entry", "next"):
        block = function.block(label)
        for _ in range(draw(st.integers(0, 4))):
            block.insts.append(Inst(
                draw(st.sampled_from(["add", "ld.global.v2.b32", "x:y"])),
                [piece() for _ in range(draw(st.integers(0, 2)))], [operand() for _ in range(draw(st.integers(0, 3)))],
                predicate=piece() if draw(st.booleans()) else None, predicate_not=False,
                tied=draw(st.sampled_from([(), ((0, 1),)])), implicit_uses=[piece() for _ in range(draw(st.integers(0, 1)))],
                targets=draw(st.sampled_from([(), ("next",)])), buffer=draw(st.sampled_from([None, -1, 2])),
                volatile=draw(st.booleans()), place=draw(st.sampled_from([None, Place("a b.py", 3, 4)])),
                no_wrap=draw(st.sampled_from(["", "exact", "proven", "lost"])),
            ))
            block.insts[-1].wide = draw(st.sampled_from([(), ((0, 2), (1, 0))]))
    return function


@given(functions())
def test_text_parses_back(function):
    text = print_function(function)
    found = parse_function(text)
    assert found.attributes == function.attributes
    assert print_function(found) == text


@pytest.mark.parametrize("text", [
    "", "func k", 'func @k target "c"\nentry:\n  %0 = add %1',
    'func @k target "c"\n  regs r: 0\nentry:\n  %0[0:2] = add',
    'func @k target "c"\n  regs r: 0\nentry:\n  %0 = add 1 2', 'func @k target "c"\n  regs r: 0-99999999\nentry:',
    'func @k target "c"\n  attributes {\nentry:', 'func @k target "c"\nentry:\n  add {buffer=x}',
    'func @k target "c"\n  nonsense\n', f'func @k target "c"\n  attributes {"[" * 100_000}\nentry:',
])
def test_malformed_text_has_its_line(text):
    with pytest.raises(IRError) as caught:
        parse_function(text, "file.machine", 10)
    assert caught.value.code == "TFW0620" and caught.value.place is not None and caught.value.place.line >= 10


@pytest.mark.parametrize(("attributes", "message"), [
    ("[]", "the object of attributes has the wrong type"), ('{"shared": 4}', "no attribute 'shared'"),
    ('{"workgroup": [64, 1]}', "not three extents"), ('{"workgroup": [64, 0, 1]}', "not three extents"),
    ('{"workgroup": "64"}', "workgroup has the wrong type"), ('{"shared_bytes": -4}', "shared_bytes is -4"),
    ('{"shared_bytes": true}', "shared_bytes has the wrong type"), ('{"shared_align": 0}', "shared_align is 0"),
    ('{"spills": null}', "spills has the wrong type"), ('{"registers": {"v": "2"}}', "registers has the wrong type"),
    ('{"parameters": [{"name": "x"}]}', "kind is missing"), ('{"remarks": [{"code": "TFW0623"}]}', "place is missing"),
])
def test_wrong_attributes_are_refused_at_their_line(attributes, message):
    with pytest.raises(IRError, match=message) as caught:
        parse_function(f'func @k target "c"\n  attributes {attributes}\nentry:', "file.machine", 10)
    assert caught.value.code == "TFW0620" and caught.value.place is not None and caught.value.place.line == 11


def test_functions_of_one_text_know_their_lines():
    one = 'func @a target "toy"\n  file v: 4\nentry:\n  $v[0:1] = mov 1\n'
    first, second = parse_functions(one + "\n" + one.replace("@a", "@b"), "two.txt")
    assert (first.name, second.name) == ("a", "b")
    assert [next(f.insts()).line for f in (first, second)] == [4, 9]


def test_a_text_without_functions_is_refused():
    with pytest.raises(IRError, match="begins with"):
        parse_functions("nothing\n", "two.txt")
