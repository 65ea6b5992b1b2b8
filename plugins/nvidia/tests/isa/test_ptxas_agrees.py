"""ptxas 12.9 and the table accept the same opcodes for every chip here, from the same `.version` on."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from chips_here import CHIPS

from isa.assembler import ptxas, refused
from isa.samples import instruction
from tilefw_nvidia.chips import Architecture, Chip, first_version
from tilefw_nvidia.chips.chip import Version
from tilefw_nvidia.isa import Form, OpcodeError, instruction_set
from tilefw_nvidia.isa.rows import forms

pytestmark = pytest.mark.skipif(ptxas() is None, reason="ptxas is not installed: pip install tilefw-nvidia[ptxas]")
A_FORM = 12
# ptxas takes testp without its property, which the manual's syntax demands; no meaning is documented for it.
# Nor does it ask for the .global of an eviction priority, or for the kind of a vote.
UNDOCUMENTED = {"testp.f32", "testp.f64", "vote.sync.pred", "prefetch.L2::evict_last", "prefetch.L2::evict_normal"}
# Nor does it mind a modifier that is written twice, or .ftz of f64.
# The least .version that knows a target, of the targets that ptxas 12.9 has (PTX ISA, "Release Notes").
TARGETS: tuple[tuple[int, Version], ...] = (
    (50, (4, 0)),
    (53, (4, 2)),
    (60, (5, 0)),
    (61, (5, 0)),
    (70, (6, 0)),
    (75, (6, 3)),
    (80, (7, 0)),
    (89, (7, 8)),
    (90, (7, 8)),
    (100, (8, 6)),
)
VERSIONS: tuple[Version, ...] = (
    *((4, n) for n in range(4)),
    (5, 0),
    *((6, n) for n in range(6)),
    *((7, n) for n in range(9)),
    *((8, n) for n in range(9)),
)


def samples(seed: int) -> list[tuple[Form, str, str]]:
    """(form, opcode, instruction): some opcodes of every form but brx.idx, which needs a table beside it. Those of one form stay
    where others come and go."""
    chosen: list[tuple[Form, str, str]] = []
    for form in forms():
        rng = random.Random(f"{seed} {form.pattern} {form.modifiers}")
        opcodes = list(form.opcodes()) if form.base != "brx" else []
        for opcode in rng.sample(opcodes, min(A_FORM, len(opcodes))):
            modifiers = form.match(opcode.split(".")[1:])
            assert modifiers is not None, opcode
            chosen.append((form, opcode, instruction(form, opcode, modifiers)))
    return chosen


def serves(chip: Chip, form: Form, opcode: str) -> bool:
    """Whether the chip has the opcode in this form: others of the same name may be older."""
    try:
        return any(match.form is form for match in instruction_set(chip).lookup(opcode))
    except OpcodeError:
        return False


def by_needs(seed: int) -> dict[tuple[Version, str, Version], list[str]]:
    """Instructions by the version that they need, the first target that has them, and the first version that knows the target."""
    groups: dict[tuple[Version, str, Version], list[str]] = defaultdict(list)
    for form, opcode, text in samples(seed):
        version, sm = form.requires(opcode.split(".")[1:])
        target, known = next(pair for pair in TARGETS if pair[0] >= sm)
        name = form.only[0] if form.only else f"sm_{target}"
        known = first_version(Architecture.parse(name)) or version if form.only else known
        groups[version, name, known].append(text)
    return groups


@pytest.mark.parametrize(("chip", "seed"), [(chip, seed) for seed, chip in enumerate([*CHIPS, CHIPS[0]])], ids=str)
def test_ptxas_accepts_for_a_chip_what_its_instruction_set_has_and_no_more(chip: Chip, seed: int, tmp_path: Path) -> None:
    chosen = samples(seed)
    bad = refused([text for _, _, text in chosen], tmp_path, target=chip.name)
    wrong = [
        (text, bad.get(index, "accepted"))
        for index, (form, opcode, text) in enumerate(chosen)
        if serves(chip, form, opcode) != (index not in bad)
    ]
    assert wrong == []


def test_the_lowest_version_and_target_are_enough(tmp_path: Path) -> None:
    wrong = []
    for (version, target, known), texts in by_needs(3).items():
        stated = max(version, known)
        bad = refused(texts, tmp_path, "{}.{}".format(*stated), target)
        wrong += [(texts[index], stated, target, words) for index, words in bad.items()]
    assert wrong == []


def test_the_version_before_is_not_enough(tmp_path: Path) -> None:
    wrong = []
    for (version, target, known), texts in by_needs(4).items():
        if version > known:
            before = VERSIONS[VERSIONS.index(version) - 1]
            bad = refused(texts, tmp_path, "{}.{}".format(*before), target)
            wrong += [(text, before, target) for index, text in enumerate(texts) if index not in bad]
    assert wrong == []


def test_what_the_table_refuses_ptxas_refuses(tmp_path: Path) -> None:
    """One modifier of a good opcode replaced by another of its row, or left out: where we say no, so does ptxas."""
    rng = random.Random(5)
    texts: list[str] = []
    for form, opcode, text in samples(6):
        words = opcode.split(".")
        if form.requires(words[1:])[1] > 80 or len(words) < 2 or form.base in ("fence", "bar", "barrier"):
            continue
        place = rng.randrange(1, len(words))
        donors = sorted({w for f in forms() if f.base == form.base for item in f.modifiers for w in item.words})
        changed = words[:place] + ([rng.choice(donors)] if rng.random() < 0.5 else []) + words[place + 1 :]
        if ".".join(changed) in UNDOCUMENTED or len(set(changed)) < len(changed) or {"ftz", "f64"} <= set(changed):
            continue
        if "volatile" in changed and any(word.startswith("L2::") for word in changed):  # ptxas takes prefetch sizes there
            continue
        try:
            instruction_set(CHIPS[0]).lookup(".".join(changed))
        except OpcodeError:
            texts.append(text.replace(opcode, ".".join(changed), 1))
    bad = refused(texts, tmp_path)
    assert len(texts) > 300
    accepted = [text for index, text in enumerate(texts) if index not in bad]
    assert accepted == [], "\n".join(accepted)
