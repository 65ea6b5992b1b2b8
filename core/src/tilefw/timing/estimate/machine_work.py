"""What a program's work is on the waves of a chip: turns of pipes, passages through shared memory, bytes of each level, and the
chain of a wave that issues in order and waits for what it reads."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, log2, prod

from tilefw.api.errors import UnsupportedError
from tilefw.api.execution_trace import CHUNK
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout.atom_recipes import DotTypes
from tilefw.simt.layout.atoms import LANE_ATOM, DotLayouts, choose
from tilefw.simt.lower.dot import shape_of, types_of
from tilefw.tile import types
from tilefw.timing.chip_timing import ChipTiming, InstructionCost
from tilefw.timing.estimate.program_work import ProgramPart, WorkRegion

ADDRESS_INSTRUCTIONS = 2
"""Instructions of an access's address and mask, beside itself."""
LOOP_INSTRUCTIONS = 6
"""Of a turn of a loop: counter, comparison, addresses that move on."""


@dataclass(slots=True)
class MachineWork:
    """Of one workgroup: `chain`, cycles of a wave that is alone; by pipe the cycles of one wave; `slots`, its turns; `passes`
    through shared memory and `near`, bytes of the first level, of all its waves; `moved`, bytes beyond by argument; `written` ones;
    `waited`, those of all that a wave waits for; `shared`, bytes of shared memory."""

    chain: float = 0.0
    slots: float = 0.0
    pipes: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    passes: float = 0.0
    near: float = 0.0
    moved: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    written: float = 0.0
    waited: float = 0.0
    shared: float = 0.0

    def add(self, other: MachineWork, times: float) -> None:
        """`other` besides, so many times one after the other."""
        self.chain += other.chain * times
        self.slots += other.slots * times
        self.passes += other.passes * times
        self.near += other.near * times
        self.written += other.written * times
        self.waited += other.waited * times
        self.shared = max(self.shared, other.shared)
        for pipe, cycles in other.pipes.items():
            self.pipes[pipe] += cycles * times
        for argument, nbytes in other.moved.items():
            self.moved[argument] += nbytes * times


@dataclass(frozen=True, slots=True)
class WavesOfChip:
    """A chip with the waves of a workgroup, and the stages of its pipelined loops."""

    chip: ChipTiming
    lanes: LaneMachine
    stages: int

    def load_latency(self, fresh: float) -> float:
        """Cycles of a load, a part `fresh` of which the processor's own cache does not hold."""
        near, far = self.chip.levels[0], self.chip.levels[-1]
        return near.latency + fresh * (far.latency - near.latency) if near.shared_by == "processor" else far.latency

    def each(self, elements: float) -> int:
        """Elements of a lane."""
        return max(1, ceil(elements / self.lanes.threads))


def work_on(machine: WavesOfChip, region: WorkRegion) -> MachineWork:
    """One turn of a region."""
    done = MachineWork()
    ready: list[float] = []
    pipelined = _pipelined(region)
    now = 0.0
    for place, item in enumerate(region.items):
        if isinstance(item, WorkRegion):
            inner = work_on(machine, item)
            inner = _ahead(machine, item, inner)
            done.add(inner, item.times)
            now = max([now, *ready]) + inner.chain * item.times
            ready.append(now)
            continue
        one = _part(machine, item, place in pipelined)
        begin = max([now, *(ready[before] for before in item.after if before < len(ready))])
        now = begin + _issue(machine, one)
        ready.append(now + one.chain)
        done.add(replace(one, chain=0.0), 1.0)
    done.chain = max([now, *ready])
    return done


