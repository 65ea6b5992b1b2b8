"""The ONNX pack: single node tests of ONNX as tile kernels, judged by tilefw's own bounds and outcomes.

ONNX's expected values are what the `reference` target is compared with beside its own interpreter. Its backend runner is not
used: it counts what a backend does not implement as passed (onnx/backend/test/runner, `BackendIsNotSupposedToImplementIt`).
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tilefw.api.errors import UsageError
from tilefw.runtime.names import suggest
from tilefw_conformance.case import Case

if TYPE_CHECKING:
    from tilefw.kernels.spec import KernelSpec

_FLAG = "onnx"
_NOTE = {
    "bugType": "semantics", "description": "the operator as ONNX defines it, at the shapes and values of ONNX's own node test",
    "effect": "a model imported from ONNX computes something else",
}


@cache
def cases() -> tuple[Case, ...]:
    """A case for each test: the strict subset at level `core`, other element types at `extended`.

    Raises UsageError TFW0990 where onnx is not installed.
    """
    _require()
    from tilefw_conformance.packs.onnx.subset import nodes

    return tuple(
        Case(
            id=f"onnx/{node.operator}/{name}", level="core" if node.strict else "extended", since="0.1", kernel=f"onnx:{name}",
            parameters={}, seed=1, requires=frozenset(), stop_after="compare", budget=None, flags=(_FLAG,), notes={_FLAG: _NOTE},
        )
        for name, node in nodes().items()
    )


def spec(name: str) -> KernelSpec:
    """The kernel of the node test `name`; raises UsageError TFW0991 for a name that the pack does not have."""
    _require()
    from tilefw_conformance.packs.onnx.subject import spec_of
    from tilefw_conformance.packs.onnx.subset import nodes

    known = nodes()
    if name not in known:
        raise UsageError(f"the ONNX pack has no node test {name!r}", code="TFW0991", help=suggest(name, known, what="tests"))
    return spec_of(known[name])


def _require() -> None:
    if find_spec("tilefw_onnx") is None or find_spec("onnx") is None:
        raise UsageError("the pack `onnx` needs tilefw-onnx", code="TFW0990", help="pip install 'tilefw-conformance[onnx]'")
