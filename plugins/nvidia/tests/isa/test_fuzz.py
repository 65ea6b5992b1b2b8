"""Damaged PTX gives an error of ours or a program, in bounded time, and never anything else."""

from __future__ import annotations

import random

from chips_here import OLDEST

from tilefw.api import CodeError
from tilefw_nvidia import isa

TEXT = """.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.const .align 4 .f32 table[4] = {1.0, 0f40000000, -1.5};
.visible .entry k(
	.param .u64 .ptr .global .align 16 x,
	.param .align 8 .b8 desc[16],
	.param .u32 n
)
.reqntid 128
.minnctapersm 1
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<40>;
	.reg .b64 	%rd<8>;
	.loc	1 9 0                           // a.py:9:0
$L__begin:
	ld.param.b64 	%rd1, [x];
	ld.param.b32 %r1, [n];
	mov.u32 	%r2, %tid.x;
	setp.lt.s32 	%p1, %r2, %r1;
	mul.wide.s32 %rd2, %r2, 16;
	add.s64 %rd3, %rd1, %rd2;
	// begin inline asm
	{
	.reg .pred q;
	setp.ne.b32 q, %r2, 0;
	@q bra.uni out;
	@!%p1 cp.async.cg.shared.global [ %r3 + 0 ], [ %rd3 + 0 ], 0x10, %r28;
	out:
	}
	@%p1 ld.global.v4.b32 { %r4, %r5, %r6, %r7 }, [ %rd3 + 0 ];
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %r8, %r9, %r10, %r11 }, { %r4, %r5, %r6, %r7 },
	{ %r12, %r13 }, { %r14, %r15, %r16, %r17 };
	fma.rn.ftz.f32 %r20, %r8, 0f3F800000, 1.5;
	shfl.sync.bfly.b32 %r21|%p2, %r20, 16, 31, -1;
	bar.sync 	0;
	mov.b64 {%r22, _}, %rd3;
	@%p1 bra $L__begin;
	ret;
}
	.file	1 "/a//b.py"
	.section	.debug_str
	{
$L__info_string0:
.b8 109                                 // string
	}
"""
PIECES = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ";",
    ",",
    ":",
    "@",
    "!",
    "%",
    ".",
    "|",
    "_",
    '"',
    "/*",
    "//",
    "<",
    ">",
    "-",
    "+",
    "0x",
    "0f",
    "9" * 60,
    "\n",
    "\x00",
    "é",
    ".reg",
    ".loc",
    "%r1",
    "%p1",
    "add.s32",
    "_",
    "::",
    "99999999999999999999",
]


def mutated(rng: random.Random) -> str:
    text = TEXT
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(text))
        end = min(len(text), start + rng.choice([0, 1, 1, 2, 5, 20, 200]))
        other = rng.randrange(len(text))
        piece = rng.choice(
            ["", rng.choice(PIECES), text[other : other + rng.randint(1, 30)], rng.choice(PIECES) * rng.randint(1, 300)]
        )
        text = text[:start] + piece + text[end:]
    return text


def outcome(text: str) -> str:
    try:
        module = isa.parse(text, "fuzz.ptx")
        for entry in module.entries:
            isa.program(module, entry, isa.instruction_set(OLDEST))
    except CodeError as error:
        assert error.code in {"TFW0710", "TFW0711", "TFW0712", "TFW0713", "TFW0714", "TFW0715"}
        assert error.place is not None
        assert 1 <= error.place.line <= text.count("\n") + 1
        assert str(error)
        return error.code
    return "program"


def test_mutations_never_escape() -> None:
    rng = random.Random(20261121)
    seen: dict[str, int] = {}
    for _ in range(3000):
        text = mutated(rng)
        code = outcome(text)
        seen[code] = seen.get(code, 0) + 1
    assert outcome(TEXT) == "program"
    assert seen["program"] > 50
    assert {"TFW0710", "TFW0711", "TFW0713", "TFW0714"} <= set(seen)


def test_cut_anywhere_it_is_refused_or_read() -> None:
    for end in range(0, len(TEXT), 7):
        outcome(TEXT[:end])


def test_long_runs_are_refused_or_read() -> None:
    for piece in ("{", "(", "%r1,", "a:", "@", ".", "-", "9", "[", '"', "/*", ".loc 1 1 1 ", "mov.b32 %r1, "):
        outcome(TEXT.replace("bar.sync", piece * 20_000 + "bar.sync"))
