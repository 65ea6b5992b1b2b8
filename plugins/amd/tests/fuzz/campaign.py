"""The campaign: so many damaged files, what became of each kind, the slowest attempt and the largest memory.

    python -m fuzz.campaign --count 100000 --seed 1 --report bench/amd-damaged-files.md

with plugins/amd/tests and the root of the repository on PYTHONPATH. `--only KIND:NUMBER` repeats one attempt and shows its trace.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import assembled
from served import ISA

from cdna3.random_inst import random_inst
from fuzz import attempts, damage
from fuzz.attempts import BACKEND
from oracles import corpus
from oracles.chips import GFX942
from tilefw.testing import damaged
from tilefw.testing.damaged import Damage, DamageCampaign, SeenEndings
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.model import Form

# Triton's that are small: what is damaged in them is seen sooner.
TRITON = ("vector_add", "gather_rows", "atomic_histogram", "casts", "transpose")
CODE_BYTES = 64
# A file of some kilobytes may take so much more memory than the process has before: its image (at most 256 MB), and copies of it.
MEMORY_KILOBYTES = 2 << 20
_OURS = """
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, twice@rel32@lo+4
  s_addc_u32 s5, s5, twice@rel32@hi+12
  s_swappc_b64 s[30:31], s[4:5]
  v_and_b32 v0, 63, v0
  s_mov_b32 s6, 4
.Lloop:
  ds_write_b32 v40, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v1, v40
  s_waitcnt lgkmcnt(0)
  s_sub_u32 s6, s6, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 .Lloop
  v_mfma_f32_32x32x8_f16 v[16:31], v[2:3], v[4:5], 0
"""
_FUNCTION = """
  .p2align 2
  .type twice,@function
twice:
  v_lshlrev_b32 v0, 1, v0
  s_setpc_b64 s[30:31]
.Ltwice_end:
  .size twice, .Ltwice_end-twice
"""


@dataclass(frozen=True, slots=True)
class Subjects:
    """Whole files, as bytes and as text."""

    binaries: tuple[bytes, ...]
    texts: tuple[str, ...]


@functools.cache
def subjects() -> Subjects:
    """Ours, and Triton's where they can be had."""
    example = Path(__file__).resolve().parents[4] / "examples" / "machine-code" / "scale.s"
    written = assembled.text(
        assembled.PROLOGUE + _OURS + assembled.store("v1"), functions=_FUNCTION, values=1,
        directives="group_segment_fixed_size 1024; private_segment_fixed_size 16",
    )
    texts = [example.read_text(encoding="utf-8"), written]
    binaries = [BACKEND.to_binary(text, "ours.s") for text in texts]
    triton = corpus.Corpus(GFX942)
    for name in TRITON:
        try:
            item = triton.item(triton.case(name))
        except corpus.TritonAbsentError:
            continue
        assert isinstance(item.code, bytes)
        binaries.append(item.code)
        texts.append(item.text)
    return Subjects(tuple(binaries), tuple(texts))


@functools.cache
def _forms() -> tuple[Form, ...]:
    return tuple(ISA.forms)


def _instruction(rng: random.Random) -> bytes:
    return encode(random_inst(rng.choice(_forms()), rng))


def _file(kind: str, rng: random.Random) -> Callable[[], str]:
    files = subjects().binaries
    data = damage.DAMAGES[kind](rng, rng.choice(files), files)
    return lambda: attempts.whole(data)


def _code(rng: random.Random) -> Callable[[], str]:
    data = attempts.with_code(attempts.random_code(rng, CODE_BYTES, _instruction))
    return lambda: attempts.whole(data)


def _text(rng: random.Random) -> Callable[[], str]:
    texts = subjects().texts
    changed = damage.text(rng, rng.choice(texts), texts)
    return lambda: attempts.read_text(changed)


# Kinds, with their part of all attempts.
DAMAGES: Mapping[str, tuple[float, Damage]] = {
    **{f"file {kind}": (0.1, functools.partial(_file, kind)) for kind in damage.DAMAGES},
    "random code": (0.15, _code),
    "text changed": (0.45, _text),
}
CAMPAIGN = DamageCampaign(DAMAGES, subjects, MEMORY_KILOBYTES)


def report(found: Mapping[str, SeenEndings], seed: int) -> str:
    """The result as Markdown."""
    whole = len(subjects().binaries)
    return "\n".join([
        "# Damaged code objects and assembly text for amd-cdna3, and what comes of them", "",
        f"{damaged.summary(found, seed)}, made of {whole} whole files, {whole - 2} of them Triton's. "
        f"Peak memory of the process: {damaged.peak() >> 10} MB.",
        f"Tracebacks, hangs (over {damaged.HANG_SECONDS} s) and attempts that took more than {MEMORY_KILOBYTES >> 20} GB: "
        f"{len(damaged.failures(found))}.", "",
        "A file is read, disassembled and launched (one workgroup, "
        f"{attempts.BUDGET:,} instructions at most); text is assembled and what comes out read.", "",
        *damaged.tables(found, ["ran", "assembled"], memory=True), "",
    ])


if __name__ == "__main__":
    sys.exit(damaged.main(CAMPAIGN, report, __doc__ or ""))
