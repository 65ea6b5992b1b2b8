"""Launches of whole models, and the bytes that these are given, beside those of PyTorch's compiler: writes `graph_fusion.md`.

    python -P bench/graph_fusion.py FOLDER [NAME ...]     # a minute or two a model; nothing is launched

FOLDER has the models, as `models.py` has it, and what earlier runs have counted. PyTorch's compiler writes its kernels for the same
model in PyTorch (`zoo.py`), with the backend of `frontends/torch`. A launch is counted with the whole of each tensor that it is
given, by the same rule on both sides.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))  # `-P` leaves it out

from reports import table
from zoo import ZOO, export, torchvision_operators

sys.path.pop()  # transformers asks for a package called `kernels`, and a file of this folder is called so

from tilefw.graph.kernel_graph import ModelTensor
from tilefw.graph.model_readers import read_graph

PAGE = Path(__file__).with_name("graph_fusion.md")


def main(argv: Sequence[str]) -> int:
    parse = argparse.ArgumentParser()
    parse.add_argument("folder", type=Path)
    parse.add_argument("names", nargs="*", metavar="NAME")
    parse.add_argument("--inductor", action="store_true", help="PyTorch's compiler alone, of one model, as JSON")
    args = parse.parse_intermixed_args(argv)
    if args.inductor:
        print(json.dumps(_inductor(args.names[0])))
        return 0
    kept = args.folder / "fusion.json"
    for name in args.names or ZOO:
        found = {"ours": _ours(name, args.folder), "inductor": _inductor_alone(name, args.folder)}
        counted = {**(json.loads(kept.read_text()) if kept.exists() else {}), name: found}
        kept.write_text(json.dumps(counted, indent=1))
        PAGE.write_text(page(counted), "utf-8")
        print(name, found, flush=True)
    return 0


def _ours(name: str, folder: Path) -> dict[str, Any]:
    counts = {}
    for word, fuse in (("fused", True), ("apart", False)):
        calls = read_graph(export(name, folder), fuse=fuse).calls
        given = [argument for call in calls for argument in call.arguments.values() if isinstance(argument, ModelTensor)]
        counts[word] = {"launches": len(calls), "bytes": sum(tensor.nbytes for tensor in given)}
    return counts


def _inductor_alone(name: str, folder: Path) -> dict[str, Any]:
    """In a process of its own: the compiler's settings are of the process."""
    words = [sys.executable, "-P", __file__, str(folder), name, "--inductor"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def _inductor(name: str) -> dict[str, Any]:
    """What PyTorch's compiler launches for a model, without launching it: its kernels' results are wanted by nobody here."""
    import torch
    from tilefw_torch import report
    from tilefw_torch.inductor_kernel import InductorKernel

    library = torchvision_operators()
    counts = {"launches": 0, "bytes": 0}

    def counted(self: InductorKernel, *args: Any, stream: Any = None, **keywords: Any) -> None:
        counts["launches"] += 1
        counts["bytes"] += sum(one.numel() * one.element_size() for one in args if isinstance(one, torch.Tensor))

    InductorKernel.run = counted
    torch.manual_seed(0)
    model, inputs = ZOO[name].make()
    with torch.no_grad():
        torch.compile(model.eval(), backend="tilefw", options={"target": "reference"})(*inputs)
    del library
    return {**counts, "left": sum(report().fallbacks.values())}


def page(counted: dict[str, dict[str, Any]]) -> str:
    """A row for each model."""
    rows = []
    for name in (name for name in ZOO if name in counted):
        ours, apart, theirs = counted[name]["ours"]["fused"], counted[name]["ours"]["apart"], counted[name]["inductor"]
        rows.append([
            name, f"{apart['launches']}", f"{ours['launches']}", f"{theirs['launches']}", f"{theirs['left']}",
            f"{apart['bytes'] / 1e6:.1f}", f"{ours['bytes'] / 1e6:.1f}", f"{theirs['bytes'] / 1e6:.1f}",
            ", ".join(word for word in ("launches", "bytes") if ours[word] > theirs[word] + theirs["left"] * (word == "launches")),
        ])
    titles = [
        "model", "launches, a node each", "launches, fused", "of PyTorch's compiler", "left to PyTorch", "MB, a node each",
        "MB, fused", "MB of PyTorch's compiler", "where PyTorch's compiler has fewer",
    ]
    return "\n".join([
        "# Launches of whole models, beside those of PyTorch's compiler", "",
        "Made by `bench/graph_fusion.py`: the models of `bench/zoo.py`, read from ONNX by `tilefw run`'s reader, and compiled by",
        "`torch.compile(model, backend=\"tilefw\")` of `frontends/torch`. *MB* are the bytes of all tensors that the launches are",
        "given, each tensor whole, once a launch. *Left to PyTorch* are operators for which its compiler writes no kernel: their",
        "bytes are not counted.", "",
        *table(titles, rows), "",
    ])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
