"""Matrix sweeps: weights loaded, installed and multiplied, one product after the other without a gap, and the drain of the sums.

A product's MAC begins a pitch after the one before. While it runs, the next weights go into the other buffer: LW and IW issue at
fixed distances before the MAC that needs them, so that buffers alternate and one schedule serves every product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilefw_spatial.isa import ACCUMULATE_FLAG, HALF_FLAG, TYPES, latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Home, Inst
from tilefw_spatial.schedule.demand import Group, Issue, Plan
from tilefw_spatial.schedule.memory import Homes, Touch, reach
from tilefw_spatial.schedule.runs import Access, Run, runs
from tilefw_spatial.sweep import MatrixSweep, Product


@dataclass(frozen=True, slots=True)
class Plane:
    """A plane of one side, or both of it as a pair, which the first one's queues steer: int8 takes a plane, other types the
    pair."""
    side: str
    number: int
    pair: bool

    @property
    def unit(self) -> str:
        return f"MXM.{self.side}"

    @property
    def name(self) -> str:
        return f"MXM.{self.side}{self.number}"

    def queue(self, kind: str) -> str:
        """The queue for weights (`LW`), products (`MAC`) or drains (`DRN`)."""
        return f"{self.name}.{kind}"

    @property
    def members(self) -> tuple[str, ...]:
        """The planes that are at work."""
        return (self.name, f"MXM.{self.side}{self.number + 1}") if self.pair else (self.name,)


@dataclass(frozen=True, slots=True)
class Sums:
    """Accumulators that a sweep has filled: `rows` from row 0 of a bank on, of which the first can be drained at `ready` and every
    further one a cycle later."""

    plane: Plane
    bank: int
    rows: int
    dtype: str
    ready: int


@dataclass(slots=True)
class Banks:
    """When the drain of each accumulator bank began that was last filled; a sweep and its drain are timed before any other
    sweep."""
    drained: dict[tuple[str, int], int] = field(default_factory=dict)

    def least(self, plane: Plane, bank: int, latency: int) -> int:
        """The least cycle for the first MAC of a new sweep: its sums come when their rows have been drained."""
        return max(self.drained.get((name, bank), 0) - latency + 1 for name in plane.members)

    def note(self, sums: Sums, begin: int) -> None:
        """A drain begins."""
        for name in sums.plane.members:
            self.drained[name, sums.bank] = begin


def sum_type(dtype: str) -> str:
    """What products of this element type are summed in."""
    return "int32" if dtype == "int8" else "fp32"


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """A matrix sweep's demand, with the accumulator bank that it fills; `pitch` cycles from MAC to MAC."""

    plan: Plan
    plane: Plane
    bank: int
    pitch: int


def plan_matrix(sweep: MatrixSweep, machine: Machine, homes: Homes, plane: Plane, parity: int, banks: Banks) -> MatrixPlan:
    """What the sweep needs; its first MAC issues at its begin. `parity` is the buffer of its first product."""
    pitch = max(sweep.rows, machine.delays["load_weights"] + machine.delays["install_weights"])
    latency = machine.delays[latency_key("MAC", sweep.dtype)]
    bank = min(range(machine.accumulator_banks), key=lambda number: banks.least(plane, number, latency))
    plan = Plan(machine, least=banks.least(plane, bank, latency))
    loads = _load_group(plan, sweep, plane, homes, pitch)
    actives = _active_group(plan, sweep, plane, homes, pitch)
    for number, product in enumerate(sweep.products):
        buffer = (parity + number) % machine.weight_buffers
        _load(plan, sweep, product, plane, homes, number * pitch, buffer, loads)
        _multiply(plan, sweep, number, plane, homes, number * pitch, actives, bank)
    return MatrixPlan(plan, plane, bank, pitch)


