"""One instruction bound for the simulator kit: its operands as registers and constants, its row's meaning with adapters around it.

A row's meaning sees values of exactly the types that its pattern states. Here stands what lies between them and the registers of
32 bits: tuples, masks of lanes, halves, modifiers of sources (before) and of results (behind), the lanes of DPP, and EXEC,
which guards vector instructions as a predicate that is renewed whenever the register is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilefw.api.errors import KernelError, Place
from tilefw.api.sim import Barrier, Guard, Immediate, Instruction, Register, Sink, Symbol, Wait
from tilefw_amd.isa.meaning import dpp
from tilefw_amd.isa.meaning.addresses import address
from tilefw_amd.isa.meaning.arguments import MeaningArgument, argument
from tilefw_amd.isa.meaning.events import issues, needs
from tilefw_amd.isa.meaning.mode import ModeError
from tilefw_amd.isa.meaning.operand_values import EXEC_LANES, IMPLICIT, SCC_SLOT, slots
from tilefw_amd.isa.meaning.reader import SourceCollector
from tilefw_amd.isa.meaning.results import Finish, MeaningResult, result
from tilefw_amd.isa.model import MCInst, RegisterTuple
from tilefw_amd.isa.model import Operand as Given
from tilefw_amd.isa.registers import EXEC, EXEC_MASK, SCC, number
from tilefw_amd.isa.row import Mode, Modifiers, Operand

IMAGE = "code object"
"""The variable of a program that holds the code object's image."""


_ONLY_BARRIER = Immediate(0, 32)  # the kit numbers barriers; a workgroup of this chip has one


@dataclass(frozen=True, slots=True)
class Site:
    """Where an instruction stands: its number in the program, its byte offset in the image, the instruction that its branch goes
    to (None: to none), and the places for reports."""

    index: int
    offset: int = 0
    target: int | None = None
    code: Place | None = None
    source: Place | None = None


def bind(inst: MCInst, mode: Mode, site: Site, text: str) -> Instruction:
    """The instruction for the kit. What cannot be served (a branch to no instruction, a mode that is not known) stops the launch
    when it is executed, not before: code objects hold words that nobody executes."""
    return _Binder(inst, mode, site, text).instruction()


def reads(inst: MCInst) -> tuple[int, ...]:
    """The numbers of the registers that an instruction reads, unwritten ones too."""
    return tuple(dict.fromkeys(_touched(inst, "source")))


def writes(inst: MCInst) -> tuple[int, ...]:
    """The numbers of the registers that an instruction writes, unwritten ones too."""
    return tuple(dict.fromkeys(_touched(inst, "destination")))


def merges(inst: MCInst) -> bool:
    """Whether the result is combined with its old value only when it arrives. Of loads alone: an atomic that reads its result's
    register has data in it. And not where that register is the address as well, which must be there when the load is issued."""
    if "load" not in inst.form.row.facts or not any(operand.read for operand in inst.form.row.destinations):
        return False
    pairs = list(zip(inst.form.operands, inst.operands, strict=True))
    given = {
        n for of, it in pairs if of.role != "destination" and isinstance(it, RegisterTuple) and _in_file(it) for n in number(it)
    }
    return given.isdisjoint(writes(inst))


def _touched(inst: MCInst, side: str) -> Iterator[int]:
    for operand, given in zip(inst.form.operands, inst.operands, strict=True):
        source = operand.role in ("source", "address") or (operand.role == "destination" and operand.read)
        if (source if side == "source" else operand.role == "destination") and isinstance(given, RegisterTuple) and _in_file(given):
            yield from number(given)
    for operand in inst.form.row.operands:
        if operand.role == f"implicit {side}" and operand.name != "pc":
            yield from (SCC,) if operand.name == "scc" else number(IMPLICIT[operand.name])


def _in_file(register: RegisterTuple) -> bool:
    return register.file != "s" or register.index < 128


