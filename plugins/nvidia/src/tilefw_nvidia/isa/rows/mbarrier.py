"""Barriers that count arrivals and bytes (PTX ISA, "Parallel Synchronization and Communication": mbarrier).

A barrier is an opaque object of 64 bits in shared memory. A wait suspends the thread until its phase is over; test_wait may as well
answer late, and so waits like try_wait.
"""

from __future__ import annotations

from tilefw.api.sim import Await
from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers
from tilefw_nvidia.isa.rows.memory import SCOPE

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Parallel Synchronization and Communication: mbarrier"
OWN, ANY = "shared shared::cta", "shared shared::cta shared::cluster"
SCOPES = "cta cluster"
_QUALIFIED = {
    **dict.fromkeys(("cta", "release", "acquire"), ("8.0", 80)), "cluster": ("8.0", 90), "relaxed": ("8.6", 90),
    "shared::cta": ("7.8", 80), "shared::cluster": ("8.0", 90),
}
_FACTS: Facts = dict(unit="shared", ptx="7.0", since=80, needs=_QUALIFIED)


def shared_space(m: Modifiers) -> str:
    """The algebra's space of a barrier: none written means a generic address."""
    return {"": "generic", "shared::cluster": "cluster"}.get(m.space, "shared")


def _begin(m):
    """Make the barrier, for so many arrivals a phase."""
    space = shared_space(m)
    return lambda lanes, address, count: lanes.barrier_begin(space, address, count)


def _end(m):
    """The place is no barrier any more."""
    space = shared_space(m)
    return lambda lanes, address: lanes.barrier_end(space, address)


form("mbarrier.init{.space}.b64 [addr], count:u32", space=OWN, section=f"{SECTION}.init", **_FACTS)(_begin)
form("mbarrier.inval{.space}.b64 [addr]", space=OWN, section=f"{SECTION}.inval", **_FACTS)(_end)


def _both(m: Modifiers) -> str:
    """A scope stands behind its semantics, and neither without the other."""
    return "" if bool(m.sem) == bool(m.scope) else "semantics and a scope stand together"


def _expect(m):
    """The phase wants so many bytes more."""
    space = shared_space(m)
    return lambda lanes, address, count: lanes.barrier_expect(space, address, count)


def _deliver(m):
    """So many bytes have come."""
    space = shared_space(m)
    return lambda lanes, address, count: lanes.barrier_deliver(space, address, count)


_BYTES: Facts = dict(sem="relaxed", scope=SCOPES, space=ANY, unit="shared", ptx="8.0", since=90, refuse=_both)
form("mbarrier.expect_tx{.sem}{.scope}{.space}.b64 [addr], bytes:u32", section=f"{SECTION}.expect_tx", **_BYTES)(_expect)
form("mbarrier.complete_tx{.sem}{.scope}{.space}.b64 [addr], bytes:u32", section=f"{SECTION}.complete_tx", **_BYTES)(_deliver)


def _arrive(drop: bool, expecting: bool):
    def build(m):
        """Arrive, once or so often, and say which phase this was; with `expect_tx` announce so many bytes first."""
        space, order, scope = shared_space(m), m.sem or "release", SCOPE[m.scope or "cta"]
        silent = m.space == "shared::cluster"

        def meaning(lanes, address, *given):
            count = lanes.const(1, 32) if expecting or not given else given[0]
            state = lanes.barrier_arrive(
                space, address, count, expect=given[0] if expecting else None, drop=drop, order=order, scope=scope
            )
            return None if silent else state

        return meaning

    return build


for _name, _drop in (("arrive", False), ("arrive_drop", True)):
    _facts: Facts = _FACTS | dict(sem="release relaxed", scope=SCOPES, refuse=_both, section=f"{SECTION}.{_name}")
    _counted: Facts = _facts | {"ptx": "7.8", "since": 90}
    form(f"mbarrier.{_name}{{.sem}}{{.scope}}{{.space}}.b64 d:b64, [addr]", space=OWN, **_facts)(_arrive(_drop, False))
    form(f"mbarrier.{_name}{{.sem}}{{.scope}}{{.space}}.b64 d:b64, [addr], n:u32", space=OWN, **_counted)(_arrive(_drop, False))
    form(f"mbarrier.{_name}{{.sem}}{{.scope}}.space.b64 _, [addr], n:u32?", space="shared::cluster", **_counted)(
        _arrive(_drop, False)
    )
    _open: Facts = _facts | {"sem": "release", "scope": "cta"}
    form(f"mbarrier.{_name}.noComplete{{.sem}}{{.scope}}{{.space}}.b64 d:b64, [addr], n:u32", space=OWN, **_open)(
        _arrive(_drop, False)
    )
    _expecting: Facts = _facts | {"ptx": "8.0", "since": 90}
    form(f"mbarrier.{_name}.expect_tx{{.sem}}{{.scope}}{{.space}}.b64 d:b64, [addr], n:u32", space=OWN, **_expecting)(
        _arrive(_drop, True)
    )
    form(f"mbarrier.{_name}.expect_tx{{.sem}}{{.scope}}.space.b64 _, [addr], n:u32", space="shared::cluster", **_expecting)(
        _arrive(_drop, True)
    )


def _wait(by: str):
    def build(m):
        """Wait until the phase of that state, or of that parity, is over. A parity is 0 or 1; Triton's roles write one as a
        predicate whose sign is extended, and ptxas (12.9, 13.0) shifts all but the lowest bit out: all ones are 1 too."""
        space, order, scope = shared_space(m), m.sem or "acquire", SCOPE[m.scope or "cta"]

        def meaning(lanes, address, phase, *limit):
            if by == "parity":
                phase = lanes.min(phase, lanes.neg(phase), False)
            return lanes.barrier_passed(space, address, phase, by, order=order, scope=scope)

        return meaning, Await()

    return build


_WAITS: Facts = dict(
    sem="acquire relaxed", scope=SCOPES, space=OWN, unit="shared", refuse=_both, flow=True, needs=_QUALIFIED,
)
for _parity, _by, _phase, _first in ((".parity", "parity", "b32", "7.1"), ("", "state", "b64", "7.0")):
    _head = f"{{.sem}}{{.scope}}{{.space}}.b64 d:pred, [addr], phase:{_phase}"
    form(f"mbarrier.test_wait{_parity}{_head}", ptx=_first, since=80, section=f"{SECTION}.test_wait", **_WAITS)(_wait(_by))
    form(f"mbarrier.try_wait{_parity}{_head}, limit:u32?", ptx="7.8", since=90, section=f"{SECTION}.try_wait", **_WAITS)(_wait(_by))


@form("mbarrier.pending_count.b64 d:b32, state:b64", section=f"{SECTION}.pending_count", unit="shared", ptx="7.0", since=80)
def pending_count(m):
    """How many arrivals the phase of a state still wanted."""
    return lambda lanes, state: lanes.barrier_wanted(state)


@form("cp.async.mbarrier.arrive{.noinc}{.space}.b64 [addr]", space=OWN, unit="async", ptx="7.0", since=80,
      section="Parallel Synchronization and Communication: cp.async.mbarrier.arrive", needs={"shared::cta": ("7.8", 80)})
def arrive_behind_copies(m):
    """Arrive once all copies that the thread has started are done; unless noinc, the phase wants that arrival besides."""
    space, count = shared_space(m), not m.noinc
    return lambda lanes, address: lanes.barrier_arrive_behind_copies(space, address, count)
