"""Whole models of ONNX at full size on a target, beside onnxruntime: writes `models.md`.

    python bench/models.py FOLDER --target cpu-native [NAME ...]            # minutes a model: every launch is judged
    python bench/models.py FOLDER --target nvidia-sm80 --of small [NAME ...]

FOLDER holds the models (`zoo.py` writes those that are not there) and what earlier runs have measured: the page has all of it.
`--of` takes the small or the tiny models of `zoo.py`, `--sample N` so many programs of a launch where a simulator runs some;
`--unjudged` takes times alone; on a simulator, which has none of the chip's, it takes launches whole and compares the outputs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from reports import table
from zoo import OPSET, SIZES, ZOO

from tilefw.api.errors import KernelError
from tilefw.cli.models import seeded
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.memory import arranged, lives
from tilefw.graph.model_readers import read_graph
from tilefw.graph.sampling import USUAL_PROGRAMS, LaunchSample
from tilefw.graph.session import Session
from tilefw.graph.target_choice import TargetChoice

PAGE = Path(__file__).with_name("models.md")
RUNS = 5


def main(argv: Sequence[str]) -> int:
    parse = argparse.ArgumentParser()
    parse.add_argument("folder", type=Path)
    parse.add_argument("--target", default="cpu-native")
    parse.add_argument("--of", choices=SIZES)
    parse.add_argument("--sample", type=int, default=USUAL_PROGRAMS)
    parse.add_argument("--unjudged", action="store_true", help="times and outputs alone")
    parse.add_argument("names", nargs="*", metavar="NAME")
    args = parse.parse_intermixed_args(argv)
    kept, wrong = args.folder / "fused.json", 0
    for name in args.names or (SIZES[args.of] if args.of else ZOO):
        which = f"{args.of}-{name}" if args.of else name
        try:
            found = measure(_exported(which, args.folder), args.target, args.sample, not args.unjudged)
        except KernelError as error:
            found = {"said": str(error).strip().partition("\n")[0]}
        measured = json.loads(kept.read_text()) if kept.exists() else {}
        measured.setdefault(which, {})[args.target] = found
        kept.write_text(json.dumps(measured, indent=1))
        PAGE.write_text(page(measured), "utf-8")
        print(which, found, flush=True)
        wrong += "said" in found or found["launches"] != found.get("judged", found["launches"])
    return 1 if wrong else 0


def _exported(name: str, folder: Path) -> str:
    """The file of a model; written in a process of its own, in whose path this folder is not (see `zoo.py`)."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, "-P", str(Path(__file__).with_name("zoo.py")), str(folder), name], check=True)
    return str(path)


def measure(path: str, target: str, programs: int, judge: bool) -> dict[str, Any]:
    """One model on one target."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TILEFW_CACHE_DIR"] = cache
        graph, reading = _timed(lambda: read_graph(path, choice=TargetChoice(target)))
        _, cold = _timed(lambda: compile_graph(graph, target))
        plan, warm = _timed(lambda: compile_graph(graph, target))
    inputs = seeded(plan, 0)
    peer = onnxruntime.InferenceSession(path)
    (due, *_), theirs = _best(lambda: peer.run(None, inputs))
    with Session(plan) as session:
        sample = LaunchSample(programs) if session.samples else None
        found, own = _best(lambda: session.run(inputs)) if session.executor == "hw" else (None, None)
        certificate = certified(session, inputs, sample) if judge else None
        outputs = certificate.outputs if certificate is not None else found if found is not None else session.run(inputs)
    output = next(iter(outputs.values()))
    layout = arranged(lives(plan))
    return {
        "nodes": len(onnx.load(path, load_external_data=False).graph.node),
        "launches": len(plan.steps), "kernels": len(plan.kernels),
        "constants": plan.constant_bytes, "arena": layout.nbytes, "reading": reading, "cold": cold, "warm": warm, "run": own,
        "onnxruntime": theirs, "error": float(np.abs(output.astype(np.float64) - due).max()), "magnitude": float(np.abs(due).max()),
        **({} if certificate is None else {
            "judged": sum(launch.ok for launch in certificate.launches),
            "sampled": sum(launch.sampled for launch in certificate.launches), "programs": programs,
            "worst": max((launch.worst for launch in certificate.launches), default=0.0),
        }),
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    found = work()
    return found, time.perf_counter() - begin


def _best(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the seconds of the best of several runs behind a first one."""
    found = work()
    return found, min(_timed(work)[1] for _ in range(RUNS))


def page(measured: dict[str, dict[str, dict[str, Any]]]) -> str:
    """A row for each model and target."""
    rows = [
        [name, size, target, *_cells(one)]
        for name, size in _models() if name in measured for target, one in sorted(measured[name].items())
    ]
    titles = [
        "model", "size", "target", "nodes", "launches (kernels)", "constants, MB", "arena, MB", "s to read", "s to compile",
        "s again", "ms a run", "ms of onnxruntime", "error against it", "within bounds", "by a sample", "error over bound",
    ]
    return "\n".join([
        "# Whole models", "",
        f"Made by `bench/models.py` with onnxruntime {onnxruntime.__version__}: models of PyTorch, TorchVision and transformers",
        f"with random weights, exported to ONNX of opset {OPSET}, batch 1, fp32. *s to compile* is with an empty cache, *s again*",
        f"with what the first time left there; runs are the best of {RUNS}, with the threads that each takes by itself,",
        "onnxruntime's on the processor in the same minute. On a machine that has other work besides, their ratio says more",
        "than either time.",
        "*Within bounds* are the launches whose results lie within the reference interpreter's bounds on the inputs that they had;",
        "*by a sample* are those of them of which a simulator ran so many programs alone, the interpreter the others. Rows without",
        "them were not judged.", "",
        *table(titles, rows), "",
    ])


def _models() -> Iterator[tuple[str, str]]:
    """The names of files, with the sizes of the models in them."""
    for name in ZOO:
        yield name, ZOO[name].size
        yield from ((f"{word}-{name}", models[name].size) for word, models in SIZES.items() if name in models)


def _cells(one: dict[str, Any]) -> list[str]:
    """What a row says of a model on a target."""
    if "said" in one:
        return [one["said"], *[""] * 12]
    return [
        f"{one['nodes']}", f"{one['launches']} ({one['kernels']})", f"{one['constants'] / 1e6:.1f}",
        f"{one['arena'] / 1e6:.2f}", f"{one['reading']:.1f}", f"{one['cold']:.1f}", f"{one['warm']:.1f}",
        "" if one["run"] is None else f"{one['run'] * 1e3:.1f}", f"{one['onnxruntime'] * 1e3:.1f}",
        f"{one['error']:.1e} of {one['magnitude']:.1e}", *_judgement(one),
    ]


def _judgement(one: dict[str, Any]) -> list[str]:
    """What was judged of a run: nothing of one that was timed alone."""
    if "judged" not in one:
        return ["", "", ""]
    sampled = f"{one['sampled']} ({one['programs']})" if one["sampled"] else "0"
    return [f"{one['judged']} of {one['launches']}", sampled, f"{one['worst']:.2f}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
