"""Barriers that count, as mbarriers (PTX ISA, "Parallel Synchronization and Communication": mbarrier, cp.async.mbarrier.arrive)."""

from __future__ import annotations

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Code

BYTES = 8  # of the opaque object, at a multiple of that
GROUP = 1  # the number of the named barrier of a group of warps; the workgroup's is 0


def begin(code: Code, address: Slice, immediate: int, count: int, predicate: Slice) -> None:
    """Make one."""
    code.effect("mbarrier.init.shared.b64", (), [address, immediate, count], predicate=predicate)


def show(code: Code, predicate: Slice) -> None:
    """Once for all that were made (PTX ISA, fence: `.mbarrier_init`), as CUTLASS has it before engines complete copies there."""
    code.effect("fence.mbarrier_init.release.cluster", predicate=predicate)


def _in_cluster(code: Code) -> bool:
    return code.function.attributes.workgroups > 1


def arrive(code: Code, address: Slice, immediate: int, bytes: int | Slice, copies: bool, predicate: Slice | None) -> None:
    """Arrive; which phase this was nobody asks."""
    if copies:  # the barrier's count has these arrivals already: `noinc`
        code.effect("cp.async.mbarrier.arrive.noinc.shared.b64", (), [address, immediate], predicate=predicate)
        return
    state = code.new_register("w64")
    if bytes:
        code.effect("mbarrier.arrive.expect_tx.shared.b64", [state], [address, immediate, bytes], predicate=predicate)
    else:
        code.effect("mbarrier.arrive.shared.b64", [state], [address, immediate], predicate=predicate)


def arrive_at_peer(code: Code, address: Slice, immediate: int, bytes: int | Slice, predicate: Slice | None) -> None:
    """Arrive at one of a workgroup of the cluster."""
    operands: list[Operand] = ["_", address, immediate]
    if bytes:
        code.effect("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64", (), [*operands, bytes], predicate=predicate)
    else:
        code.effect("mbarrier.arrive.release.cluster.shared::cluster.b64", (), operands, predicate=predicate)


def wait(code: Code, address: Slice, immediate: int, parity: Slice) -> None:
    """Ask until it is so; each time the hardware suspends the thread for a while. Arrivals of a cluster are acquired too."""
    again, passed = code.label("again"), code.new_register("i1")
    code.start(again)
    order = ".acquire.cluster" if _in_cluster(code) else ""
    code.effect(f"mbarrier.try_wait.parity{order}.shared.b64", [passed], [address, immediate, parity])
    code.chip.branch_if(code, passed, again, True)  # type: ignore[attr-defined]
    code.start(code.label("passed"))


def group(code: Code, threads: int) -> None:
    """A named barrier of some of the workgroup's threads."""
    code.effect("bar.sync", (), [GROUP, threads])
