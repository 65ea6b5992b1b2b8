"""Control flow, barriers, fences and the rest (PTX ISA, "Control Flow", "Parallel Synchronization", "Miscellaneous")."""

from __future__ import annotations

from typing import Literal

from tilefw.api.sim import Barrier, Branch, BranchTable, Exit, Return
from tilefw_nvidia.isa.model import Chapter, Facts
from tilefw_nvidia.isa.rows.memory import SCOPE

CHAPTER = Chapter()
form = CHAPTER.form

SYNC = "Parallel Synchronization and Communication"


@form("bra{.uni} @target", unit="control", section="Control Flow: bra", flow=True)
def bra(m):
    """Go to the label; .uni promises that all active lanes agree."""
    return Branch(m.target, bool(m.uni))


@form("brx.idx{.uni} a:u32, @@targets", unit="control", section="Control Flow: brx.idx", ptx="6.0", since=30, flow=True)
def brx(m):
    """Go to the label at place a of the table."""
    return BranchTable(m.targets)


@form("ret{.uni}", unit="control", section="Control Flow: ret", flow=True)
def ret(m):
    """Back to the caller; from an entry, the thread ends."""
    return Return()


@form("exit", unit="control", section="Control Flow: exit", flow=True)
def exit_(m):
    """The thread ends."""
    return Exit()


@form("trap", unit="control", section="Miscellaneous: trap")
def trap(m):
    """Abort the launch."""
    return lambda lanes: lanes.trap("trap: the kernel gave up")


def _barrier(action: Literal["sync", "arrive"], counted: bool, always_aligned: bool):
    def build(m):
        """Wait for, or only arrive at, the barrier of that number, of all threads or of so many."""
        return Barrier("workgroup", action, counted, aligned=always_aligned or bool(m.aligned))

    return build


def _barrier_reduction(counted: bool, always_aligned: bool):
    def build(m):
        """Wait, and give every thread the number, conjunction or disjunction of the predicates."""
        return Barrier("workgroup", "sync", counted, aligned=always_aligned or bool(m.aligned), reduce=m.op or "popc")

    return build


# `bar` is `barrier.cta.….aligned` under its old name ("bar.sync").
for _name, _aligned, _always, _ptx, _since in (
    ("bar{.cta}", "", True, "1.0", 10),
    ("barrier{.cta}", "{.aligned}", False, "6.0", 30),
):
    _facts: Facts = dict(
        unit="control", ptx=_ptx, since=_since, needs={"cta": ("7.8", 10)}, section=f"{SYNC}: bar, barrier", flow=True
    )
    form(f"{_name}.sync{_aligned} a:u32", **_facts)(_barrier("sync", False, _always))
    form(f"{_name}.sync{_aligned} a:u32, b:u32", **_facts)(_barrier("sync", True, _always))
    form(f"{_name}.arrive{_aligned} a:u32, b:u32", **_facts)(_barrier("arrive", True, _always))
    form(f"{_name}.red.popc{_aligned}.u32 d, a:u32, c:pred", **_facts)(_barrier_reduction(False, _always))
    form(f"{_name}.red.popc{_aligned}.u32 d, a:u32, b:u32, c:pred", **_facts)(_barrier_reduction(True, _always))
    form(f"{_name}.red.op{_aligned}.pred d, a:u32, c:pred", op="and or", **_facts)(_barrier_reduction(False, _always))
    form(f"{_name}.red.op{_aligned}.pred d, a:u32, b:u32, c:pred", op="and or", **_facts)(_barrier_reduction(True, _always))


@form("bar.warp.sync mask:b32", unit="control", section=f"{SYNC}: bar.warp.sync", ptx="6.0", since=30, flow=True)
def bar_warp(m):
    """Wait for the lanes in the mask."""
    return Barrier("wave")


@form("membar.level", level="cta gl sys", unit="control", section=f"{SYNC}: membar", ptx="1.4", needs={"sys": ("2.0", 20)})
def membar(m):
    """Orders memory accesses before and after it, as seen by the block, the device or the system."""
    scope = {"cta": "workgroup", "gl": "device", "sys": "system"}[m.level]
    return lambda lanes: lanes.fence("seq_cst", scope)


@form("fence{.sem}.scope", sem="sc acq_rel", scope="cta cluster gpu sys",
      unit="control", section=f"{SYNC}: fence", ptx="6.0", since=70, needs={"cluster": ("7.8", 90)})
def fence(m):
    """Orders memory accesses before and after it (acq_rel), all fences among each other too (sc)."""
    order, scope = ("seq_cst" if m.sem == "sc" else "acq_rel"), SCOPE[m.scope]
    return lambda lanes: lanes.fence(order, scope)


@form("nanosleep.u32 a", unit="control", section="Miscellaneous: nanosleep", ptx="6.2", since=70)
def nanosleep(m):
    """Let others go first; no effect on results."""
    return lambda lanes, a: None
