"""Einsum of any equation of letters: each element of the result is a sum of products over the letters that go."""

from __future__ import annotations

from math import prod

from tilefw.api.errors import UnsupportedError
from tilefw_conformance.packs.onnx.node import Node, Tensor
from tilefw_conformance.packs.onnx.places import View, contiguous
from tilefw_conformance.packs.onnx.rows import Rows, typed
from tilefw_conformance.packs.onnx.text import KernelText


def lower(node: Node) -> KernelText:
    """A row is one element of the result, and numbers within it run over the letters that are summed."""
    operands, result = _letters(node)
    extents = {letter: n for word, tensor in zip(operands, node.given(), strict=True)
               for letter, n in zip(word, tensor.shape, strict=True)}
    summed = [letter for letter in extents if letter not in result]
    letters = [*result, *summed]
    rows = Rows(tuple(extents[letter] for letter in letters), tuple(range(len(result), len(letters))))
    text, out = rows.begin(node), node.output(0)
    factors = [
        text.load(tensor, rows.offset(_seen(tensor, word, letters)), "inside", "0.0", wide=True)
        for word, tensor in zip(operands, node.given(), strict=True)
    ]
    text.add(f"whole = tl.sum({' * '.join(factors)}, axis=1, keep_dims=True)")
    assert prod(out.shape) == rows.count
    text.store(out, "row", typed(text, out, "whole"), "known")
    return text


def _letters(node: Node) -> tuple[list[str], str]:
    """The operands' and the result's letters; a missing result has those that occur once, in order."""
    equation = node.attributes["equation"].replace(" ", "")
    if "." in equation or any(len(set(word)) != len(word) for word in equation.partition("->")[0].split(",")):
        note = f"the equation is {equation}"
        raise UnsupportedError("Einsum with an ellipsis or a diagonal", code="TFW0992", note=note)
    left, arrow, right = equation.partition("->")
    words = left.split(",")
    every = "".join(words)
    return words, right if arrow else "".join(sorted(letter for letter in set(every) if every.count(letter) == 1))


def _seen(tensor: Tensor, word: str, letters: list[str]) -> View:
    """The operand over all letters: those that it does not have repeat it."""
    dims = dict(zip(word, contiguous(tensor.shape).dims, strict=True))
    return View(tuple(dims.get(letter, (1, 0)) for letter in letters))


LOWERINGS = {"Einsum": lower}
