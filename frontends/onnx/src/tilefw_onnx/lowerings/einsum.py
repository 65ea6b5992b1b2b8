"""Einsum of any equation: each element of the result is a sum of products over the letters that go."""

from __future__ import annotations

from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, contiguous
from tilefw_onnx.lowerings.rows import RowView, typed
from tilefw_onnx.lowerings.text import KernelText

_ELLIPSIS = "..."


def lower(node: Node) -> KernelText:
    """A row is one element of the result, and numbers within it run over the letters that are summed."""
    operands, result = _letters(node)
    extents: dict[str, int] = {}
    for word, tensor in zip(operands, node.given(), strict=True):
        for letter, extent in zip(word, tensor.shape, strict=True):
            extents[letter] = max(extent, extents.get(letter, extent))
    letters = [*result, *(letter for letter in extents if letter not in result)]
    rows = RowView(tuple(extents[letter] for letter in letters), tuple(range(len(result), len(letters))))
    text, out = rows.begin(node), node.output(0)
    factors = [
        text.load(tensor, rows.offset(_seen(tensor, word, letters)), "inside", "0.0", wide=True)
        for word, tensor in zip(operands, node.given(), strict=True)
    ]
    text.add(f"whole = tl.sum({' * '.join(factors)}, axis=1, keep_dims=True)")
    text.store(out, "row", typed(text, out, "whole"), "known")
    return text


def _letters(node: Node) -> tuple[list[str], str]:
    """A letter for each dim of each operand, and the result's. A missing result has those that occur once, in order, behind the
    dims of an ellipsis. The latter are digits, counted from the last, since they match from there."""
    left, arrow, right = node.attributes["equation"].replace(" ", "").partition("->")
    words, most = [], 0
    for word, tensor in zip(left.split(","), node.given(), strict=True):
        hidden = len(tensor.shape) - len(word.replace(_ELLIPSIS, ""))
        most = max(most, hidden)
        words.append(word.replace(_ELLIPSIS, _digits(hidden)))
    if arrow:
        return words, right.replace(_ELLIPSIS, _digits(most))
    every = "".join(words)
    once = sorted(letter for letter in set(every) if letter.isalpha() and every.count(letter) == 1)
    return words, _digits(most) + "".join(once)


def _digits(count: int) -> str:
    return "".join(str(place) for place in range(count))[::-1]


def _seen(tensor: NodeTensor, word: str, letters: list[str]) -> View:
    """The operand over all letters: those that it lacks repeat it, and one that it has twice goes along its diagonal."""
    dims: dict[str, tuple[int, int]] = {}
    for letter, (extent, stride) in zip(word, contiguous(tensor.shape).dims, strict=True):
        dims[letter] = (extent, stride + dims.get(letter, (0, 0))[1])
    return View(tuple(dims.get(letter, (1, 0)) for letter in letters))


LOWERINGS = {"Einsum": lower}