class _Binder:
    """One instruction as it is put together: what the meaning gets of what the kit reads, and what is written."""

    def __init__(self, inst: MCInst, mode: Mode, site: Site, text: str) -> None:
        self.inst, self.site, self.text, self.mode = inst, site, text, mode
        self.form, self.row = inst.form, inst.form.row
        self.given: dict[str, Given] = {o.name: v for o, v in zip(self.form.operands, inst.operands, strict=True)}
        self.reader = SourceCollector(inst, mode)
        self.destinations: list[Any] = []
        self.arguments: list[MeaningArgument] = []
        self.results: list[MeaningResult] = []
        self.exec_parts: tuple[Any, ...] | None = None

    # --- the whole ---------------------------------------------------------------------------------------------------

    def instruction(self) -> Instruction:
        try:
            return self._bound(self.row.build(self._row_modifiers()))
        except ModeError as error:
            return self._decoded(meaning=_raising(error))
        except (KernelError, ValueError) as error:
            return self._decoded(meaning=stopping(error.message if isinstance(error, KernelError) else str(error)))

    def _decoded(self, **found: Any) -> Instruction:
        site = self.site
        return Instruction(
            site.index, self.text, self.form.mnemonic, self.row.unit, code=site.code, source=site.source, row=self.inst, **found
        )

    def _row_modifiers(self) -> Modifiers:
        found = Modifiers({**self.form.fixed, **self.inst.modifiers})
        found.mode, found.form, found.chip = self.mode, self.form, self.form.chip
        for operand in self.form.operands:
            value = self.given[operand.name]
            if operand.role == "immediate":
                found[operand.name] = value
            elif operand.role == "target":
                if self.site.target is None:
                    raise ValueError(f"{self.form.mnemonic} goes to an address where the kernel has no instruction")
                found[operand.name] = self.site.target
        return found

    def _bound(self, built: Any) -> Instruction:
        if isinstance(built, Wait):
            return self._decoded(meaning=_nothing, waits=built, wave=True)
        flow = None
        if self.row.flow:
            flow, built = built if isinstance(built, tuple) else (built, None)
        if self.reader.elementwise:
            built = _for_each(built)
        self._operands()
        if isinstance(flow, Barrier):
            self.reader.read(_ONLY_BARRIER)
        whole = dpp.control(self.reader.modifiers) if "dpp_ctrl" in self.reader.modifiers else None
        meaning = None if built is None else _Meaning(self, built, whole).function(leading=1 if flow is not None else 0)
        return self._decoded(
            meaning=meaning, flow=flow, sources=tuple(self.reader.sources), destinations=tuple(self.destinations),
            guard=self._guard(), wave=self.row.wave and flow is None and EXEC_LANES not in self.destinations, issues=self._issues(),
            needs=needs(self.inst),
        )

    def _guard(self) -> Guard | None:
        row = self.row
        return None if row.wave or "ignores exec" in row.facts else Guard(EXEC_LANES)

    def _issues(self) -> tuple[Any, ...]:
        pending = tuple(d.index for d in self.destinations if isinstance(d, Register) and d.index not in (SCC, EXEC_MASK))
        # Old values that a result is combined with stand last among the sources, as `Issue.merged` wants them.
        return issues(self.inst, pending, pending if merges(self.inst) else ())

    # --- operands ----------------------------------------------------------------------------------------------------

    def _operands(self) -> None:
        """Sources in the order of the pattern, then the old values of destinations that are read too, then destinations."""
        for operand in self.row.operands:
            if operand.role == "source":
                place = self.form.by_name[operand.name]
                self.arguments.append(argument(self.reader, self.form.operands[place], operand, self.given[operand.name]))
            elif operand.role == "implicit source":
                self.arguments.append(self._implicit(operand))
            elif operand.role == "address":
                self.arguments.append(MeaningArgument(*address(self.inst, self.reader.read)))
        for operand in self.row.destinations:
            if operand.read:
                place = self.form.by_name[operand.name]
                self.arguments.append(argument(self.reader, self.form.operands[place], operand, self.given[operand.name]))
        for operand in self.row.operands:
            if operand.role == "destination":
                self._destination(operand)
            elif operand.role == "implicit destination":
                kept = (SCC_SLOT,) if operand.name == "scc" else slots(IMPLICIT[operand.name])
                self._write(operand, kept)
        self._renew_exec()

    def _implicit(self, operand: Operand) -> MeaningArgument:
        if operand.name == "scc":
            return MeaningArgument(self.reader.read(SCC_SLOT))
        if operand.name == "pc":
            return MeaningArgument(self.reader.read(Symbol(IMAGE, self.site.offset + self.inst.size)))
        return argument(self.reader, None, operand, IMPLICIT[operand.name])

    def _destination(self, operand: Operand) -> None:
        assert operand.type is not None
        given = self.given.get(operand.name)
        registers = slots(given) if isinstance(given, RegisterTuple) else tuple(Sink() for _ in range(operand.type.registers))
        self._write(operand, registers)

    def _write(self, operand: Operand, registers: tuple[Any, ...]) -> None:
        self.destinations += registers
        self.results.append(result(self.reader, operand, registers))

    def _renew_exec(self) -> None:
        """EXEC's predicate follows what the instruction writes into its halves."""
        written = {d.index: place for place, d in enumerate(self.destinations) if isinstance(d, Register)}
        halves = slots(EXEC)
        places = [written.get(half.index) for half in halves]
        if places != [None, None]:
            kept = [self.reader.read(half)[0] if place is None else None for place, half in zip(places, halves, strict=True)]
            self.destinations.append(EXEC_LANES)
            self.exec_parts = (*places, *kept)


