"""The checks of a launch as data: their names, what each looks for, and which are on unless the user says otherwise.

A plugin adds checks with the hook `tilefw_checks`; `--checks PLUGIN:NAME` asks for one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckInfo:
    """One check.

    `default`: it is on in a launch that names no checks; a plugin's check is on only where it is named. `observers` are the classes
    that make it in the simulator kit, each a `tilefw.api.sim.Check` as `"module:attribute"`.
    """

    name: str
    summary: str
    default: bool = False
    observers: tuple[str, ...] = ()


def _core(name: str, summary: str, *classes: str, default: bool = True) -> CheckInfo:
    return CheckInfo(name, summary, default, tuple(f"tilefw.sim.checks.{c}" for c in classes))


BUILTIN_CHECKS: tuple[CheckInfo, ...] = (
    _core(
        "bounds", "every access is inside an allocation and at the exact offset, and read-only memory is not written",
        "wrapped_offsets:WrappedOffsets",
    ),
    _core("alignment", "every access is aligned to its size", "alignment:Alignment"),
    _core(
        "initialisation", "undefined bits reach no address, condition, atomic operand or global memory",
        "initialisation:Initialisation",
    ),
    _core(
        "races", "accesses of different waves to one byte are ordered, where one of them writes", "races:Races",
        "rank_races:RankRaces", "descriptors:Descriptors", default=False,
    ),
    _core(
        "pending", "the destination of an unfinished load or copy is not accessed before its wait",
        "pending:PendingCopies", "pending:PendingResults", "groups:PendingGroups", "engines:PendingEngines",
    ),
    _core("hazards", "code keeps the wait states that its chip's manual asks for", "hazards:WaitStates"),
    _core("barriers", "the lanes of a wave reach an aligned barrier together, and every barrier is completed", "barriers:Barriers"),
    _core(
        "leftovers", "no copy is unfinished when its thread ends, and no code is unreachable; with races: no store half read",
        "leftovers:Leftovers", "groups:LeftGroups", "engines:EnginesAtExit", "unreachable:Unreachable", "unread:Unread",
    ),
    _core("bank_conflicts", "counts the extra passes of shared memory; no findings", "bank_conflicts:BankConflicts", default=False),
    _core(
        "weak_memory", "loads may return older values, as the memory model allows, by the seed; no findings, but wrong results",
        "stale_memory:StaleMemory", default=False,
    ),
)
"""The checks of core that devices make."""
PROGRAM_CHECK_INFOS: tuple[CheckInfo, ...] = (
    CheckInfo("division_by_zero", "no quotient or remainder by zero is stored or decides anything"),
    CheckInfo("same_address_stores", "the elements of one store that have one address have one value"),
    CheckInfo(
        "undefined_elements",
        "elements that a masked load without `other` leaves undefined are not stored and affect no address or control flow",
    ),
    CheckInfo("nonfinite", "no infinity or NaN that finite numbers made is stored or decides anything"),
    CheckInfo("offsets", "no offset wraps around its width, and every access is inside its array, in the program's own arithmetic"),
    CheckInfo("uninitialised_host", "no uninitialised element of a host array (`tilefw.empty`) is read"),
)
"""Checks of programs: about the kernel and its arguments and not about machine code. The reference interpreter makes them before
the launch, from the kernel's tile IR and copies of the arguments, whatever the target. They are on only where they are named, as
programs may do on purpose what they find."""
PROGRAM_CHECKS = frozenset(check.name for check in PROGRAM_CHECK_INFOS)
"""Their names."""
CHECKS = tuple(check.name for check in BUILTIN_CHECKS)
"""Their names."""
DEFAULT_CHECKS = frozenset(check.name for check in BUILTIN_CHECKS if check.default)
"""The checks of a launch that names none. The others cost time, or report what is slow and not wrong."""
ALL_CHECKS = frozenset(CHECKS) - {"weak_memory"}
"""Every check of core that devices make, but for the one that changes what loads return: that is made where it is named."""
