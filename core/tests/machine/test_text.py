"""Machine text: what is printed parses back to the same text; malformed text is an error with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilefw.api.errors import IRError, Place
from tilefw.machine.inst import Function, Inst
from tilefw.machine.text import parse_function, parse_functions, print_function


@st.composite
def functions(draw):
    function = Function("f", "toy", draw(st.sampled_from([{}, {"workgroup": [128, 1, 1]}])))
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
            ))
    return function


@given(functions())
def test_text_parses_back(function):
    text = print_function(function)
    assert print_function(parse_function(text)) == text


@pytest.mark.parametrize("text", [
    "", "func k", 'func @k target "c"\nentry:\n  %0 = add %1',
    'func @k target "c"\n  regs r: 0\nentry:\n  %0[0:2] = add',
    'func @k target "c"\n  regs r: 0\nentry:\n  %0 = add 1 2', 'func @k target "c"\n  regs r: 0-99999999\nentry:',
    'func @k target "c"\n  attributes {\nentry:', 'func @k target "c"\nentry:\n  add {buffer=x}',
    'func @k target "c"\n  nonsense\n',
])
def test_malformed_text_has_its_line(text):
    with pytest.raises(IRError) as caught:
        parse_function(text, "file.machine", 10)
    assert caught.value.code == "TFW0620" and caught.value.place is not None and caught.value.place.line >= 10


def test_functions_of_one_text_know_their_lines():
    one = 'func @a target "toy"\n  file v: 4\nentry:\n  $v[0:1] = mov 1\n'
    first, second = parse_functions(one + "\n" + one.replace("@a", "@b"), "two.txt")
    assert (first.name, second.name) == ("a", "b")
    assert [next(f.insts()).line for f in (first, second)] == [4, 9]


def test_a_text_without_functions_is_refused():
    with pytest.raises(IRError, match="begins with"):
        parse_functions("nothing\n", "two.txt")
