"""Files of StableHLO: text, MLIR's bytecode, or a portable artifact as `jax.export` gives it.

    exported = jax.export.export(jax.jit(f))(x)
    Path("f.stablehlo").write_bytes(exported.mlir_module_serialized)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tilefw.api.errors import CodeError, UsageError
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice
from tilefw.graph.kernel_graph import KernelGraph
from tilefw_jax.reader import ModuleReading

_MAGIC = b"ML\xefR"  # of MLIR's bytecode


def read(path: str | os.PathLike[str], *, choice: FusionChoice = FEWEST_LAUNCHES) -> KernelGraph:
    """The graph of a file's function `main`; `choice` is between ways to fuse. Raises CodeError TFW0994 for a file that is no
    module, UnsupportedError TFW0992 that lists all operators without a rule."""
    name = os.fspath(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}", code="TFW0701") from None
    reading = ModuleReading(_module(data, name))
    reading.read()
    return reading.graph(choice)


def _module(data: bytes, name: str) -> Any:
    from jax.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with mlir.make_ir_context() as context:
        try:
            if data.startswith(_MAGIC):
                return stablehlo.deserialize_portable_artifact(context, data)
            return ir.Module.parse(data)
        except Exception as error:  # of any kind: MLIR's own class, ValueError, UnicodeDecodeError
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise CodeError(f"{name} is no module of StableHLO: {first}", code="TFW0994") from None
