"""A library kernel's machine code as register allocation leaves it, as the subject of a mutation campaign of allocations.

The checker that machine passes run (`tilefw.machine.check_allocation`) is what must report. It says either that the code is no
allocation of the virtual code at all (an instruction moved, a tuple out of line, a reserved register), or that a wrong value is
read. Whether the second is so, and what a mutant does that it accepts, is decided by executing both sides (`oracles.tokens`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from oracles import register_sites, tokens
from oracles.library_subject import Configuration, requested, specialized
from oracles.register_sites import RegisterSite
from oracles.site import Site
from oracles.verdict_log import Verdict
from tilefw.api.errors import InternalError
from tilefw.kernels import spec as library
from tilefw.machine.assign_registers import AssignRegisters, assign
from tilefw.machine.check_allocation import Snapshot, check_allocation, snapshot
from tilefw.machine.function_op import FuncOp
from tilefw.machine.inst import Function
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation.pass_run import Watch, run_passes
from tilefw.runtime.plugins.loader import find_target

JUDGED = f"judged by the checker of allocations, and by execution with a token for each value on {tokens.PATHS} paths or more"
_VALUES = "does not hold"  # how the checker says that a value is not where it is read


@dataclass(frozen=True)
class AllocatedKernel:
    """One function before (`before`) and behind (`after`) allocation by the pass `by`."""

    name: str
    before: Snapshot
    after: Function
    by: AssignRegisters

    def sites(self) -> list[RegisterSite]:
        return register_sites.sites(self.after, self.by.table, self.by.spills)

    def fault(self) -> str:
        """What the checker says of the function as it stands."""
        try:
            check_allocation(self.before, self.after, self.by.table, self.by.spills)
        except InternalError as error:
            return str(error)
        return ""

    def differs(self) -> str:
        """What is read wrongly on a path of the function as it stands."""
        return tokens.differs(self.before, self.after, self.by.table, self.by.spills)


def allocated(name: str, configuration: Configuration, target: str, limits: Mapping[str, int] | None = None) -> AllocatedKernel:
    """The kernel compiled up to allocation, and allocated without the pass's own check. `limits`: fewer registers, by file."""
    chosen, launch = find_target(target), configuration.launch(None)
    _, _, source = specialized(library.load(configuration.kernel).kernel, launch)
    module = source.build()
    passes = list(chosen.backend.pipeline(requested(launch, chosen)))
    place, by = next((i, p) for i, p in enumerate(passes) if isinstance(p, AssignRegisters))
    run_passes(module, default_passes(), chosen.name, Watch())
    run_passes(module, passes[:place], chosen.name, Watch())
    (function,) = (op.function for op in module.body.block.ops if isinstance(op, FuncOp))
    before = snapshot(function)
    assign(function, by.table, {**(by.limits or {}), **(limits or {})}, by.spills, verify=False)
    return AllocatedKernel(name, before, function, by)


def verdicts(subject: AllocatedKernel, chosen: Sequence[RegisterSite], orders: int = 0) -> Iterator[Verdict]:
    """What becomes of the chosen sites of the subject; `orders` is for campaigns that run kernels."""
    if fault := subject.fault() or subject.differs():
        raise AssertionError(f"{subject.name} is not clean before any mutation: {fault}")
    for site in chosen:
        shown = Site(site.kind, site.line, site.before, site.after, "")  # without the code that it changes
        yield Verdict(subject.name, shown, *site.on(functools.partial(_judge, subject)))


def _judge(subject: AllocatedKernel) -> tuple[str, str]:
    fault = subject.fault()
    if fault and _VALUES not in fault:
        return "reported", f"form: {fault}"
    wrong = subject.differs()
    if fault and wrong:
        return "reported", f"values: {fault}"
    if wrong:
        return "survived", wrong
    return "equivalent", "executed: nothing reads another value than the virtual code means" + f" (but: {fault})" * bool(fault)
