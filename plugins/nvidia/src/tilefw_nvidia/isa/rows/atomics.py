"""Atomics and reductions in memory (PTX ISA, "Parallel Synchronization and Communication": atom, red)."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers
from tilefw_nvidia.isa.rows.memory import NEEDS, SCOPE, SCOPES
from tilefw_nvidia.isa.rows.movement import space_of
from tilefw_nvidia.isa.types import TYPES

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Parallel Synchronization and Communication"
SPACES = "global shared shared::cta shared::cluster"
ORDERS = "relaxed acquire release acq_rel"
# Written operation to the algebra's, for integers; min and max carry their sign.
_INTEGER = {
    "add": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "exch": "exchange",
    "cas": "compare_exchange",
    "inc": "inc",
    "dec": "dec",
}


def _operation(op: str, type_name: str) -> tuple[str, str]:
    """The algebra's operation and float format."""
    kind = TYPES[type_name]
    if kind.kind == "float":
        return f"f{op}", type_name
    if op in ("min", "max"):
        return f"{op}_{'s' if kind.signed else 'u'}", ""
    return _INTEGER[op], ""


def _atom(m: Modifiers):
    """d = what was at the address, which becomes op(it, b); the whole is one step for every other thread."""
    op, fmt = _operation(m.op, m.type)
    space, order, scope = space_of(m.space), m.sem or "relaxed", SCOPE[m.scope]
    count = 2 if m.op == "cas" else 1
    if (op, fmt) == ("fadd", "f32"):
        return _sum_f32(space, order, scope)
    return lambda lanes, address, *b: lanes.atomic(space, address, op, b[:count], fmt, order=order, scope=scope)


def _sum_f32(space: str, order: str, scope: str):
    """In global memory subnormal operands and results become zero of their sign, in shared memory they stay (atom, red)."""

    def within(lanes, address, b, where=None, of: str = space):
        return lanes.atomic(space, address, "fadd", [b], "f32", order=order, scope=scope, where=where, ftz=of != "shared")

    def generic(lanes, address, b, *policy):
        shared = lanes.is_space(address, "shared")
        found = within(lanes, address, b, shared, "shared")
        return lanes.or_(found, within(lanes, address, b, lanes.not_(shared)))  # lanes where one does not hold get 0 of it

    return generic if space == "generic" else lambda lanes, address, b, *policy: within(lanes, address, b)


def _red(m: Modifiers):
    """What is at the address becomes op(it, b)."""
    step = _atom(m)

    def meaning(lanes, address, *b):
        step(lanes, address, *b)

    return meaning


def _both(
    ops: str, types: str, ptx: str = "1.1", since: int = 11, extra: str = "", needs=None, only: str = "atom red",
    operands: str = "b",
) -> None:
    """atom and red of the same operations and types, each with and without a cache policy."""
    facts: Facts = dict(op=ops, type=types, sem=ORDERS, scope=SCOPES, unit="memory", ptx=ptx, since=since)
    needs = {
        **NEEDS,
        **dict.fromkeys(ORDERS.split(), ("6.0", 70)),
        **{s: ("5.0", 60) for s in ("cta", "gpu", "sys")},
        "cluster": ("7.8", 90),
        **(needs or {}),
    }
    for name, build, destination in (("atom", _atom, "d, "), ("red", _red, "")):
        if name not in only:
            continue
        orders = ORDERS if name == "atom" else "relaxed release"
        head = f"{name}{{.sem}}{{.scope}}{{.space}}.op{extra}"
        this: Facts = facts | {"sem": orders, "section": f"{SECTION}: {name}"}
        form(f"{head}.type {destination}[a], {operands}", space=SPACES, needs=needs, **this)(build)
        if ops == "cas":  # compare-and-swap takes no policy: ptxas refuses it, though the manual's syntax has it
            continue
        form(f"{head}.L2::cache_hint.type {destination}[a], {operands}, policy:b64", space="global", needs=needs, **this)(build)


_both("add", "u32 s32 u64")
_both("min max", "u32 s32", ptx="1.1", since=12)
_both("min max", "u64 s64", ptx="3.1", since=32)
_both("and or xor", "b32")
_both("and or xor", "b64", ptx="3.1", since=32)
_both("inc dec", "u32", since=12)
_both("exch", "b32 b64", only="atom", since=12)
_both("cas", "b32 b64", only="atom", operands="b, c", since=12)
_both("cas", "b16", only="atom", operands="b, c", ptx="6.3", since=70)
_both("exch", "b128", only="atom", ptx="8.3", since=90, needs={"sys": ("8.4", 90)})
_both("cas", "b128", only="atom", operands="b, c", ptx="8.3", since=90, needs={"sys": ("8.4", 90)})
_both("add", "f32", ptx="2.0", since=20)
_both("add", "f64", ptx="5.0", since=60)
_both("add", "f16x2", extra=".noftz", ptx="6.2", since=60)
_both("add", "f16", extra=".noftz", ptx="6.3", since=70)
_both("add", "bf16 bf16x2", extra=".noftz", ptx="7.8", since=90)


def _atom_vector(m: Modifiers):
    """d = what was at the addresses of a vector of global memory, each element of which becomes the sum of it and b's: one atomic
    an element, the vector as a whole is none."""
    count, fmt = int(m.vec[1:]), m.type
    bits, space, order, scope = TYPES[fmt].bits, "global" if m.space else "generic", m.sem or "relaxed", SCOPE[m.scope]

    def meaning(lanes, address, *b):
        whole = lanes.and_(address, lanes.const(count * bits // 8 - 1, 64))
        aligned = lanes.compare(whole, lanes.const(0, 64), "eq", False)
        lanes.require(aligned, f"the address of a vector atomic is no multiple of {count * bits // 8} bytes")
        places = [lanes.add(address, lanes.const(i * bits // 8, 64)) for i in range(count)]
        return tuple(
            lanes.atomic(space, place, "fadd", [each], fmt, order=order, scope=scope, ftz=fmt == "f32")
            for place, each in zip(places, b[:count], strict=True)
        )

    return meaning


def _red_vector(m: Modifiers):
    """Each element of a vector of global memory becomes the sum of it and b's."""
    step = _atom_vector(m)

    def meaning(lanes, address, *b):
        step(lanes, address, *b)

    return meaning


def _vectors(types: str, vec: str, extra: str = "") -> None:
    for name, build, destination in (("atom", _atom_vector, "d*vec, "), ("red", _red_vector, "")):
        orders = ORDERS if name == "atom" else "relaxed release"
        facts: Facts = dict(
            type=types, vec=vec, sem=orders, scope=SCOPES, space="global", unit="memory", section=f"{SECTION}: {name}", ptx="8.1",
            since=90,
        )
        head = f"{name}{{.sem}}{{.scope}}{{.space}}.add{extra}"
        form(f"{head}.vec.type {destination}[a], b*vec", **facts)(build)
        form(f"{head}.L2::cache_hint.vec.type {destination}[a], b*vec, policy:b64", **facts)(build)


_vectors("f32", "v2 v4")
_vectors("f16x2 bf16x2", "v2 v4", ".noftz")
_vectors("f16 bf16", "v2 v4 v8", ".noftz")
