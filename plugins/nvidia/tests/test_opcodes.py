"""Every opcode that a chip's rules can emit is in its instruction set, and sets the version that the table says."""

from __future__ import annotations

import itertools

import pytest
from chips_here import CHIPS

from tilefw.api import PluginError
from tilefw.api.machine import Function, Slice
from tilefw.api.simt import Code, Const, Element, LaneAccess
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.emit import lowest_version
from tilefw_nvidia.isa.rows import forms
from tilefw_nvidia.select.lanes import PtxChip, traits
from tilefw_nvidia.select.rules import FORM, SMALL

CACHES = ("", ".ca", ".cg", ".cv", ".cs", ".wb", ".wt")
EVICTIONS = ("", "evict_first", "evict_last")
STORES_ONLY, LOADS_ONLY = (".wb", ".wt"), (".ca", ".cv")
ACCESSES = [(8, 1), (16, 1), *itertools.product((32, 64), (1, 2)), (32, 4)]


def code(chip: Chip, fusion: bool) -> Code:
    return Code(Function("k", chip.target), PtxChip(chip, fusion))


def form(name: str) -> str:
    return "w32" if "x" in name else FORM.get(name, "e8")


def operands(key: str, emitter: Code) -> list[Element]:
    """Registers of the key's types, as many as its row takes: tried from four down to one."""
    row, _, names = key.partition(".")
    known = sorted([*FORM, *SMALL, "i8x4", "i16x2", "f16x2", "bf16x2"], key=len, reverse=True)
    name = next(n for n in known if names.startswith(n))
    registers: list[Element] = [emitter.new_register(form(name)) for _ in range(4)]
    return [emitter.new_register("i1"), *registers[:2]] if row == "select" else registers


def emitted_by_rule(chip: Chip, key: str, fusion: bool) -> set[str]:
    """The opcodes of one rule; templates take any number of operands, the others say by TypeError how many they do not take."""
    emitter = code(chip, fusion)
    rule, given = emitter.chip.rules[key], operands(key, emitter)
    for count in (4, 3, 2, 1):
        try:
            rule(emitter, *given[:count])
        except TypeError:
            continue
        break
    return {inst.opcode for inst in emitter.function.insts()}


def emitted_by_chip(described: Chip) -> set[str]:
    """The opcodes of everything that the kit asks of the chip beside rules."""
    emitter = code(described, True)
    chip = emitter.chip
    registers = {f: emitter.new_register(f) for f in chip.forms}
    for f, register in registers.items():
        chip.move(emitter, register, emitter.new_register(f))
    for bits, name in ((8, "w32"), (16, "w32"), (32, "w64")):
        elements = chip.unpack(emitter, bits, registers[name], 2 if bits == 32 else 32 // bits)
        chip.pack(emitter, bits, elements)
    for name in ("f16", "bf16", "packed", "i1"):
        chip.literal(emitter, Const(name, 1))
    for i, name in enumerate([*FORM, *SMALL]):
        chip.parameter(emitter, i, name)
    chip.thread_id(emitter), chip.program_id(emitter, 0), chip.num_programs(emitter, 0)
    predicate = registers["i1"]
    chip.barrier(emitter), chip.branch(emitter, "l"), chip.branch_if(emitter, predicate, "l", True), chip.exit(emitter)
    for access in accesses(emitter, registers["w64"]):
        if access.cache not in STORES_ONLY:
            chip.load(emitter, access)
        if access.cache not in LOADS_ONLY:
            chip.store(emitter, access)
    return {inst.opcode for inst in emitter.function.insts()}


def accesses(emitter: Code, address: Slice) -> list[LaneAccess]:
    hints = [(c, e, False) for c in CACHES for e in EVICTIONS if not (c and e)] + [("", "", True)]
    form_of = {8: "e8", 16: "e16", 32: "w32", 64: "w64"}
    return [
        LaneAccess(tuple(emitter.new_register(form_of[bits]) for _ in range(count)), bits, address, 0, None, 0, *hint)
        for (bits, count), hint in itertools.product(ACCESSES, hints)
    ]


@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize("chip", CHIPS, ids=str)
def test_every_opcode_of_every_rule_is_in_the_chips_table(chip, fusion):
    rules = PtxChip(chip, fusion).rules
    opcodes = set().union(*(emitted_by_rule(chip, key, fusion) for key in rules))
    assert len(opcodes) > 250
    floor = (8, 1) if any("x2" in o and "e4m3" in o for o in opcodes) else (7, 0)  # conversions of fp8 are of 8.1
    assert lowest_version(opcodes, chip) == max(chip.first_version, floor)


@pytest.mark.parametrize("chip", CHIPS, ids=str)
def test_every_opcode_of_the_chip_is_in_its_table(chip):
    opcodes = emitted_by_chip(chip)
    assert {"ld.global.v4.b32", "st.global.wt.u8", "ld.volatile.global.b16", "mov.b64", "prmt.b32"} <= opcodes
    assert lowest_version(opcodes, chip) == max((7, 4), chip.first_version), "eviction priorities are of 7.4"
    assert lowest_version({o for o in opcodes if "L1::" not in o}, chip) == chip.first_version


@pytest.mark.parametrize("chip", CHIPS, ids=str)
def test_an_opcode_that_no_table_knows_is_a_bug_of_the_rules(chip):
    with pytest.raises(PluginError, match=r"TFW0512.*add\.f31"):
        lowest_version(["add.f31"], chip)


@pytest.mark.parametrize("chip", CHIPS[:-1], ids=str)  # the newest has no later one
def test_an_opcode_of_a_later_chip_is_a_bug_of_the_rules(chip):
    later = next(o for f in forms() if not f.on(chip.architecture) and not f.until for o in itertools.islice(f.opcodes(), 1))
    with pytest.raises(PluginError, match=r"TFW0512.*needs sm_"):
        lowest_version([later], chip)


def test_what_a_warp_executes_together_is_moved_nowhere_else():
    """PTX ISA: `.sync`, all threads of the mask or the warp execute the same instruction."""
    together = {o for f in forms() for o in itertools.islice(f.opcodes(), 1) if ".sync" in o}
    assert {o.partition(".")[0] for o in together} >= {"shfl", "vote", "match", "redux", "mma", "ldmatrix"}
    known = {opcode: traits(opcode) for opcode in together}
    assert not [opcode for opcode, found in known.items() if not (found.convergent or found.effects or found.memory)]
