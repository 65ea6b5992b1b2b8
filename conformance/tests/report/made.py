"""A report that no run made: any number of cases and targets, every outcome, numbers as irregular as real ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilefw.kernels.stages import STAGES
from tilefw_conformance.report import records
from tilefw_conformance.report.writing import ReportWriter

TARGETS = ("reference", "nvidia-sm80", "amd-cdna3", "acme-x1", "spatial-wse2", "intel-xe2")
KERNELS = (
    "vector_add", "softmax", "layernorm", "matmul", "attention", "cast", "reduce_tile", "rope", "quantize", "histogram",
    "scan_tile", "transpose", "embedding", "cross_entropy", "gelu_bias_residual", "grouped_matmul", "argmax", "strided_copy",
    "swiglu", "welford",
)
# These move and count; the others compute. An exact result has an error of 0 and a bound of 0.
EXACT = frozenset({"cast", "transpose", "embedding", "strided_copy", "argmax", "histogram", "quantize", "vector_add"})
BUGS = {
    "ragged": ("MASK", "No extent is a multiple of its block.", "Terms past the end are added."),
    "types": ("WIDTH", "Each element type has its own arithmetic and conversions.", "Sums are kept in the operands' type."),
    "special": ("SPECIAL_VALUE", "NaN, infinities, subnormals and signed zeros pass through.", "A NaN disappears in a maximum."),
    "orders": ("STRIDE", "Each operand may lie by rows, by columns or with padding.", "An operand is read as if it lay by rows."),
}
# How often each outcome comes, in a thousand.
ODDS = {
    "pass": 930, "unsupported": 40, "xfail": 6, "over-capacity": 4, "fail": 8, "xpass": 2, "overclaimed": 4, "error": 3,
    "timeout": 3,
}
FACTS = {"reference": ("tilefw", "ref"), "nvidia-sm80": ("NVIDIA", "sim"), "amd-cdna3": ("AMD", "sim")}


def report(
    folder: Path, *, cases: int = 40, targets: Sequence[str] = TARGETS[:3], seed: int = 1, changed: float = 0.0, cut: bool = False,
) -> Path:
    """Write one; `changed` is the part of results that end otherwise than with this seed alone, `cut` leaves the footer out."""
    chance, other = random.Random(seed), random.Random(seed + 1000)
    made = list(itertools.islice(_cases(chance), cases))
    header = records.header([_target(name) for name in targets], level="extended", argv=["--target", "all"])
    with ReportWriter(str(folder), header, made) as writer:
        for case, target in itertools.product(made, targets):
            outcome = chance.choices(list(ODDS), list(ODDS.values()))[0] if target != "reference" else "pass"
            if other.random() < changed:
                outcome = other.choice(list(ODDS))
            writer.add(result(case, target, outcome, chance))
        if not cut:
            writer.finish(321.5)
    return Path(writer.path)


def _target(name: str) -> dict[str, Any]:
    vendor, executor = FACTS.get(name, (name.partition("-")[0].title(), "sim"))
    plugin = None if executor == "ref" else {"distribution": f"tilefw-{name.partition('-')[0]}", "version": "0.1.0"}
    return {
        "name": name, "vendor": vendor, "chip": name.rpartition("-")[2], "executor": executor, "plugin": plugin,
        "capabilities": 180, "capability_digest": records.digest(name)[:16], "expectation_digest": records.digest([])[:16],
        "profiles": ["tile-base", "tile-half", "tile-mma"],
    }


def _cases(chance: random.Random) -> Iterator[dict[str, Any]]:
    for number in itertools.count():
        kernel, flag = KERNELS[number % len(KERNELS)], chance.choice(list(BUGS))
        dtype, n = chance.choice(["fp32", "fp16", "bf16", "int32"]), number * 7 + 1
        bug, description, effect = BUGS[flag]
        yield {
            "kind": "case", "case": f"{kernel}/{flag}/n={n},dtype={dtype}", "level": chance.choice(["core", "core", "extended"]),
            "kernel": kernel, "parameters": {"n": n, "dtype": dtype, "block": 64, "num_warps": chance.choice([1, 2, 4, 8])},
            "seed": 1, "flags": [flag], "notes": {flag: {"bugType": bug, "description": description, "effect": effect}},
            "group": kernel, "requires": [],
        }


def result(case: dict[str, Any], target: str, outcome: str, chance: random.Random) -> dict[str, Any]:
    """A result such as `records.result` makes."""
    compared = outcome in ("pass", "xpass", "fail", "xfail")
    reached = STAGES if compared else STAGES[: chance.randint(1, 5)]
    ratio = chance.betavariate(1.2, 6) if outcome in ("pass", "xpass") else chance.uniform(2, 5e4)
    expected, bound = chance.gauss(0, 3), chance.expovariate(1e6)
    if case["kernel"] in EXACT and outcome in ("pass", "xpass"):
        ratio, expected, bound = 0.0, float(chance.randrange(-128, 128)), 0.0
    stages = [{"name": name, "outcome": "pass", "seconds": round(chance.expovariate(12), 6), "note": ""} for name in reached]
    if outcome not in ("pass", "xpass"):
        stages[-1]["outcome"] = {"unsupported": "unsupported", "overclaimed": "unsupported", "error": "error"}.get(outcome, "fail")
    bad = outcome not in ("pass", "xpass", "xfail", "unsupported", "over-capacity")
    message = f"error[TFW0630]: {case['kernel']} on {target}: out_ptr differs from the reference"
    parameters = " ".join(f"--param {name}={value}" for name, value in case["parameters"].items())
    return {
        "kind": "result", "case": case["case"], "target": target, "level": case["level"], "kernel": case["kernel"],
        "outcome": outcome, "stages": stages, "required": ["float.add.fp32", f"memory.load.{case['parameters']['dtype']}"],
        "missing": ["dot.fp8e5.fp8e5.fp32"] if outcome == "unsupported" else [],
        "error_over_bound": ratio if compared else None,
        "worst": {
            "output": "out_ptr", "index": [chance.randrange(4096)], "value": expected + bound * ratio, "expected": expected,
            "bound": bound,
        } if compared else None,
        "reason": "flushes subnormals, https://example.org/12" if outcome in ("xfail", "xpass") else "",
        "error": {"code": "TFW0630", "message": message} if bad and outcome != "xpass" else None,
        "artifact": "".join(f"  add.f32 %f{n}, %f{n + 1}, %f{n + 2};\n" for n in range(40)) if bad else None,
        "resources": {
            "registers": {"vector": chance.randrange(16, 200)}, "spills": 0, "shared_bytes": chance.randrange(0, 65536, 256),
        },
        "counters": {"instructions": chance.randrange(10_000_000)}, "attempts": 1,
        "seconds": round(sum(stage["seconds"] for stage in stages), 6),
        "reproduce": f"tilefw run {case['kernel']} --target {target} --seed 1 {parameters}",
    }
