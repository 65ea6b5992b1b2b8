"""Asynchronous copies (PTX ISA, "Data Movement and Conversion: Asynchronous copy": cp.async and its groups)."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Data Movement and Conversion: cp.async"
PREFETCH = "L2::64B L2::128B L2::256B"
SHARED = "shared shared::cta"
_FACTS: Facts = dict(
    prefetch=PREFETCH,
    space=SHARED,
    unit="async",
    section=SECTION,
    ptx="7.0",
    since=80,
    needs={"L2::cache_hint": ("7.4", 80), **dict.fromkeys(PREFETCH.split(), ("7.4", 80))},
)
_IGNORING: Facts = _FACTS | {"ptx": "7.5"}


def _copy(m: Modifiers):
    """Start copying `size` bytes; with a source size only that many are read, the rest becomes zero."""
    sizes = (16,) if m.cg else (4, 8, 16)
    if m.size not in sizes:
        raise ValueError(f"the size must be {' or '.join(str(s) for s in sizes)}, not {m.size}")
    size, partial = m.size, "source_size" in m.given

    def meaning(lanes, destination, source, *rest):
        lanes.copy_async("shared", destination, "global", source, size, rest[0] if partial else None)

    return meaning


def _copy_ignoring(m: Modifiers):
    """Start copying `size` bytes, or, where the predicate holds, zeros."""
    copy = _copy(Modifiers(m, given=frozenset({"source_size"})))
    size = m.size

    def meaning(lanes, destination, source, ignore, *_):
        copy(lanes, destination, source, lanes.select(ignore, lanes.const(0, 32), lanes.const(size, 32)))

    return meaning


for _level in ("ca", "cg"):
    _head = f"cp.async.{_level}.space.global"
    form(f"{_head}{{.prefetch}} [dst], [src], =size, source_size:u32?", **_FACTS)(_copy)
    form(f"{_head}{{.prefetch}} [dst], [src], =size, ignore:pred", **_IGNORING)(_copy_ignoring)
    form(f"{_head}.L2::cache_hint{{.prefetch}} [dst], [src], =size, policy:b64", **_FACTS)(_copy)
    form(f"{_head}.L2::cache_hint{{.prefetch}} [dst], [src], =size, source_size:u32, policy:b64", **_FACTS)(_copy)


@form("cp.async.commit_group", unit="async", section=f"{SECTION}.commit_group", ptx="7.0", since=80)
def commit_group(m):
    """The thread's copies since its last commit become its newest group."""
    return lambda lanes: lanes.commit_group()


@form("cp.async.wait_group =n", unit="async", section=f"{SECTION}.wait_group", ptx="7.0", since=80)
def wait_group(m):
    """Until at most the n newest groups of the thread are unfinished."""
    if m.n < 0:
        raise ValueError(f"the number of groups cannot be negative: {m.n}")
    n = m.n
    return lambda lanes: lanes.wait_group(n)


@form("cp.async.wait_all", unit="async", section=f"{SECTION}.wait_all", ptx="7.0", since=80)
def wait_all(m):
    """Until all copies of the thread are finished."""
    return lambda lanes: lanes.wait_all()