def weight_cycles(machine: Machine, product: Product, home: Home) -> int:
    """Cycles of the LW of a product."""
    return -(-product.depth // home.groups)


def load_time(machine: Machine) -> int:
    """When the LW of a product issues, counted from its MAC."""
    return -machine.delays["load_weights"] - machine.delays["install_weights"]


def _load_group(plan: Plan, sweep: MatrixSweep, plane: Plane, homes: Homes, pitch: int) -> Group:
    machine = plan.machine
    at, first = machine.position(plane.unit), load_time(machine)
    home = copy_for(homes(sweep.products[0].weights), plane.side)
    passes = [
        (at, number * pitch + first, number * pitch + first + weight_cycles(machine, product, home))
        for number, product in enumerate(sweep.products)
    ]
    return plan.streams(plane.side == "W", machine.weight_streams, passes, last_first=True)


def _active_group(plan: Plan, sweep: MatrixSweep, plane: Plane, homes: Homes, pitch: int) -> Group:
    at = plan.machine.position(plane.unit)
    passes = [(at, number * pitch, number * pitch + sweep.rows) for number in range(len(sweep.products))]
    return plan.streams(plane.side == "W", TYPES[sweep.dtype].nbytes, passes)


def copy_for(homes: Sequence[Home], side: str) -> Home:
    """The copy that the matrix unit of one side reads."""
    return homes[-1] if side == "E" else homes[0]


def _load(
    plan: Plan, sweep: MatrixSweep, product: Product, plane: Plane, homes: Homes, mac: int, buffer: int, group: Group
) -> None:
    """LW and IW of a product whose MAC issues at `mac`, and the RDs of its weights: 16 streams, that is 16/b rows of K a cycle."""
    machine, home = plan.machine, copy_for(homes(product.weights), plane.side)
    cycles, issue = weight_cycles(machine, product, home), mac + load_time(machine)
    width = TYPES[sweep.dtype].nbytes
    segment, within = divmod(product.first, home.segment)
    for neighbour in range(home.groups):
        access = Access(segment * home.groups + neighbour, 0, within // home.groups, cycles, 1)
        for byte, places in enumerate(home.planes):
            plane_number = neighbour * width + byte
            plan.read_rows(places[access.place], access, machine.position(plane.unit), issue, group, plane_number)
    for name in plane.members:
        plan.use(f"{name}/buffer{buffer}", issue, mac + sweep.rows)
    queue = plane.queue("LW")
    plan.use(queue, issue, issue + cycles)
    plan.makes.append(
        lambda picks: Issue(queue, issue, Inst("LW", sweep.dtype, cycles, a=group.bases[picks[group.pool]], imm=buffer))
    )
    plan.queue(queue, Issue(queue, mac - machine.delays["install_weights"], Inst("IW", sweep.dtype, imm=buffer)))


def _multiply(
    plan: Plan, sweep: MatrixSweep, number: int, plane: Plane, homes: Homes, mac: int, group: Group, bank: int
) -> None:
    """The MAC of a product, and the RDs of its activations."""
    machine, product = plan.machine, sweep.products[number]
    home = copy_for(homes(product.activations.array), plane.side)
    plan.read(runs((sweep.rows,), product.activations), home, machine.position(plane.unit), mac, group)
    queue = plane.queue("MAC")
    for name in plane.members:
        plan.use(f"{name}.MAC", mac, mac + sweep.rows)
    adds = number > 0 or sweep.accumulate
    flags = ACCUMULATE_FLAG * adds | HALF_FLAG * (product.half == 1)

    address = bank * machine.accumulator_rows

    def make(picks: Sequence[int]) -> Issue:
        stream = group.bases[picks[group.pool]]
        inst = Inst("MAC", sweep.dtype, sweep.rows, a=stream, flags=flags, address=address, step=1, imm=product.depth)
        return Issue(queue, mac, inst)

    plan.makes.append(make)


def sums_of(sweep: MatrixSweep, machine: Machine, planned: MatrixPlan, begin: int) -> Sums:
    """The accumulators of a sweep that begins at `begin`."""
    last = begin + (len(sweep.products) - 1) * planned.pitch
    ready = last + machine.delays[latency_key("MAC", sweep.dtype)]
    return Sums(planned.plane, planned.bank, sweep.rows, sum_type(sweep.dtype), ready)


def drain_time(machine: Machine, sums: Sums, time: int) -> int:
    """When the DRN issues whose first row is at the vector unit at `time`."""
    way = abs(machine.position("VXM") - machine.position(sums.plane.unit))
    return time - way - machine.delays["drain"]


def drain(plan: Plan, sums: Sums, time: int, group: Group) -> None:
    """The DRN whose first row is at the vector unit at `time`."""
    machine = plan.machine
    issue = drain_time(machine, sums, time)
    queue = sums.plane.queue("DRN")
    plan.least = max(plan.least, sums.ready - issue)
    plan.use(queue, issue, issue + sums.rows)
    address = sums.bank * machine.accumulator_rows

    def make(picks: Sequence[int]) -> Issue:
        stream = group.bases[picks[group.pool]]
        return Issue(queue, issue, Inst("DRN", sums.dtype, sums.rows, address=address, step=1, dst=stream))

    plan.makes.append(make)


def touches(sweep: MatrixSweep, machine: Machine, homes: Homes, planned: MatrixPlan) -> list[Touch]:
    """What the sweep reads."""
    at, delay = machine.position(planned.plane.unit), machine.delays["read"]
    found: list[Touch] = []
    for number, product in enumerate(sweep.products):
        mac = number * planned.pitch
        for array, time in ((product.activations.array, mac), (product.weights, mac + load_time(machine))):
            home = copy_for(homes(array), planned.plane.side)
            issue = time - reach(machine, home, at) - delay
            if array is product.weights:
                cycles = weight_cycles(machine, product, home)
                walked = [Run(0, product.first, home.groups, 1, 0, cycles, 1, home.groups)]
            else:
                walked = runs((sweep.rows,), product.activations)
            found.append(Touch(array, walked, issue, False))
    return found

