"""What a program's work is on the waves of a chip: turns of pipes, passages through shared memory, bytes of each level, and the
chain of a wave that issues in order and waits for what it reads."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, exp, log2, prod

from tilefw.api.errors import UnsupportedError
from tilefw.api.execution_trace import CHUNK
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atom_recipes import DotTypes
from tilefw.simt.layout.atoms import LANE_ATOM, DotLayouts, choose
from tilefw.simt.lower.dot import shape_of, types_of
from tilefw.tile import types
from tilefw.timing.chip_timing import ChipTiming, InstructionCost
from tilefw.timing.estimate.program_parts import ProgramPart, WorkRegion
from tilefw.timing.estimate.shared_traffic import SharedTraffic, memory_layout, shared_traffic

ACCUMULATORS = 4
"""Chains of combinations side by side in a lane: those of the lowering."""
ADDRESS_INSTRUCTIONS = 2
"""Instructions of an access's address and mask, beside itself."""
LOOP_INSTRUCTIONS = 6
"""Of a turn of a loop: counter, comparison, addresses that move on."""


@dataclass(slots=True)
class MachineWork:
    """Of one workgroup: `chain`, cycles of a wave that is alone; by pipe the cycles of one wave; `slots`, its turns; `passes`
    through shared memory and `near`, bytes of the first level, of all its waves; `moved`, bytes beyond by argument; `written` ones;
    `waited`, those of all that a wave waits for; `shared`, bytes of shared memory. `atomics`: turns at addresses, one by one;
    `contended`, those times the part of the workgroups that want the address as well."""

    chain: float = 0.0
    slots: float = 0.0
    pipes: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    passes: float = 0.0
    near: float = 0.0
    moved: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    written: float = 0.0
    waited: float = 0.0
    shared: float = 0.0
    atomics: float = 0.0
    contended: float = 0.0

    def add(self, other: MachineWork, times: float) -> None:
        """`other` besides, so many times one after the other."""
        self.chain += other.chain * times
        self.slots += other.slots * times
        self.passes += other.passes * times
        self.near += other.near * times
        self.written += other.written * times
        self.waited += other.waited * times
        self.atomics += other.atomics * times
        self.contended += other.contended * times
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

    def vector(self, part: ProgramPart) -> int:
        """Neighbouring elements that a lane accesses at once."""
        each, vector = self.each(part.elements), 1
        while 2 * vector <= min(each, part.run) and 2 * vector * part.bits <= 8 * self.lanes.access_bytes:
            vector *= 2
        return vector


def work_on(machine: WavesOfChip, region: WorkRegion) -> MachineWork:
    """One turn of a region."""
    done = MachineWork()
    ready: list[float] = []
    pipelined = _pipelined(region)
    now = ahead = 0.0
    for place, item in enumerate(region.items):
        if isinstance(item, WorkRegion):
            inner = work_on(machine, item)
            inner = _ahead(machine, item, inner)
            done.add(inner, item.times)
            now = ahead = max([now, ahead, *ready]) + inner.chain * item.times
            ready.append(now)
            continue
        one = _part(machine, item, place in pipelined)
        given = max((ready[before] for before in item.after if before < len(ready)), default=0.0)
        if item.what == "load" or item.address:  # the compiler has them as soon as their operands are there
            ahead = max(ahead, given) + _issue(machine, one)
            now += _issue(machine, one)
            ready.append(ahead + one.chain)
        else:
            now = max(now, given) + _issue(machine, one)
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
        if part.address:  # one for each access
            each = ceil(each / machine.vector(part))
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


