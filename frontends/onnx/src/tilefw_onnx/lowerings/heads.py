"""Arrays of attention: (batch, head, position, feature) in either of ONNX's layouts, and the tiles that a program takes of them."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.errors import UnsupportedError
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, contiguous, next_power_of_2
from tilefw_onnx.lowerings.text import KernelText

_LARGEST = 16384  # elements of a program's tile: of queries by keys, or of keys by features


@dataclass(frozen=True, slots=True)
class Heads:
    """An array as (batch, head, position, feature), with the strides of these four."""

    tensor: NodeTensor
    extents: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]

    @property
    def batch(self) -> int:
        return self.extents[0]

    @property
    def count(self) -> int:
        return self.extents[1]

    @property
    def positions(self) -> int:
        return self.extents[2]

    @property
    def features(self) -> int:
        return self.extents[3]

    def offset_of(self, head: str, position: str, feature: str) -> str:
        """The offset of elements of this program's batch."""
        return strided(self.strides, ("batch", head, position, feature))


def heads_of(tensor: NodeTensor, count: int | None) -> Heads:
    """Of rank 4 as it is; of rank 3, (batch, position, head · feature), with as many heads as an attribute says."""
    if len(tensor.shape) == 4:
        strides = tuple(stride for _, stride in contiguous(tensor.shape).dims)
        return Heads(tensor, _four(tensor.shape), _four(strides))
    assert count, f"{tensor.name} has rank 3, and no attribute gives the number of heads"
    batch, positions, width = tensor.shape
    size = width // count
    return Heads(tensor, (batch, count, positions, size), (positions * width, size, width, 1))


def _four(values: tuple[int, ...]) -> tuple[int, int, int, int]:
    a, b, c, d = values
    return a, b, c, d


def strided(strides: tuple[int, ...], coordinates: tuple[str, ...]) -> str:
    """The offset of an element by its coordinates; those of stride 0 do not matter."""
    terms = [text if stride == 1 else f"{text} * {stride}" for stride, text in zip(strides, coordinates, strict=True) if stride]
    return " + ".join(terms) or "0"


def broadcast_strides(tensor: NodeTensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array that broadcasts to `shape`, 0 where it repeats."""
    view: View = contiguous(tensor.shape).broadcast(shape)
    return tuple(stride for _, stride in view.dims)


def begin(node: Node, query: Heads, keys: Heads, values: Heads, length: int) -> KernelText:
    """A program for each batch and query head. The body has `query`, `key` and the features as rows or columns of tiles;
    `length` is how many keys there are, with those of a cache."""
    rows, columns = next_power_of_2(query.positions), next_power_of_2(length)
    wide, value_wide = next_power_of_2(query.features), next_power_of_2(values.features)
    if max(rows * columns, columns * wide, columns * value_wide, rows * wide) > _LARGEST:
        note = f"{query.positions} queries, {length} keys, heads of {query.features} and {values.features}"
        raise UnsupportedError(f"{node.operator} over tiles of more than {_LARGEST} elements", code="TFW0992", note=note)
    text = KernelText(node, (query.batch * query.count, 1, 1), elements=max(rows * columns, columns * wide, columns * value_wide))
    text.add(
        f"batch = tl.program_id(0) // {query.count}",
        f"head = tl.program_id(0) % {query.count}",
        f"kv_head = head // {query.count // keys.count}",
        f"query = tl.arange(0, {rows})[:, None]",
        f"key = tl.arange(0, {columns})[None, :]",
        f"position = tl.arange(0, {columns})[:, None]",
        f"feature = tl.arange(0, {wide})[None, :]",
        f"value_feature = tl.arange(0, {value_wide})[None, :]",
    )
    return text


def load_query(text: KernelText, query: Heads) -> None:
    """`q`, a tile of queries by features; zero beyond both."""
    mask = f"(query < {query.positions}) & (feature < {query.features})"
    text.add(f"q = {text.loaded(query.tensor, query.offset_of('head', 'query', 'feature'), mask, '0.0')}")


def load_cached(text: KernelText, name: str, fresh: Heads, past: Heads | None, feature: str) -> None:
    """A tile of keys by features: those of the cache first, then the fresh ones; zero beyond."""
    inside = f"({feature} < {fresh.features})"
    if past is None:
        place, mask = fresh.offset_of("kv_head", "position", feature), f"(position < {fresh.positions}) & {inside}"
        text.add(f"{name} = {text.loaded(fresh.tensor, place, mask, '0.0')}")
        return
    cached, length = past.positions, past.positions + fresh.positions
    earlier = text.loaded(past.tensor, past.offset_of("kv_head", "position", feature), f"(position < {cached}) & {inside}", "0.0")
    mask = f"(position >= {cached}) & (position < {length}) & {inside}"
    later = text.loaded(fresh.tensor, fresh.offset_of("kv_head", f"(position - {cached})", feature), mask, "0.0")
    text.add(f"{name} = tl.where(position < {cached}, {earlier}, {later})")