class _Meaning:
    """The row's meaning between adapters, as one function of what the kit reads."""

    def __init__(self, binder: _Binder, meaning: Callable[..., Any], control: dpp.Control | None) -> None:
        self.binder, self.meaning, self.control = binder, meaning, control
        if control is not None:
            self.lane_source = binder.arguments[0].places[0]
            self.exec_place = binder.reader.read(EXEC_LANES)[0]
            self.old = () if control.writes_all else tuple(self._old_values())

    def _old_values(self) -> Iterator[int | None]:
        for destination in self.binder.destinations:
            lanes_differ = isinstance(destination, Register) and destination.index < 512
            yield self.binder.reader.read(destination)[0] if lanes_differ else None

    def function(self, leading: int) -> Callable[..., Any]:
        """`leading` results stand before those of the destinations: a branch's condition."""
        core = self._core(leading)
        if self.control is not None:
            core = self._across_lanes(core)
        if self.binder.exec_parts is not None:
            core = _renewing_exec(core, self.binder.exec_parts)
        return core

    def _core(self, leading: int) -> Callable[..., Any]:
        arguments, results, meaning = self.binder.arguments, self.binder.results, self.meaning
        whole = len(arguments) == len(self.binder.reader.sources)
        direct = whole and all(a.function is None and a.places == (i,) for i, a in enumerate(arguments))
        called = meaning if direct else _gathering(meaning, tuple(arguments))
        finishes = (None,) * leading + tuple(r.finish for r in results)
        return called if all(f is None for f in finishes) else _finishing(called, finishes)

    def _across_lanes(self, core: Callable[..., Any]) -> Callable[..., Any]:
        control, place, exec_place, old = self.control, self.lane_source, self.exec_place, self.old
        assert control is not None
        masks = tuple(i for i, d in enumerate(self.binder.destinations) if isinstance(d, Register) and d.index >= 512)

        def across(lanes: Any, *values: Any) -> Any:
            taken, written = dpp.read(lanes, values[place], values[exec_place], control)
            results = core(lanes, *values[:place], taken, *values[place + 1 :])
            if written is None:
                return results
            flat = results if isinstance(results, tuple) else (results,)
            words = lanes.ballot(written) if masks else ()
            return tuple(
                lanes.and_(new, words[i - masks[0]]) if before is None else lanes.select(written, new, values[before])
                for i, (new, before) in enumerate(zip(flat, old, strict=True))
            )

        return across


def _gathering(meaning: Callable[..., Any], arguments: tuple[MeaningArgument, ...]) -> Callable[..., Any]:
    """The meaning, given each argument made of the sources that it stands for."""
    prepared = tuple((a.function, a.places) for a in arguments)

    def gathered(lanes: Any, *values: Any) -> Any:
        return meaning(lanes, *[
            values[places[0]] if function is None else function(lanes, *[values[p] for p in places])
            for function, places in prepared
        ])

    return gathered


def _finishing(meaning: Callable[..., Any], finishes: tuple[Finish | None, ...]) -> Callable[..., Any]:
    """The meaning, with each result made into the registers that hold it."""
    if len(finishes) == 1:
        only = finishes[0]
        assert only is not None

        def finished_one(lanes: Any, *values: Any) -> Any:
            return only(lanes, meaning(lanes, *values), values)

        return finished_one

    def finished(lanes: Any, *values: Any) -> Any:
        flat: list[Any] = []
        for value, finish in zip(meaning(lanes, *values), finishes, strict=True):
            if finish is None:
                flat.append(value)
            else:
                flat += finish(lanes, value, values)
        return tuple(flat)

    return finished


def _for_each(meaning: Callable[..., Any]) -> Callable[..., Any]:
    """The meaning for one element, done with all elements of packed operands."""
    return lambda lanes, *values: tuple(meaning(lanes, *elements) for elements in zip(*values, strict=True))


def _renewing_exec(core: Callable[..., Any], parts: tuple[Any, ...]) -> Callable[..., Any]:
    low, high, kept_low, kept_high = parts

    def renewed(lanes: Any, *values: Any) -> Any:
        results = core(lanes, *values)
        flat = results if isinstance(results, tuple) else (results,)
        halves = (values[kept_low] if low is None else flat[low], values[kept_high] if high is None else flat[high])
        return (*flat, lanes.unballot(*halves))

    return renewed


def stopping(message: str) -> Callable[..., None]:
    """A meaning that stops the launch."""
    return lambda lanes, *_: lanes.trap(message)


def _raising(error: ModeError) -> Callable[..., None]:
    def meaning(lanes: Any, *_: Any) -> None:
        raise error

    return meaning


def _nothing(lanes: Any) -> None:
    return None


__all__ = ["IMAGE", "Site", "bind", "reads", "stopping", "writes"]
