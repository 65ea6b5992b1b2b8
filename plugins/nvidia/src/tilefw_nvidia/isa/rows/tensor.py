"""Copies of boxes of tensors by the copy engine, and the maps that tell it of them (PTX ISA, "Data Movement and Conversion:
cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor, tensormap.replace, tensormap.cp_fenceproxy")."""

from __future__ import annotations

from tilefw.api.sim import Reduction
from tilefw_nvidia.chips.versions import SPECIFIC_TARGETS
from tilefw_nvidia.isa.meaning.tensor_map import ELEMENT_TYPES, FIELDS, described, element_type
from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers
from tilefw_nvidia.isa.rows.bulk import BARRIER, reduction
from tilefw_nvidia.isa.rows.memory import hint
from tilefw_nvidia.isa.tensor_map_size import BYTES

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Data Movement and Conversion"
DIMENSIONS = "1d 2d 3d 4d 5d"
_FACTS: Facts = dict(dim=DIMENSIONS, unit="async", ptx="8.0", since=90)


def _taps(m: Modifiers) -> int:
    """How many offsets a list of pixels is told: one for each dimension of space."""
    return int(m.dim[0]) - 2


def _load(space: str, multicast: bool = False, pixels: bool = False):
    def build(m):
        """Start copying a box, or a list of pixels, to shared memory; it completes on the barrier."""
        dimensions, taps = int(m.dim[0]), _taps(m) if pixels else 0

        def meaning(lanes, to, address, *rest):
            coordinates, barrier, offsets = rest[:dimensions], rest[dimensions], rest[dimensions + 1 : dimensions + 1 + taps]
            lanes.engine_box(
                described(lanes, address, dimensions, offsets if pixels else None), space, to, coordinates, store=False,
                barrier=barrier, barrier_space=space, multicast=rest[dimensions + 1 + taps] if multicast else None,
            )

        return meaning

    return build


_LOADS: Facts = _FACTS | {"section": f"{SECTION}: cp.async.bulk.tensor"}
_OF_PIXELS: Facts = {"dim": "3d 4d 5d", "counts": {"taps": _taps}}
for _to, _name, _ptx in (("cluster", "shared::cluster", "8.0"), ("shared", "shared::cta", "8.6")):
    for _mode, _pixels, _taken in (("{.tile}", False, ""), (".im2col", True, ", offsets*taps:b16")):
        _head = f"cp.async.bulk.tensor.dim.{_name}.global{_mode}.{BARRIER}"
        _operands = f"[dst_shared], [map_generic:dim], [mbar_shared]{_taken}"
        _facts: Facts = _LOADS | {"ptx": _ptx} | (_OF_PIXELS if _pixels else {})
        form(f"{_head} {_operands}", **_facts)(_load(_to, pixels=_pixels))
        form(f"{_head}.L2::cache_hint {_operands}, policy:b64", **_facts)(_load(_to, pixels=_pixels))
        if _to == "cluster":
            form(f"{_head}.multicast::cluster {_operands}, mask:b16", **_facts)(_load(_to, True, _pixels))
            form(f"{_head}.multicast::cluster.L2::cache_hint {_operands}, mask:b16, policy:b64", **_facts)(
                _load(_to, True, _pixels)
            )


def _store(pixels: bool):
    def build(m):
        """Start copying a box, or a list of pixels, from shared memory; it completes with the thread's group."""
        dimensions = int(m.dim[0])

        def meaning(lanes, address, *rest):
            box = described(lanes, address, dimensions, () if pixels else None)
            lanes.engine_box(box, "shared", rest[dimensions], rest[:dimensions], store=True)

        return meaning

    return build


_STORED: tuple[tuple[str, bool, Facts], ...] = (("{.tile}", False, {}), (".im2col_no_offs", True, {"dim": "3d 4d 5d"}))
for _mode, _pixels, _facts in _STORED:
    _head = f"cp.async.bulk.tensor.dim.global.shared::cta{_mode}.bulk_group"
    form(f"{_head} [map_generic:dim], [src_shared]", **_LOADS | _facts)(_store(_pixels))
    form(f"{_head}.L2::cache_hint [map_generic:dim], [src_shared], policy:b64", **_LOADS | _facts)(_store(_pixels))


# The types whose elements an operation reduces ("cp.reduce.async.bulk.tensor": table of operations), each with the algebra's name.
_INTEGERS = ("u32", "s32", "u64", "s64")
_FLOATS = ("f16", "bf16", "f32", "f64")


def _reductions(op: str) -> dict[int, Reduction]:
    """By the number of an element type, what reduces such elements."""
    types = {
        "add": ("u32", "s32", "u64", "s64", *_FLOATS), "min": (*_INTEGERS, "f16", "bf16"), "max": (*_INTEGERS, "f16", "bf16"),
        "inc": ("u32",), "dec": ("u32",),
    }.get(op, _INTEGERS)
    return {ELEMENT_TYPES[name]: reduction(op, name) for name in types}