def _ahead(machine: WavesOfChip, loop: WorkRegion, inner: MachineWork) -> MachineWork:
    """A turn of a loop with its own instructions, which waits for loads that were issued some turns before."""
    integer = machine.chip.typical["integer"]
    inner.slots += LOOP_INSTRUCTIONS
    inner.pipes[integer.pipe] += LOOP_INSTRUCTIONS * integer.cycles
    inner.chain += LOOP_INSTRUCTIONS * machine.chip.issue_interval
    if _pipelined(loop):
        distance = max(1, machine.stages - 1) if machine.lanes.chip.copy_bytes else 1
        fresh = max((_fresh(machine, part) for part in loop.parts() if part.what == "load"), default=1.0)
        inner.chain = max(inner.chain, machine.load_latency(fresh) / distance) + machine.chip.barrier
    return inner


def _pipelined(region: WorkRegion) -> set[int]:
    """The loads of an innermost loop that feed its products: they are issued in an earlier turn."""
    if not region.innermost:
        return set()
    found: set[int] = set()
    pending = [place for place, item in enumerate(region.items) if isinstance(item, ProgramPart) and item.what == "dot"]
    seen = set(pending)
    while pending:
        for before in region.items[pending.pop()].after:  # type: ignore[union-attr]
            if before in seen:
                continue
            seen.add(before)
            if region.items[before].what == "load":  # type: ignore[union-attr]
                found.add(before)
            else:
                pending.append(before)
    return found


def _issue(machine: WavesOfChip, one: MachineWork) -> float:
    """Cycles in which a wave alone issues a part: by its turns, or its busiest pipe."""
    chip = machine.chip
    shared = one.passes * chip.shared_pass
    return max([one.slots * chip.issue_interval, shared, *one.pipes.values()])


