"""RNN, GRU and LSTM written out: one product of all steps' inputs by the weights, then the gates of one step after the other.

The formulas, the order of the gates and the defaults are those of `onnx/defs/rnn/defs.cc`. A sequence that is shorter than the
longest keeps its state from its last step on, and its outputs are zero behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

from tilefw.api.errors import UnsupportedError
from tilefw_onnx.expansions.node_writer import NodeWriter
from tilefw_onnx.lowerings.node import Node

_MOST_STEPS = 4096
_GATES: Mapping[str, int] = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ACTIVATIONS: Mapping[str, Sequence[str]] = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}

# ONNX says that the inputs of activations are clipped; those of gates are, as ONNX Runtime has it, and an LSTM's cell is not.
_OF_GATES = 2  # activations, f and g
Activation = Callable[[str], str]
_Default = float | EllipsisType | None

# What an activation of a recurrent node is called, the operator of that meaning, and the defaults of its alpha and beta: None for
# what it does not take, ... for what the node must say. Values that a node says go to the activations that take one, in order.
_PLAIN = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "softsign": "Softsign", "softplus": "Softplus"}
_SCALED: Mapping[str, tuple[str, _Default, _Default]] = {
    "leakyrelu": ("LeakyRelu", 0.01, None), "thresholdedrelu": ("ThresholdedRelu", 1.0, None), "elu": ("Elu", 1.0, None),
    "hardsigmoid": ("HardSigmoid", 0.2, 0.5), "affine": ("Affine", 1.0, 0.0), "scaledtanh": ("ScaledTanh", ..., ...),
}


@dataclass(slots=True)
class _Direction:
    """One direction of a node: its weights, transposed, and its activations."""

    w: NodeWriter
    recurrent: str  # (hidden, gates · hidden)
    inputs: str  # (steps, batch, gates · hidden): products of all inputs, with the biases that are added to them
    bias: str  # of the recurrent product of a GRU, where it is not part of `inputs`
    peepholes: Sequence[str]
    activations: Sequence[Activation]

    def gates(self, source: str, count: int) -> list[str]:
        """A row of all gates as the gates."""
        return self.w.split(source, 1, [_hidden(self.w.node)] * count)


def written_out(w: NodeWriter) -> None:
    """The nodes of a recurrent node. Raises UnsupportedError TFW0992 for what is not served."""
    node, attributes = w.node, w.node.attributes
    batch_first = bool(attributes.get("layout", 0))
    x = w("Transpose", w.input(0), perm=[1, 0, 2]) if batch_first else w.input(0)
    steps, batch = (node.input(0).shape[dim] for dim in ((1, 0) if batch_first else (0, 1)))
    if steps > _MOST_STEPS:
        raise UnsupportedError(f"{node.operator} of more than {_MOST_STEPS:,} steps", code="TFW0992")
    order = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[attributes["direction"]]
    rows: list[list[str]] = []  # of each direction the outputs of all steps
    last: list[list[str]] = []  # and its states at the end
    for number, backwards in enumerate(order):
        states = [_initial(w, number, place, batch, batch_first) for place in ((5, 6) if node.operator == "LSTM" else (5,))]
        found, ends = _walked(w, _direction(w, x, number), states, list(range(steps))[:: -1 if backwards else 1])
        rows.append(found)
        last.append(ends)
    _stacked(w, rows, last, batch_first)


def _hidden(node: Node) -> int:
    return node.input(2).shape[2]


def _of(w: NodeWriter, name: str, number: int, axis: int = 0) -> str:
    """What one direction has of a tensor with a dim of directions."""
    return w("Squeeze", w.part(name, axis, number, number + 1), w.integers(axis))


def _initial(w: NodeWriter, number: int, place: int, batch: int, batch_first: bool) -> str:
    if not w.input(place):
        return w.constant(np.zeros((batch, _hidden(w.node)), w.number(0).dtype))
    return _of(w, w.input(place), number, 1 if batch_first else 0)


def _direction(w: NodeWriter, x: str, number: int) -> _Direction:
    node, count, hidden = w.node, _GATES[w.node.operator], _hidden(w.node)
    weight, recurrent = (w("Transpose", _of(w, w.input(place), number), perm=[1, 0]) for place in (1, 2))
    inputs, bias = w("MatMul", x, weight), ""
    if w.input(3):
        first, second = (w.part(_of(w, w.input(3), number), 0, k * count * hidden, (k + 1) * count * hidden) for k in (0, 1))
        if node.operator == "GRU" and node.attributes["linear_before_reset"]:
            bias = second
            inputs = w("Add", inputs, first)
        else:
            inputs = w("Add", inputs, w("Add", first, second))
    peepholes = []
    if node.operator == "LSTM" and w.input(7):
        peepholes = w.split(_of(w, w.input(7), number), 0, [_hidden(node)] * 3)
    return _Direction(w, recurrent, inputs, bias, peepholes, _activations(w, number))


def _activations(w: NodeWriter, number: int) -> list[Activation]:
    attributes, own = w.node.attributes, _ACTIVATIONS[w.node.operator]
    names = [one.decode() if isinstance(one, bytes) else one for one in attributes.get("activations") or []]
    said = [iter(attributes.get(f"activation_{word}") or []) for word in ("alpha", "beta")]
    made = []
    for place, name in enumerate(names or [*own, *own]):
        defaults = _SCALED.get(name.lower(), ("", None, None))[1:]
        numbers = [None if default is None else next(values, default) for values, default in zip(said, defaults, strict=True)]
        made.append(_activation(w, name, numbers, attributes.get("clip") if place % len(own) < _OF_GATES else None))
    return made[number * len(own) : (number + 1) * len(own)]


def _activation(w: NodeWriter, name: str, numbers: Sequence[_Default], clip: float | None) -> Activation:
    key = name.lower()
    if key not in _PLAIN and key not in _SCALED:
        known = ", ".join(sorted((*_PLAIN, *_SCALED)))
        raise UnsupportedError(f"{w.node.operator} with activation {name}", code="TFW0992", note=f"served are {known}")

    if ... in numbers:
        said = f"{w.node.operator} with activation {name} and no activation_alpha and activation_beta"
        raise UnsupportedError(said, code="TFW0992")
    given: dict[str, Any] = {word: one for word, one in zip(("alpha", "beta"), numbers, strict=True) if one is not None}

    def made(value: str) -> str:
        if clip is not None:
            value = w("Clip", value, *(w.number(bound) for bound in (-clip, clip)))
        if key in _PLAIN:
            return w(_PLAIN[key], value)
        if key in ("affine", "scaledtanh"):
            return _scaled(w, key, value, given["alpha"], given["beta"])
        return w(_SCALED[key][0], value, **given)

    return made


def _scaled(w: NodeWriter, key: str, value: str, alpha: float, beta: float) -> str:
    """alpha · x + beta, or alpha · tanh(beta · x)."""
    if key == "affine":
        return w("Add", w("Mul", w.number(alpha), value), w.number(beta))
    return w("Mul", w.number(alpha), w("Tanh", w("Mul", w.number(beta), value)))


def _walked(w: NodeWriter, one: _Direction, states: list[str], steps: Sequence[int]) -> tuple[list[str], list[str]]:
    """The outputs of all steps in the order of the sequence, and the states at the end."""
    step = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}[w.node.operator]
    found = dict.fromkeys(steps, "")
    for number in steps:
        x = w("Squeeze", w.part(one.inputs, 0, number, number + 1), w.integers(0))
        now = step(w, one, x, states)
        shown = now[0]
        if w.input(4):
            goes_on = w("Less", np.array(number, np.int32), w("Unsqueeze", w.input(4), w.integers(1)))
            now = [w("Where", goes_on, new, old) for new, old in zip(now, states, strict=True)]
            shown = w("Where", goes_on, shown, w.number(0))
        states, found[number] = now, shown
    return [found[number] for number in sorted(found)], states


def _rnn(w: NodeWriter, one: _Direction, x: str, states: Sequence[str]) -> list[str]:
    return [one.activations[0](w("Add", x, w("MatMul", states[0], one.recurrent)))]


def _gru(w: NodeWriter, one: _Direction, x: str, states: Sequence[str]) -> list[str]:
    held, hidden = states[0], _hidden(w.node)
    f, g = one.activations
    if w.node.attributes["linear_before_reset"]:
        product = w("MatMul", held, one.recurrent)
        given = one.gates(w("Add", product, one.bias) if one.bias else product, 3)
        x_update, x_reset, x_new = one.gates(x, 3)
        update, reset = f(w("Add", x_update, given[0])), f(w("Add", x_reset, given[1]))
        new = g(w("Add", x_new, w("Mul", reset, given[2])))
    else:
        both, rest = w.part(one.recurrent, 1, 0, 2 * hidden), w.part(one.recurrent, 1, 2 * hidden, 3 * hidden)
        update, reset = (f(v) for v in one.gates(w("Add", w.part(x, 1, 0, 2 * hidden), w("MatMul", held, both)), 2))
        new = g(w("Add", w.part(x, 1, 2 * hidden, 3 * hidden), w("MatMul", w("Mul", reset, held), rest)))
    kept = w("Sub", w.number(1), update)
    return [w("Add", w("Mul", kept, new), w("Mul", update, held))]


def _lstm(w: NodeWriter, one: _Direction, x: str, states: Sequence[str]) -> list[str]:
    held, cell = states
    f, g, h = one.activations
    enter, leave, forget, new = one.gates(w("Add", x, w("MatMul", held, one.recurrent)), 4)
    if one.peepholes:
        enter = w("Add", enter, w("Mul", one.peepholes[0], cell))
        forget = w("Add", forget, w("Mul", one.peepholes[2], cell))
    entered = f(enter)
    kept = w("Sub", w.number(1), entered) if w.node.attributes["input_forget"] else f(forget)
    now = w("Add", w("Mul", kept, cell), w("Mul", entered, g(new)))
    if one.peepholes:
        leave = w("Add", leave, w("Mul", one.peepholes[1], now))
    return [w("Mul", f(leave), h(now)), now]


def _stacked(w: NodeWriter, rows: Sequence[Sequence[str]], last: Sequence[Sequence[str]], batch_first: bool) -> None:
    """The outputs: of all steps and directions, and the states at the end."""
    if w.output(0):
        axis = 1 if batch_first else 0
        ways = [w("Concat", *(w("Unsqueeze", one, w.integers(axis)) for one in found), axis=axis) for found in rows]
        _beside(w, ways, 2 if batch_first else 1, w.output(0))
    for place, states in enumerate(zip(*last, strict=True), 1):
        if w.output(place):
            _beside(w, states, 1 if batch_first else 0, w.output(place))


def _beside(w: NodeWriter, directions: Sequence[str], axis: int, name: str) -> None:
    w("Concat", *(w("Unsqueeze", one, w.integers(axis)) for one in directions), axis=axis, gives=name)


EXPANSIONS: Mapping[str, Callable[[NodeWriter], None]] = dict.fromkeys(_GATES, written_out)
