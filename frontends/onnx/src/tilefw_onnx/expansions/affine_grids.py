"""AffineGrid written out: the evenly spaced points of an image, which are constants, by the matrices of the batch.

onnx's own definition by nodes squeezes a batch of one matrix away, and then fits no shape (`onnx/defs/tensor/defs.cc`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tilefw_onnx.expansions.node_writer import NodeWriter


def written_out(w: NodeWriter) -> None:
    """The nodes of an AffineGrid, whose size is known."""
    batch, _, *space = w.node.input(1).integers()
    along = [_places(extent, bool(w.node.attributes["align_corners"])) for extent in space]
    points = np.stack([*np.meshgrid(*along, indexing="ij")[::-1], np.ones(space)], -1)  # the last dim's coordinate comes first
    held = w.constant(points.reshape(-1, len(space) + 1).astype(w.number(0).dtype))
    moved = w("MatMul", held, w("Transpose", w.input(0), perm=[0, 2, 1]))
    w("Reshape", moved, w.integers(batch, *space, len(space)), gives=w.output(0))


def _places(extent: int, corners: bool) -> np.ndarray:
    """Places between -1 and 1: the centers of the first and the last element with `corners`, else their outer edges."""
    return np.linspace(-1, 1, extent) if corners else (2 * np.arange(extent) + 1) / extent - 1


EXPANSIONS: Mapping[str, Callable[[NodeWriter], None]] = {"AffineGrid": written_out}