def _part(machine: WavesOfChip, part: ProgramPart, early: bool) -> MachineWork:
    made = MachineWork()
    if part.what == "rows":
        each = machine.each(part.elements)
        if part.address:
            each = max(1, each // 4)
        for kind, count in part.kinds.items():
            _instructions(machine, made, kind, count * each)
    elif part.what in ("load", "store", "atomic"):
        _access(machine, made, part, early)
    elif part.what == "dot":
        _dot(machine, made, part)
    elif part.what in ("reduce", "scan"):
        _combine(machine, made, part)
    else:
        _instructions(machine, made, "integer", machine.each(part.elements))
    return made


def _instructions(machine: WavesOfChip, made: MachineWork, kind: str, count: float) -> None:
    cost: InstructionCost = machine.chip.typical[kind]
    made.slots += cost.slots * count
    made.pipes[cost.pipe] += cost.cycles * count
    made.chain = max(made.chain, cost.latency)


def _fresh(machine: WavesOfChip, part: ProgramPart) -> float:
    """The part of an access's lines that no earlier turn of its loop has brought."""
    return 1.0 if part.advance is None else min(1.0, part.advance / machine.chip.levels[0].line)


def _access(machine: WavesOfChip, made: MachineWork, part: ProgramPart, early: bool) -> None:
    chip, lanes = machine.chip, machine.lanes
    each = machine.each(part.elements)
    vector = 1
    while 2 * vector <= min(each, part.run) and 2 * vector * part.bits <= 8 * lanes.access_bytes:
        vector *= 2
    count = ceil(each / vector)
    _instructions(machine, made, "memory", count)
    _instructions(machine, made, "integer", ADDRESS_INSTRUCTIONS * count)
    line = chip.levels[0].line
    width = min(part.run, max(vector, lanes.lanes * vector)) * part.bits / 8  # what lie together of a wave's access
    copies = max(1.0, lanes.threads * vector / max(1, part.elements)) if part.elements < lanes.threads * vector else 1.0
    asked = part.nbytes / max(width, 1.0) * max(width, line) if part.nbytes else 0.0
    if part.what == "load":
        made.near += asked * (1.0 if part.elements >= lanes.threads else copies)
        fresh = _fresh(machine, part)
        made.moved[part.argument] += part.chunks * CHUNK * fresh
        made.chain = 1.0 if early else machine.load_latency(fresh)
        made.waited += 0.0 if early else part.chunks * CHUNK * fresh
    else:
        made.written += part.chunks * CHUNK
        made.waited += part.chunks * CHUNK
        made.chain = 1.0 if part.what == "store" else machine.load_latency(1.0)
        if part.turned:
            _exchange(machine, made, part)
    if early:
        made.shared += (machine.stages if machine.lanes.chip.copy_bytes else 2) * part.elements * part.bits / 8
        if not lanes.chip.copy_bytes:
            _instructions(machine, made, "shared", count)
        made.passes += part.elements * part.bits / 8 / chip.shared_row


def _exchange(machine: WavesOfChip, made: MachineWork, part: ProgramPart) -> None:
    """A tile from one layout to another, through shared memory: written, a barrier, read."""
    chip, nbytes = machine.chip, part.elements * part.bits / 8
    _instructions(machine, made, "shared", 2 * ceil(machine.each(part.elements) * part.bits / 8 / machine.lanes.chip.bank_bytes))
    made.passes += 2 * nbytes / chip.shared_row
    made.chain += 2 * chip.typical["shared"].latency + chip.barrier
    made.shared = max(made.shared, nbytes)


@lru_cache(maxsize=4096)
def _layouts(sizes: tuple[int, ...], of: DotTypes, machine: LaneMachine) -> DotLayouts | None:
    try:
        return choose(sizes, of, machine)
    except UnsupportedError:
        return None


def _dot(machine: WavesOfChip, made: MachineWork, part: ProgramPart) -> None:
    chip, op = machine.chip, part.op
    assert op is not None
    sizes = shape_of(op)  # type: ignore[arg-type]
    found = _layouts(sizes, types_of(op), machine.lanes)  # type: ignore[arg-type]
    if found is None:
        _instructions(machine, made, "float", machine.each(prod(sizes)))
        return
    products = found.steps * len(found.repeats) * len(found.recipe.products)
    if found.atom.name.startswith(LANE_ATOM):
        _instructions(machine, made, "float", products)
    else:
        matrix = chip.typical["matrix"]
        made.slots += products
        made.pipes[matrix.pipe] += found.atom.cost * products
        made.chain = matrix.latency
    read = 0.0
    for layout, operand in ((found.a, op.operands[0]), (found.b, op.operands[1])):
        nbytes = layout.registers * types.dtype_of(operand.type).storage_bits / 8
        read += nbytes
    count = read / machine.lanes.chip.shared_access_bytes
    _instructions(machine, made, "shared", count)
    made.passes += read * machine.lanes.threads / chip.shared_row
    made.chain = max(made.chain, chip.typical["matrix"].latency) + chip.typical["shared"].latency


def _combine(machine: WavesOfChip, made: MachineWork, part: ProgramPart) -> None:
    """Elements of a lane, then lanes by shuffles, then waves through shared memory: the dims behind the axis take lanes first."""
    chip, lanes = machine.chip, machine.lanes
    each = machine.each(part.elements)
    inner = prod(part.shape[part.axis + 1 :])
    threads = min(lanes.threads, max(1, part.elements))
    free = max(1, threads // max(1, inner))
    along = min(free, part.shape[part.axis])  # threads along the axis
    in_wave = min(along, max(1, lanes.lanes // max(1, inner)))
    steps, waves = log2(max(1, in_wave)), along // max(1, in_wave)
    ops = sum(part.kinds.values())
    kind = next(iter(part.kinds))
    kept = max(1, each // max(1, part.shape[part.axis] // max(1, along)))
    _instructions(machine, made, kind, ops * each * (2 if part.what == "scan" else 1))
    _instructions(machine, made, "shuffle", steps * kept)
    _instructions(machine, made, kind, ops * steps * kept)
    latency = chip.typical[kind].latency
    made.chain = steps * (chip.typical["shuffle"].latency + latency) + min(each, 8) * latency
    if waves > 1 and lanes.waves > 1:
        _instructions(machine, made, "shared", 2 * kept)
        made.passes += 2 * kept * lanes.waves
        made.chain += 2 * chip.typical["shared"].latency + 2 * chip.barrier + log2(waves) * latency
