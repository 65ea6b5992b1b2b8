"""What the checkers of waits and wait states know: read off encoded instructions, by the tables that the simulator runs.

Nothing here comes from `waits` and `wait_states`, so that what is wrong there shows here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from tilefw.api.machine import Begun, Inst, PairRules, Seen
from tilefw.api.sim import Instruction
from tilefw_amd.isa.meaning.binding import merges, reads, writes
from tilefw_amd.isa.meaning.events import issues, needs
from tilefw_amd.isa.meaning.operand_roles import NAMES_BEHIND, Part, vector_results
from tilefw_amd.isa.model import Form, MCInst
from tilefw_amd.isa.registers import COUNT
from tilefw_amd.isa.rows.control import wait_limits
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine import machine_inst
from tilefw_amd.machine.hazards import MATRIX_RULES, RULES, Kind, WaitStateRule, wait_states
from tilefw_amd.machine.pseudo import COMMIT, WAIT

_RULES = {rule.name: rule for rule in (*MATRIX_RULES, *RULES)}
# Effects beyond the simulator's: its race check and its fences see these in other ways.
_LDS = COUNT + len(NAMES_BEHIND)
_VOLATILE = _LDS + 1  # an access that is to be over before the next of its kind
_COPIES = _VOLATILE + 1  # and the numbers behind it: copies to LDS, by how many groups have begun since theirs
_OLDEST = 64  # from here on groups are one: nobody waits for all but so many
_LANES_ONLY = "crossbar"  # goes through the LDS unit and leaves its memory alone


def seen(isa: InstructionSet, inst: Inst) -> Seen:
    """What waits must know of an instruction."""
    if inst.opcode == COMMIT:
        return Seen(renames={_COPIES + age: _COPIES + age + 1 for age in range(_OLDEST)})
    if inst.opcode == WAIT:
        return Seen(needs=frozenset(range(_COPIES + int(str(inst.uses[0])) + 1, _COPIES + _OLDEST + 1)))
    encoded = machine_inst.instruction(isa, inst)
    name = encoded.form.row.name
    if name == "s_waitcnt":
        (counts,) = encoded.operands
        assert isinstance(counts, int)
        return Seen(limits=wait_limits(counts))
    lds = (_LDS,) if name == "s_barrier" else ()
    kept = (_VOLATILE,) if inst.volatile else ()
    needed = frozenset((*needs(encoded), *lds, *kept))
    return Seen(frozenset(reads(encoded)), frozenset(writes(encoded)), needed, _events(encoded, kept))


def _events(encoded: MCInst, kept: tuple[int, ...]) -> tuple[Begun, ...]:
    row = encoded.form.row
    results = _results(encoded)
    merged = results if merges(encoded) else ()
    found: list[Begun] = []
    for issue in issues(encoded, results, merged):
        lds = (_LDS,) if issue.settles and _LANES_ONLY not in row.facts else ()
        lds = (_COPIES,) if "lds dma" in row.facts else lds
        found.append(Begun(issue.queue, issue.order, frozenset((*issue.pending, *lds, *kept)), frozenset(issue.merged)))
    return tuple(found)


def _results(encoded: MCInst) -> tuple[int, ...]:
    """Registers that a memory instruction writes when it has finished."""
    return writes(encoded) if encoded.form.row.unit == "smem" else vector_results(encoded)


def rules(isa: InstructionSet) -> PairRules:
    """The rules of `legal` for one function, whose instructions are encoded once."""

    @functools.cache
    def encoded(inst: Inst) -> MCInst:
        return machine_inst.instruction(isa, inst)

    def under(
        kind: Callable[[WaitStateRule], Kind], part: Callable[[WaitStateRule], Part]
    ) -> Callable[[Inst], dict[object, frozenset[int]]]:
        """The registers that an instruction has to do with, by rule."""

        @functools.cache
        def of_form(form: Form) -> tuple[WaitStateRule, ...]:
            return tuple(rule for rule in _RULES.values() if kind(rule)(form))

        @functools.cache
        def found(inst: Inst) -> dict[object, frozenset[int]]:
            of = encoded(inst)
            parts = {rule.name: frozenset(part(rule)(of)) for rule in of_form(of.form)}
            return {name: registers for name, registers in parts.items() if registers}

        return found

    def needed(name: object, producer: Inst, consumer: Inst) -> int:
        states = _RULES[str(name)].states
        return states if isinstance(states, int) else states(encoded(producer), encoded(consumer))

    @functools.cache
    def states(inst: Inst) -> int:
        of = encoded(inst)
        return wait_states(Instruction(0, "", of.form.mnemonic, of.form.row.unit, row=of))

    leaves = under(lambda rule: rule.first, lambda rule: rule.leaves)
    touches = under(lambda rule: rule.after, lambda rule: rule.accesses)
    return PairRules(leaves, touches, needed, states, isa.chip.matrix_hazards.most)
