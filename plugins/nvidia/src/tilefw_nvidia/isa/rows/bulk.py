"""Bulk copies by the copy engine (PTX ISA, "Data Movement and Conversion: cp.async.bulk, cp.reduce.async.bulk, st.async").

Cache policies say how soon data comes, never which.
"""

from __future__ import annotations

from tilefw.api.sim import Reduction
from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers
from tilefw_nvidia.isa.rows.memory import hint
from tilefw_nvidia.isa.types import TYPES

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Data Movement and Conversion"
BARRIER = "mbarrier::complete_tx::bytes"
_FACTS: Facts = dict(unit="async", ptx="8.0", since=90)
_OWN: Facts = _FACTS | {"ptx": "8.6"}  # destinations that name shared::cta


def reduction(op: str, type_name: str) -> Reduction:
    """What the algebra calls a reduction of a type."""
    kind = TYPES[type_name]
    if kind.kind == "float":
        return Reduction(f"f{op}", kind.bits // 8, type_name)
    signed = f"{op}_{'s' if kind.signed else 'u'}" if op in ("min", "max") else op
    return Reduction(signed, kind.bits // 8)


def _copy(destination: str, source: str, barrier: bool, multicast: bool = False, reducing: bool = False):
    def build(m):
        """Start copying so many bytes; they come at a moment unknown before a wait on the barrier, or for the group."""
        done = reduction(m.op, m.type) if reducing else None

        def meaning(lanes, to, of, size, *rest):
            lanes.engine_copy(
                destination, to, source, of, size, barrier=rest[0] if barrier else None,
                barrier_space=destination if destination != "global" else "shared", reduction=done,
                multicast=rest[1] if multicast else None,
            )

        return meaning

    return build


_TO_CLUSTER = f"cp.async.bulk.shared::cluster.global.{BARRIER}"
_OPERANDS = "[dst_shared], [src_global], size:u32, [mbar_shared]"
_BULK: Facts = _FACTS | {"section": f"{SECTION}: cp.async.bulk"}
form(f"{_TO_CLUSTER} {_OPERANDS}", **_BULK)(_copy("cluster", "global", True))
form(f"{_TO_CLUSTER}.L2::cache_hint {_OPERANDS}, policy:b64", **_BULK)(_copy("cluster", "global", True))
form(f"{_TO_CLUSTER}.multicast::cluster {_OPERANDS}, mask:b16", **_BULK)(_copy("cluster", "global", True, multicast=True))
form(f"{_TO_CLUSTER}.multicast::cluster.L2::cache_hint {_OPERANDS}, mask:b16, policy:b64", **_BULK)(
    _copy("cluster", "global", True, multicast=True)
)
_TO_OWN = f"cp.async.bulk.shared::cta.global.{BARRIER}"
form(f"{_TO_OWN} {_OPERANDS}", **_OWN, section=_BULK["section"])(_copy("shared", "global", True))
form(f"{_TO_OWN}.L2::cache_hint {_OPERANDS}, policy:b64", **_OWN, section=_BULK["section"])(_copy("shared", "global", True))
form(f"cp.async.bulk.shared::cluster.shared::cta.{BARRIER} [dst_shared], [src_shared], size:u32, [mbar_shared]", **_BULK)(
    _copy("cluster", "shared", True)
)
_STORE = "cp.async.bulk.global.shared::cta.bulk_group"
form(f"{_STORE} [dst_global], [src_shared], size:u32", **_BULK)(_copy("global", "shared", False))
form(f"{_STORE}.L2::cache_hint [dst_global], [src_shared], size:u32, policy:b64", **_BULK)(_copy("global", "shared", False))

_REDUCING: Facts = _FACTS | {"section": f"{SECTION}: cp.reduce.async.bulk"}
_TO_SHARED = f"cp.reduce.async.bulk.shared::cluster.shared::cta.{BARRIER}.op.type"
for _ops, _types in (("and or xor", "b32"), ("add inc dec min max", "u32"), ("add min max", "s32"), ("add", "u64")):
    form(f"{_TO_SHARED} [dst_shared], [src_shared], size:u32, [mbar_shared]", op=_ops, type=_types, **_REDUCING)(
        _copy("cluster", "shared", True, reducing=True)
    )
for _ops, _types, _rounding in (
    ("and or xor", "b32 b64", ""), ("add inc dec min max", "u32", ""), ("add min max", "s32", ""), ("add min max", "u64", ""),
    ("min max", "s64", ""), ("add", "f32 f64", ""), ("min max", "f16 bf16", ""), ("add", "f16 bf16", ".noftz"),
):
    _head = "cp.reduce.async.bulk.global.shared::cta.bulk_group"
    form(f"{_head}.op{_rounding}.type [dst_global], [src_shared], size:u32", op=_ops, type=_types, **_REDUCING)(
        _copy("global", "shared", False, reducing=True)
    )
    form(f"{_head}.L2::cache_hint.op{_rounding}.type [dst_global], [src_shared], size:u32, policy:b64", op=_ops, type=_types,
         **_REDUCING)(_copy("global", "shared", False, reducing=True))

_PREFETCH: Facts = _FACTS | {"section": f"{SECTION}: cp.async.bulk.prefetch"}
form("cp.async.bulk.prefetch.L2.global [src_global], size:u32", **_PREFETCH)(hint)
form("cp.async.bulk.prefetch.L2.global.L2::cache_hint [src_global], size:u32, policy:b64", **_PREFETCH)(hint)


@form("cp.async.bulk.commit_group", section=f"{SECTION}: cp.async.bulk.commit_group", **_FACTS)
def commit_group(m):
    """The thread's bulk copies since its last commit become its newest group."""
    return lambda lanes: lanes.engine_commit()


@form("cp.async.bulk.wait_group{.read} =n", section=f"{SECTION}: cp.async.bulk.wait_group", **_FACTS)
def wait_group(m):
    """Until at most the n newest groups are unfinished, or, with read, have still to read."""
    if m.n < 0:
        raise ValueError(f"the number of groups cannot be negative: {m.n}")
    n, reads = m.n, bool(m.read)
    return lambda lanes: lanes.engine_wait(n, reads)


def _store_async(m: Modifiers):
    """Write to the shared memory of the cluster, and deliver the bytes to a barrier there."""
    count, bits = int(m.vec[1:]) if m.vec else 1, TYPES[m.type].bits

    def meaning(lanes, address, *rest):
        values, barrier = rest[:count], rest[count]
        lanes.store("cluster", address, values, order="relaxed", scope="cluster")
        lanes.barrier_deliver("cluster", barrier, lanes.const(count * bits // 8, 32), order="release")

    return meaning


form(f"st.async{{.weak}}.shared::cluster.{BARRIER}{{.vec}}.type [a_shared], b*vec:type, [mbar_shared]", vec="v2 v4",
     type="b32 b64 u32 u64 s32 s64 f32 f64", unit="async", ptx="8.1", since=90, section=f"{SECTION}: st.async",
     refuse=lambda m: "at most 128 bits" if m.vec == "v4" and TYPES[m.type].bits == 64 else "")(_store_async)


_REDUCED = {"u32": "add min max inc dec", "s32": "add min max", "b32": "and or xor", "u64": "add"}


@form(f"red.async.relaxed.cluster.shared::cluster.{BARRIER}.op.type [a_shared], b, [mbar_shared]",
      op="add min max inc dec and or xor", type="u32 s32 b32 u64", unit="async", ptx="8.1", since=90,
      section=f"{SECTION}: red.async", refuse=lambda m: "" if m.op in _REDUCED[m.type].split() else "no such reduction")
def reduce_async(m):
    """Reduce in the shared memory of the cluster, and deliver the bytes to a barrier there."""
    done = reduction(m.op, m.type)

    def meaning(lanes, address, value, barrier):
        lanes.atomic("cluster", address, done.op, [value], scope="cluster")
        lanes.barrier_deliver("cluster", barrier, lanes.const(done.bytes, 32), order="release")

    return meaning
