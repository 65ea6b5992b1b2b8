"""A parsed entry made into a program for the simulator kit: every statement bound to its row and its meaning closed over."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from tilefw.api.errors import CodeError, Place
from tilefw.api.sim import Await, Guard, Instruction, Program, ProgramParameter, Sink, Variable
from tilefw_nvidia.chips import first_version
from tilefw_nvidia.chips.versions import LAST_RELEASES, is_release
from tilefw_nvidia.isa.meaning.binding import Binding, MismatchError, adapted
from tilefw_nvidia.isa.meaning.calls import inlined
from tilefw_nvidia.isa.meaning.names import Names
from tilefw_nvidia.isa.set import InstructionSet, Match, OpcodeError
from tilefw_nvidia.isa.text.source import NAMES, NOT_SERVED, OPERANDS, VERSION
from tilefw_nvidia.isa.text.syntax import Location, PtxFunction, PtxModule, PtxVariable, Statement

_SPACES = re.compile(r"\s+")
_MAX_INLINED = 50  # a chain of .loc that is longer is taken for circular


def program(module: PtxModule, entry: str, instructions: InstructionSet) -> Program:
    """The entry called `entry`, decoded for a chip. Raises CodeError (TFW0711..TFW0715) at the first statement that means nothing
    there, and at a `.target` whose code does not run there."""
    check_target(module, instructions)
    return _Decoder(module, inlined(module, module.entries[entry]), instructions).program()


def check_target(module: PtxModule, instructions: InstructionSet) -> None:
    """Raise CodeError (TFW0715) where the module's `.version` is no release of PTX, where the chip does not run code for its
    `.target`, and where the `.version` has no such target (PTX ISA, ".version", ".target")."""
    chip, target = instructions.chip, module.target
    _check_release(module)
    first = first_version(module.architecture)
    start = module.source.code.find(target, module.source.code.find(".target"))
    if not module.architecture.runs_on(chip.architecture):
        raise module.source.refusal(
            f"this module's .target is {target}, which {chip.name} does not run", start, start + len(target), code=VERSION,
            note="code runs on its own architecture and later ones; that of a target with a suffix on no other",
            help=f"compile it for {chip.name}, or take a target of {target}",
        )
    if first is not None and module.version < first:
        need, have = (".".join(map(str, version)) for version in (first, module.version))
        message = f".target {target} needs .version {need}; this module has {have}"
        raise module.source.refusal(message, start, start + len(target), code=VERSION)


def _check_release(module: PtxModule) -> None:
    if is_release(module.version):
        return
    major, minor = module.version
    written = f"{major}.{minor}"
    start = module.source.code.find(written)
    newest = max(LAST_RELEASES)
    raise module.source.refusal(
        f".version {written} is not a release of PTX that this plugin knows", start, start + len(written), code=VERSION,
        note=f"the newest that it knows is {newest}.{LAST_RELEASES[newest]}",
    )


class _Decoder:
    def __init__(self, module: PtxModule, function: PtxFunction, instructions: InstructionSet) -> None:
        self.module = module
        self.instructions = instructions
        self.target = module.architecture
        self.source = module.source
        self.function = function
        self.names = Names(module, function, instructions.specials)
        self.places: dict[Location, Place | None] = {}

    def program(self) -> Program:
        self._check_one_name_a_variable()
        function = self.function
        instructions = [self._instruction(index, statement) for index, statement in enumerate(function.statements)]
        most = function.directives.get("maxntid")
        return Program(
            name=function.name,
            instructions=instructions,
            registers=self.names.widths,
            register_names=self.names.spelling,
            parameters=tuple(ProgramParameter(p.name, p.offset, p.size, p.alignment, p.pointer) for p in function.parameters),
            variables=tuple(self._variable(v) for v in [*self.module.variables.values(), *function.variables]),
            required_workgroup=function.required_workgroup,
            max_workgroup=prod(most) if most else None,
            cluster=self._cluster(function),
        )

    def _cluster(self, function: PtxFunction) -> tuple[int, int, int]:
        """Workgroups of a cluster (PTX ISA, "Cluster Dimension Directives")."""
        sizes = (*function.directives.get("reqnctapercluster", ()), 1, 1, 1)
        return sizes[0], sizes[1], sizes[2]

    def _variable(self, variable: PtxVariable) -> Variable:
        space = "local" if variable.space == "param" else variable.space  # what a call passes is memory of the thread
        place = self.source.place(variable.start, variable.start + len(variable.name))
        return Variable(variable.name, space, variable.size, variable.alignment, variable.data, place)

    def _check_one_name_a_variable(self) -> None:
        """Programs know variables by name, so the scopes of one function may not reuse one."""
        seen = {p.name for p in self.function.parameters} | set(self.module.variables)
        for variable in self.function.variables:
            if variable.name in seen:
                raise self.source.refusal(
                    f"{variable.name} hides another variable of that name, which is not served yet", variable.start, code=NOT_SERVED
                )
            seen.add(variable.name)

    def _instruction(self, index: int, statement: Statement) -> Instruction:
        match, binding = self._bind(statement)
        meaning, flow = self._meaning(statement, match, binding)
        asynchrony = match.form.asynchrony
        facts = {} if asynchrony is None else asynchrony(binding.modifiers, binding.sources)
        return Instruction(
            index=index,
            text=_SPACES.sub(" ", self.source.code[statement.start : statement.end]).rstrip("; "),
            mnemonic=statement.opcode,
            unit=match.form.unit,
            meaning=meaning,
            sources=tuple(binding.sources),
            destinations=tuple(binding.destinations) or ((Sink(1),) if isinstance(flow, Await) else ()),
            guard=self._guard(statement),
            flow=flow,
            code=self.source.place(statement.start, statement.end),
            source=self._place(statement.location),
            row=match.form,
            **facts,
        )

    def _bind(self, statement: Statement) -> tuple[Match, Binding]:
        """The first form that the opcode and the operands fit; else the error of the form that came nearest."""
        try:
            matches = self.instructions.lookup(statement.opcode)
        except OpcodeError as error:
            raise self._opcode_error(statement, error) from None
        nearest: MismatchError | None = None
        for match in matches:
            try:
                binding = Binding(match.form, match.modifiers, self.names, statement.scope).bind(statement.operands)
            except MismatchError as error:
                if nearest is None or error.fit > nearest.fit:
                    nearest = error
                continue
            self._check_version(statement, match)
            return match, binding
        assert nearest is not None
        raise self._error(statement, f"{statement.opcode}: {nearest}", NAMES if nearest.undeclared else OPERANDS)

    def _meaning(self, statement: Statement, match: Match, binding: Binding) -> tuple[Any, Any]:
        """The row's meaning for these constants, made once for each set of them, and what flow it has instead."""
        if (message := statement.stops) is not None:
            return (lambda lanes: lanes.trap(message)), None
        modifiers, known = binding.modifiers, match.modifiers.get
        changed = [(k, v if v.__class__ is not dict else tuple(v.items())) for k, v in modifiers.items() if v != known(k)]
        key = tuple(sorted(changed))
        made = match.meanings.get(key) if not match.form.flow else None
        if made is None:
            try:
                made = match.form.meaning(modifiers, self.instructions.chip)
            except ValueError as error:
                raise self._error(statement, f"{statement.opcode}: {error}", OPERANDS) from None
            if not match.form.flow:
                match.meanings[key] = made
        if not match.form.flow:
            return adapted(made, binding.source_adapters, binding.destination_adapters), None
        if isinstance(made, tuple):  # a wait: what is asked, and the flow
            return adapted(made[0], binding.source_adapters, binding.destination_adapters), made[1]
        if binding.source_adapters:
            raise self._error(statement, "a negated predicate of a barrier is not served yet", NOT_SERVED)
        return None, made

    def _guard(self, statement: Statement) -> Guard | None:
        if statement.guard is None:
            return None
        found = self.names.register(statement.guard.text, statement.scope)
        if found is None:
            raise self._error(statement, f"{statement.guard.text} is not declared", NAMES)
        if found[1].kind != "predicate":
            raise self._error(statement, f"{statement.guard.text} is .{found[1].name}; a guard is a predicate", OPERANDS)
        return Guard(found[0], statement.guard.negated)

    def _check_version(self, statement: Statement, match: Match) -> None:
        module = self.module
        if module.version < match.version:
            need, have = (".".join(map(str, v)) for v in (match.version, module.version))
            raise self._error(statement, f"{statement.opcode} needs .version {need}; this module has {have}", VERSION)
        if not match.on(self.target):
            needed = " or ".join(match.form.only) or f"sm_{match.since}"
            raise self._error(statement, f"{statement.opcode} needs {needed}; this module's .target is {module.target}", VERSION)

    def _opcode_error(self, statement: Statement, error: OpcodeError) -> CodeError:
        start = self._opcode_start(statement)
        at = statement.opcode.find(error.word) if error.word else 0
        end = start + at + (len(error.word) or len(statement.opcode))
        return self.source.refusal(str(error), start + at, end, code=error.code, help=error.help)

    def _opcode_start(self, statement: Statement) -> int:
        skip = statement.start if statement.guard is None else statement.start + 1 + len(statement.guard.text)
        return self.source.code.find(statement.opcode, skip)

    def _error(self, statement: Statement, message: str, code: str) -> CodeError:
        return self.source.refusal(message, statement.start, statement.end - 1, code=code)

    def _place(self, location: Location | None) -> Place | None:
        """The user's own line, with the calls that it was inlined through."""
        if location is None or location.line == 0:
            return None
        place = self.places.get(location)
        if place is None:
            chain = [location]
            while (outer := chain[-1].inlined_at) is not None and len(chain) < _MAX_INLINED:
                chain.append(outer)
            for each in chain[::-1]:
                place = self._own_place(each, place)
            self.places[location] = place
        return place

    def _own_place(self, location: Location, caller: Place | None) -> Place:
        file = self.module.files.get(location.file, f"file {location.file}")
        name = location.function
        function = self.module.strings.get(name, name if name in self.module.functions else "")
        return Place(file, location.line, location.column, function=function, caller=caller)
