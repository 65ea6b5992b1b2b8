"""Scans written out: the nodes of the body once for each element of the axis that is scanned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from tilefw.api.errors import UnsupportedError
from tilefw_onnx.loops import MOST_TURNS, NodeReading, ReadValue, name_value, stack, turn_outputs, value_of
from tilefw_onnx.lowerings.node import attributes_of


def write_out(reading: NodeReading, proto: onnx.NodeProto, label: str) -> None:
    """Read the body for each element. Raises UnsupportedError TFW0992 for results along another axis than the first."""
    asked = attributes_of(proto, reading.opsets.get(proto.domain, 1))
    body, scanned = asked["body"], list(proto.input[-asked["num_scan_inputs"] :])
    states = [value_of(reading, name) for name in proto.input[: -len(scanned)]]
    results = len(body.output) - len(states)
    axes = asked.get("scan_input_axes") or [0] * len(scanned)
    backwards = asked.get("scan_input_directions") or [0] * len(scanned)
    if any(asked.get("scan_output_axes") or ()):
        raise UnsupportedError("a scan whose results lie along another axis than the first", code="TFW0992")
    turns = reading.type_of(scanned[0])[1][axes[0]]
    if turns > MOST_TURNS:
        raise UnsupportedError(f"a scan of more than {MOST_TURNS:,} elements", code="TFW0992")
    stacked: list[list[ReadValue]] = [[] for _ in range(results)]
    for turn in range(turns):
        elements = [
            _element(reading, name, axis, turns - 1 - turn if back else turn, f"{label}, turn {turn}")
            for name, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        refused = len(reading.refused)
        found = turn_outputs(reading, body, [*states, *elements], f"{label}, turn {turn}")
        if len(reading.refused) > refused:
            return  # what reads the scan's results is not read either
        states = found[: len(states)]
        for held, more in zip(stacked, found[len(states) :], strict=True):
            held.append(more)
    for name, value in zip(proto.output, states, strict=False):
        name_value(reading, name, value)
    turned = asked.get("scan_output_directions") or [0] * results
    _name_results(reading, proto.output[len(states) :], [p[::-1] if t else p for p, t in zip(stacked, turned, strict=True)], label)


def _name_results(reading: NodeReading, names: Sequence[str], parts: Sequence[list[ReadValue]], label: str) -> None:
    for name, found in zip(names, parts, strict=True):
        if name:
            stack(reading, name, found, label)


def _element(reading: NodeReading, name: str, axis: int, place: int, label: str) -> ReadValue:
    """What a turn has of a tensor that is scanned."""
    kind, shape = reading.type_of(name)
    at, given = f"{label}: place", f"{label}: element of {name}"
    axis %= len(shape)
    name_value(reading, at, ReadValue(np.array(place)))
    name_value(reading, given, ReadValue(type=(kind, (*shape[:axis], *shape[axis + 1 :]))))
    reading.read_node(helper.make_node("Gather", [name, at], [given], axis=axis), given)
    return value_of(reading, given)
