"""Whole models by torch.compile with the backend "tilefw": errors against eager, kernels, launches, fallbacks.

    python -P bench/torch_models.py cpu                              # the models of zoo.py, one line of JSON each
    python -P bench/torch_models.py nvidia-sm80 resnet50 gpt2 --small --keep models.jsonl
    python -P bench/torch_models.py --page models.jsonl              # writes torch_models.md

`--small` makes those of `zoo.py` that simulators of machine code run in minutes. `-P` because transformers asks for a package
called `kernels`, and a file of this folder is called so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

# By its path: with this folder on sys.path, transformers would take a file of it for the package `kernels`.
_SPEC = spec_from_file_location("zoo", Path(__file__).with_name("zoo.py"))
assert _SPEC is not None and _SPEC.loader is not None
zoo: Any = sys.modules.setdefault("zoo", module_from_spec(_SPEC))
_SPEC.loader.exec_module(zoo)

# How far a float32 model's output may be from eager's, of its largest element.
BOUND = 1e-4


def main(said: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", help="a target of tilefw")
    parser.add_argument("names", nargs="*", metavar="MODEL", help=f"of {', '.join(zoo.ZOO)}; by default all")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the results to FILE")
    parser.add_argument("--page", nargs="+", type=Path, metavar="FILE", help="write torch_models.md of such files")
    options = parser.parse_args(said)
    if options.page:
        records = [json.loads(line) for file in options.page for line in file.read_text("utf-8").splitlines()]
        Path(__file__).with_suffix(".md").write_text("\n".join(page(records)) + "\n", "utf-8")
        return 0
    if options.target is None:
        parser.error("say a target")
    if unknown := [name for name in options.names if name not in zoo.ZOO]:
        parser.error(f"no model is called {', '.join(unknown)}; they are {', '.join(zoo.ZOO)}")
    library = zoo.torchvision_operators()
    well = True
    for name in options.names or zoo.ZOO:
        model = (zoo.SMALL if options.small else zoo.ZOO)[name]
        record = {"model": name, "size": model.size, "target": options.target, **outcome(model.make, options.target)}
        line = json.dumps(record)
        print(line, flush=True)
        if options.keep:
            with options.keep.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        well = well and not record["said"]
    del library
    return 0 if well else 1


def outcome(make: Callable[[], tuple[Any, tuple[Any, ...]]], target: str) -> dict[str, Any]:
    """One model on one target."""
    import tilefw_torch
    import torch

    torch.manual_seed(0)
    torch._dynamo.reset()
    tilefw_torch.reset_report()
    model, inputs = make()
    model.eval()
    said, error = "", float("nan")
    with torch.no_grad(), tempfile.TemporaryDirectory() as cache:  # of kernels: each model begins with none
        os.environ["TILEFW_CACHE_DIR"] = cache
        due, began = model(*inputs), time.process_time()
        try:
            found = torch.compile(model, backend="tilefw", options={"target": target})(*inputs)
            error = float((found - due).abs().max() / due.abs().max())
            said = "" if error <= BOUND else "wrong"
        except Exception as caught:
            text = str(caught)
            said = text[max(text.find("error["), 0) :].strip().partition("\n")[0][:200]
    report = tilefw_torch.report()
    return {
        "error": error, "kernels": len(report.kernels), "launches": report.launches, "fallbacks": report.fallbacks,
        "seconds": round(time.process_time() - began, 1), "said": said,
    }


def page(records: Sequence[dict[str, Any]]) -> Iterable[str]:
    """The last record of each model on each target."""
    yield from ("# PyTorch's models by torch.compile", "")
    yield "Made by `bench/torch_models.py`: float32 models with random weights, by `torch.compile(model, backend=\"tilefw\")`. The"
    yield "error is the greatest distance from eager PyTorch's output, of its largest element. Seconds are the processor's for"
    yield "tracing, compiling without a warm cache, and one run."
    yield from ("", "| model | size | target | error | kernels | launches | calls in PyTorch | seconds | |", f"|{'---|' * 9}")
    last = {(record["model"], record["target"], record["size"]): record for record in records}
    order = list(zoo.ZOO)
    for record in sorted(last.values(), key=lambda one: (order.index(one["model"]), one["target"])):
        left = sum(record["fallbacks"].values())
        cells = [
            record["model"], record["size"], record["target"], f"{record['error']:.1e}", record["kernels"],
            record["launches"], left, f"{record['seconds']:.0f}", record["said"].replace("|", "\\|") or "right",
        ]
        yield f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
