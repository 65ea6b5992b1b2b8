"""A program made ready for a chip: its variables laid out, its instructions turned into steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilefw.api.garbage_collection import paused
from tilefw.sim.memory.regions import GlobalMemory, Region
from tilefw.sim.memory.spaces import no_space, owners_of
from tilefw.sim.program import Program, SimulatedChip, Variable
from tilefw.sim.steps.prepare import Prepared, prepare
from tilefw.sim.tracking.history import History


@dataclass(slots=True)
class LoadedProgram:
    """A program with its variables laid out at `symbols`. `shared`, `local` and `spaces` (by name) are bytes of static variables.

    `variants` is the program with steps that show their instructions or not, and follow offsets or not, each made when a launch's
    checks first ask for it. `histories` keeps what trackers have found, by the checks that they belong to.
    """

    program: Program
    chip: SimulatedChip
    shared: int
    shared_alignment: int
    local: int
    constants: Region
    symbols: Mapping[str, int]
    spaces: Mapping[str, int] = field(default_factory=dict)
    variants: dict[tuple[bool, bool], Prepared] = field(default_factory=dict)
    histories: dict[tuple[str, ...], History | None] = field(default_factory=dict)

    def steps(self, watch: bool, follow: bool) -> Prepared:
        """The steps; with `watch` those that show their instructions, with `follow` those that follow offsets. Raises CodeError."""
        kind = watch, follow and self.program.promises is not None
        if kind not in self.variants:
            with paused():
                self.variants[kind] = prepare(self.program, self.symbols, *kind, self.chip)
        return self.variants[kind]


def load_program(
    program: Program, chip: SimulatedChip, memory: GlobalMemory, placed: dict[str, int] | None = None
) -> LoadedProgram:
    """Lay out the variables. Raises CodeError, LaunchError (memory), PluginError (TFW0516).

    `placed` keeps the addresses of global variables that entries of one module share; new ones are added to it.
    """
    placed = {} if placed is None else placed
    symbols: dict[str, int] = {} if program.arguments_in_memory else {p.name: p.offset for p in program.parameters}
    ends = dict.fromkeys((*owners_of(chip), "const"), 0)
    dynamic: list[Variable] = []
    initial: list[tuple[int, bytes]] = []
    for variable in program.variables:
        if variable.space == "global":
            if variable.name not in placed:
                placed[variable.name] = _allocate(variable, memory)
            symbols[variable.name] = placed[variable.name]
            continue
        if variable.space == "shared" and not variable.size:
            dynamic.append(variable)
            continue
        if variable.space not in ends:
            raise no_space(chip, variable.space)
        start = ends[variable.space]
        start += -start % max(1, variable.alignment)
        symbols[variable.name] = start
        ends[variable.space] = start + variable.size
        if variable.space == "const" and variable.data is not None:
            initial.append((start, variable.data))
    # Dynamic shared memory begins behind the static variables, at the widest alignment that any access can need.
    alignment = max([16, *(v.alignment for v in dynamic)])
    shared = ends["shared"] + (-ends["shared"] % alignment if dynamic else 0)
    for variable in dynamic:
        symbols[variable.name] = shared
    constants = Region(0, ends["const"], label="constant memory")
    constants.poison = None
    for start, data in initial:
        constants.initialise(start, data)
    spaces = {space.name: ends[space.name] for space in chip.spaces}
    return LoadedProgram(program, chip, shared, alignment, ends["local"], constants, symbols, spaces)


def _allocate(variable: Variable, memory: GlobalMemory) -> int:
    """The address of a new global variable with its initial bytes."""
    handle = memory.allocate(variable.size, label=variable.name, readonly=variable.readonly)
    region = memory.region(handle)
    region.initialise(0, variable.data if variable.data is not None else bytes(variable.size))
    for offset, target in variable.pointers:
        region.initialise(offset, ((region.base + target) % 2**64).to_bytes(8, "little"))
    return region.base
