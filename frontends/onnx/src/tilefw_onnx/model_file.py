"""A model from a file, its large weights beside it as arrays.

What looks at the whole model, checker and shape inference, would copy them each time, and takes no more than protobuf's 2 GiB;
weights beyond these lie in files of their own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import external_data_helper, numpy_helper

from tilefw.api.errors import CodeError

_SMALL = 1 << 14  # bytes of a weight that stays where it is: it may be a shape, or what a conversion of opsets looks at


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model in which large weights are inputs, of which the file `name` has the values."""

    model: onnx.ModelProto
    weights: dict[str, np.ndarray]
    name: str


def opened(path: str | os.PathLike[str]) -> OpenedModel:
    """The model in a file, checked. Raises CodeError: TFW0930 for a file that cannot be read, TFW0994 for no whole model."""
    name = os.fspath(path)
    return _checked(lambda: onnx.load(name, load_external_data=False), name, os.path.dirname(name))


def opened_bytes(data: bytes, name: str) -> OpenedModel:
    """The model in the bytes of a file that is called `name`."""
    return _checked(lambda: onnx.load_model_from_string(data), name, os.path.dirname(name))


def opened_model(model: onnx.ModelProto, name: str) -> OpenedModel:
    """A model that somebody has built, which stays as it is."""
    own = onnx.ModelProto()
    own.CopyFrom(model)
    _spell_domains(own, name)
    return OpenedModel(own, _taken_out(own.graph, name, ""), name)


def _checked(load: Callable[[], onnx.ModelProto], name: str, folder: str) -> OpenedModel:
    try:
        model = load()
    except OSError as error:
        raise CodeError(f"{error.filename or name} cannot be read: {error.strerror or error}", code="TFW0930") from None
    except Exception as error:  # protobuf's
        raise CodeError(f"{name} is no whole ONNX model: {first_line(error)}", code="TFW0994") from None
    _spell_domains(model, name)
    weights = _taken_out(model.graph, name, folder)
    try:
        external_data_helper.load_external_data_for_model(model, folder)  # of branches and attributes
        onnx.checker.check_model(model)
    except Exception as error:  # the checker's own
        raise CodeError(f"{name} is no whole ONNX model: {first_line(error)}", code="TFW0994") from None
    return OpenedModel(model, weights, name)


def _spell_domains(model: onnx.ModelProto, name: str) -> None:
    """Write the domain of ONNX's own operators as onnx does, empty: "ai.onnx" is another name of it. Raises CodeError for a domain
    that is imported twice, and for operators of a later version than onnx knows."""
    for holder in (model, *model.functions):
        for one in holder.opset_import:
            one.domain = _spelled(one.domain)
        versions = {(one.domain, one.version) for one in holder.opset_import}
        if len({domain for domain, _ in versions}) < len(versions):
            raise CodeError(f"{name} imports two versions of one domain of operators", code="TFW0994")
        if (own := dict(versions).get("", 0)) > (latest := onnx.defs.onnx_opset_version()):
            raise CodeError(
                f"{name} has opset {own}, and onnx {onnx.__version__} knows {latest}", code="TFW0994",
                help="export the model with an earlier opset, or install a later onnx",
            )
    _spell_nodes(model.graph.node)
    for function in model.functions:
        _spell_nodes(function.node)


def _spell_nodes(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        node.domain = _spelled(node.domain)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
                _spell_nodes(graph.node)


def _spelled(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _taken_out(graph: onnx.GraphProto, name: str, folder: str) -> dict[str, np.ndarray]:
    """The large weights as arrays; in the graph each becomes an input of its type."""
    twice = [one for one, count in Counter(weight.name for weight in graph.initializer).items() if count > 1]
    if twice:
        raise CodeError(f"{name} has two weights called '{twice[0]}'", code="TFW0994")
    given, weights, kept = {info.name for info in graph.input}, dict[str, np.ndarray](), list[onnx.TensorProto]()
    for one in graph.initializer:
        if one.data_location != onnx.TensorProto.EXTERNAL and one.ByteSize() <= _SMALL:
            kept.append(one)
            continue
        weights[one.name] = array_of(one, name, folder)
        if one.name not in given:
            graph.input.append(onnx.helper.make_tensor_value_info(one.name, one.data_type, tuple(one.dims)))
    copies = [onnx.TensorProto.FromString(one.SerializeToString()) for one in kept]
    del graph.initializer[:]
    graph.initializer.extend(copies)
    return weights


def array_of(weight: onnx.TensorProto, name: str, folder: str = "") -> np.ndarray:
    """The elements of a weight. Raises CodeError where there are too few of them, or their file is not there."""
    try:
        if min(weight.dims, default=0) < 0:  # NumPy would find out which number fits
            raise ValueError(f"it has dims {list(weight.dims)}")
        return numpy_helper.to_array(weight, folder)
    except OSError as error:
        raise CodeError(f"weight '{weight.name}' of {name} cannot be read: {first_line(error)}", code="TFW0930") from None
    except Exception as error:  # whatever damaged dims, types and lengths meet there
        raise CodeError(f"weight '{weight.name}' of {name} is not whole: {first_line(error)}", code="TFW0994") from None


def first_line(error: Exception) -> str:
    """What other people's error says, in a line."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