def _reduce(pixels: bool):
    def build(m):
        """As a store, but each element becomes op(it, the one of the box); the map has their type."""
        dimensions, known = int(m.dim[0]), _reductions(m.op)

        def meaning(lanes, address, *rest):
            box = described(lanes, address, dimensions, () if pixels else None)
            element, served = element_type(lanes, address), lanes.const(0, 1)
            for number, done in known.items():
                here = lanes.compare(element, lanes.const(number, 8), "eq", False)
                served = lanes.or_(served, here)
                lanes.engine_box(box, "shared", rest[dimensions], rest[:dimensions], store=True, reduction=done, where=here)
            lanes.require(served, f"no engine reduces elements of the map's type by {m.op}")

        return meaning

    return build


_REDUCES: Facts = _FACTS | {"section": f"{SECTION}: cp.reduce.async.bulk.tensor", "op": "add min max inc dec and or xor"}
for _mode, _pixels, _facts in _STORED:
    _head = f"cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{_mode}.bulk_group"
    form(f"{_head} [map_generic:dim], [src_shared]", **_REDUCES | _facts)(_reduce(_pixels))
    form(f"{_head}.L2::cache_hint [map_generic:dim], [src_shared], policy:b64", **_REDUCES | _facts)(_reduce(_pixels))

_PREFETCHES: Facts = _FACTS | {"section": f"{SECTION}: cp.async.bulk.prefetch.tensor"}
for _mode, _taken, _facts in (("{.tile}", "", {}), (".im2col", ", offsets*taps:b16", _OF_PIXELS)):
    _head = f"cp.async.bulk.prefetch.tensor.dim.L2.global{_mode}"
    form(f"{_head} [map_generic:dim]{_taken}", **_PREFETCHES | _facts)(hint)
    form(f"{_head}.L2::cache_hint [map_generic:dim]{_taken}, policy:b64", **_PREFETCHES | _facts)(hint)
form("prefetch{.space}.tensormap [a]", space="const param", unit="memory", section=f"{SECTION}: prefetch", ptx="8.0", since=90)(
    hint
)

# --- tensor maps ------------------------------------------------------------------------------------------------------------------

_MAPS: Facts = dict(space="global shared::cta", unit="memory", section=f"{SECTION}: tensormap.replace", ptx="8.3", since=90,
                    only=SPECIFIC_TARGETS)


def _space(m) -> str:
    return {"": "generic", "global": "global"}.get(m.space, "shared")


def _replace(field: str):
    layout = FIELDS[field]

    def build(m):
        """The field of the map at the address, or that one of it, becomes the value."""
        space, place, fixed = _space(m), m.ord or 0, m.value
        if not 0 <= place < layout.count:
            raise ValueError(f"{field} has {layout.count} numbers, and none of number {place}")
        offset = layout.offset + place * layout.bits // 8

        def meaning(lanes, address, *value):
            new = value[0] if value else lanes.const(fixed, 32)
            wide = lanes.zero_extend(address, 64)
            if value and layout.bits < m.type_of().bits:
                new = lanes.truncate(new, layout.bits)
            elif not value:
                new = lanes.const(fixed, layout.bits)
            lanes.store(space, lanes.add(wide, lanes.const(offset, 64)), [new])
            if space != "shared":
                lanes.descriptor(wide, "written")

        return meaning

    return build


for _field, _type, _operands in (
    ("global_address", "b64", "value:b64"), ("rank", "b32", "value:b32"), ("global_stride", "b64", "=ord, value:b64"),
    *((name, "b32", "=ord, value:b32") for name in ("box_dim", "global_dim", "element_stride")),
    *((name, "b32", "=value") for name in ("elemtype", "interleave_layout", "swizzle_mode", "fill_mode")),
):
    form(f"tensormap.replace.tile.{_field}{{.space}}.b1024.type [addr], {_operands}", type=_type, **_MAPS)(_replace(_field))
_LATER: Facts = _MAPS | {"ptx": "8.6", "only": SPECIFIC_TARGETS.partition(" ")[2], "type": "b32"}
form("tensormap.replace.tile.swizzle_atomicity{.space}.b1024.type [addr], =value", **_LATER)(_replace("swizzle_atomicity"))


@form("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst_global], [src_shared], =bytes",
      scope="cta cluster gpu sys", unit="memory", section=f"{SECTION}: tensormap.cp_fenceproxy", ptx="8.3", since=90)
def copy_map(m):
    """The lanes of the warp copy a map of 128 bytes together, and release it."""
    if m.bytes != BYTES:
        raise ValueError(f"a tensor map has {BYTES} bytes, not {m.bytes}")

    def meaning(lanes, to, of):
        offset = lanes.zero_extend(lanes.shl(lanes.lane_id(), lanes.const(2, 32)), 64)
        (word,) = lanes.load("shared", lanes.add(lanes.zero_extend(of, 64), offset), 32)
        lanes.store("global", lanes.add(to, offset), [word])
        lanes.fence("release", "device")
        lanes.descriptor(to, "written")

    return meaning