def _fresh_bytes(machine: WavesOfChip, part: ProgramPart) -> float:
    """The part of an access's bytes that no earlier turn of its loop has brought: a line comes once, for all the turns that go
    through it, and what is asked for of one lies together in runs."""
    if part.advance is None:
        return 1.0
    together = min(machine.chip.levels[0].line, max(CHUNK, part.run * part.bits // 8))
    return min(1.0, part.advance / together)


def _access(machine: WavesOfChip, made: MachineWork, part: ProgramPart, early: bool) -> None:
    chip, lanes = machine.chip, machine.lanes
    each = machine.each(part.elements)
    vector = 1 if part.what == "atomic" else machine.vector(part)
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
        moved = part.first_chunks * CHUNK * _fresh_bytes(machine, part)
        made.moved[part.argument] += moved
        made.chain = 1.0 if early else machine.load_latency(fresh if part.first_chunks else 0.0)
        made.waited += 0.0 if early else moved
    else:
        written = part.chunks * CHUNK * _pieces(machine, part)
        made.written += written
        made.waited += written
        made.chain = 1.0 if part.what == "store" else machine.load_latency(1.0)
        if part.turned_from is not None:
            _exchange(machine, made, part)
    if part.what == "atomic":
        made.atomics = count * lanes.waves * _meeting(part, min(lanes.lanes, part.elements))
        made.contended = made.atomics * part.contended
    if early:
        made.shared += (machine.stages if machine.lanes.chip.copy_bytes else 2) * part.elements * part.bits / 8


def _meeting(part: ProgramPart, lanes: int) -> float:
    """The most lanes of a wave that want one address of an atomic access. Of addresses that nobody knows, as many as one of them is
    expected to have where all are as likely."""
    if not part.among:
        return min(lanes, part.alike)
    rate, most = lanes / part.among, 1
    chance = exp(-rate)  # of as many as `most` less one
    beyond = 1 - chance
    while most < lanes:
        chance *= rate / most
        beyond -= chance
        if part.among * beyond < 0.5:
            break
        most += 1
    return most


def _pieces(machine: WavesOfChip, part: ProgramPart) -> float:
    """In how many accesses a chunk of memory is written: what a product's layout has side by side may be less than a chunk."""
    found = None if part.op is None else _layouts(shape_of(part.op), types_of(part.op), machine.lanes)  # type: ignore[arg-type]
    if found is None or part.along != len(part.shape) - 1 or found.d.shape != part.shape:
        return 1.0
    side_by_side, width = set(found.d.lane), 1
    for basis in found.d.register:  # an access takes the neighbours that a lane has
        if basis != width or 2 * width * part.bits > 8 * machine.lanes.access_bytes:
            break
        side_by_side.add(basis)
        width *= 2
    run = 1
    while run < min(part.run, part.shape[-1]) and run in side_by_side:
        run *= 2
    return max(1.0, CHUNK * 8 / (run * part.bits))


def _exchange(machine: WavesOfChip, made: MachineWork, part: ProgramPart) -> None:
    """A tile from the layout of its load to that of its store, through shared memory: written, a barrier, read."""
    chip, lanes, nbytes = machine.chip, machine.lanes, part.elements * part.bits / 8
    assert part.turned_from is not None, "asked for tiles that are turned"
    before, after = (memory_layout(part.shape, along, machine.vector(part), lanes) for along in (part.turned_from, part.along))
    _through_shared(machine, made, shared_traffic(before, after, part.bits, lanes))
    made.chain += 2 * chip.typical["shared"].latency + chip.barrier
    made.shared = max(made.shared, nbytes)


def _through_shared(machine: WavesOfChip, made: MachineWork, traffic: SharedTraffic | None, copied: bool = False) -> None:
    if traffic is not None:
        _instructions(machine, made, "shared", traffic.reads + (0.0 if copied else traffic.writes))
        _instructions(machine, made, "integer", traffic.packing)
        made.passes += traffic.passes * machine.lanes.waves


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
    for layout, operand, from_memory in zip((found.a, found.b), op.operands, part.operands, strict=False):
        _operand(machine, made, layout, types.dtype_of(operand.type).storage_bits, from_memory)
    made.chain = max(made.chain, chip.typical["matrix"].latency) + chip.typical["shared"].latency


def _operand(machine: WavesOfChip, made: MachineWork, layout: LinearLayout, bits: int, from_memory: tuple[int, int] | None) -> None:
    """An operand as it stands in memory, along a dim in runs, or in registers; then as the matrix unit wants it."""
    lanes = machine.lanes
    along, run = (len(layout.shape) - 1, 1) if from_memory is None else from_memory
    vector = 1
    while 2 * vector <= min(run, prod(layout.shape) // lanes.threads) and 2 * vector * bits <= 8 * lanes.access_bytes:
        vector *= 2
    copied = vector if from_memory is not None and vector * bits // 8 in lanes.chip.copy_bytes else 0
    traffic = shared_traffic(memory_layout(layout.shape, along, vector, lanes), layout, bits, lanes, copied)
    _through_shared(machine, made, traffic, copied=bool(copied))


def _combine(machine: WavesOfChip, made: MachineWork, part: ProgramPart) -> None:
    """Elements of a lane, then lanes by shuffles, then waves through shared memory, where each reads what all have: as the lowering
    of reductions has it (`simt/lower/reduce.py`). The dims behind the axis take lanes first."""
    chip, lanes = machine.chip, machine.lanes
    each, extent = machine.each(part.elements), part.shape[part.axis]
    inner = prod(part.shape[part.axis + 1 :])
    free = max(1, min(lanes.threads, max(1, part.elements)) // max(1, inner))
    along = min(free, extent)  # threads along the axis
    in_wave = min(along, max(1, lanes.lanes // max(1, inner)))
    steps, waves = log2(in_wave), along // in_wave
    kept = max(1, each // max(1, extent // along))
    words = part.values * max(1, part.bits // 32)
    step = part.steps * chip.typical[max(part.kinds, key=lambda kind: chip.typical[kind].latency, default="integer")].latency
    _combinations(machine, made, part, each - kept if part.what == "reduce" else 2 * each)
    _instructions(machine, made, "shuffle", steps * kept * words)
    _combinations(machine, made, part, steps * kept)
    side = max(0.0, log2(ACCUMULATORS / kept))
    made.chain = (max(0.0, each / kept / 2**side - 1) + side) * step + steps * (chip.typical["shuffle"].latency + step)
    if waves > 1 and lanes.waves > 1:
        reads = ceil(waves * part.bits / 8 / lanes.chip.shared_access_bytes) * kept * part.values
        _instructions(machine, made, "shared", words * kept + reads)
        _combinations(machine, made, part, (waves - 1) * kept)
        made.passes += (words * kept + reads) * lanes.waves
        trips = 1 if part.values <= 2 else part.values
        made.chain += trips * (2 * chip.typical["shared"].latency + 2 * chip.barrier) + (waves - 1) * step
        made.shared = max(made.shared, part.values * kept * lanes.threads * part.bits / 8 / max(1, in_wave))


def _combinations(machine: WavesOfChip, made: MachineWork, part: ProgramPart, count: float) -> None:
    for kind, each in part.kinds.items():
        _instructions(machine, made, kind, each * count)
