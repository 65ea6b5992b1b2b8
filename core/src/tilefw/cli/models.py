"""Whole models on the command line: `tilefw run MODEL`, `tilefw compile MODEL -o FILE.tfm`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import execution
from tilefw.cli.output import print_json, write_file
from tilefw.graph.model_readers import PLAN_SUFFIX

if TYPE_CHECKING:
    import numpy as np

    from tilefw.graph.certificate import Certificate
    from tilefw.graph.plan import ModelPlan

ARRAY_FILE_LIMIT = 1 << 34  # bytes of all arrays of one file


def compile_model(path: str, target: str | None, output: str | None) -> int:
    """Write the model's plan for a target to a file."""
    if output is None or not output.endswith(PLAN_SUFFIX):
        raise UsageError(f"a model is compiled to a file `*{PLAN_SUFFIX}`", "TFW0917", help=f"add -o MODEL{PLAN_SUFFIX}")
    from tilefw.graph import plan_file
    from tilefw.graph.model_readers import read_plan

    plan = read_plan(path, target)
    try:
        digest = plan_file.save(plan, output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}", code="TFW0913") from None
    print(_summary(_facts(plan)), file=sys.stderr)
    print(f"{output}: {digest}", file=sys.stderr)
    return 0


def run_model(args: argparse.Namespace) -> int:
    """Run a model on arrays of a file, or on seeded ones; exit code 1 where a launch is out of its bounds."""
    from tilefw.graph.certificate import certified
    from tilefw.graph.model_readers import read_plan
    from tilefw.graph.session import Session

    begun = time.perf_counter()
    options = execution(args)
    plan = read_plan(args.kernel, args.target, options.get("executor"))
    inputs = _arrays(args.input) if args.input else seeded(plan, args.seed or 0)
    made = time.perf_counter()
    certificate: Certificate | None = None
    with Session(plan, **options) as session:
        if args.check:
            certificate = certified(session, inputs)
            outputs = dict(certificate.outputs)
        else:
            outputs = session.run(inputs)
        executor, counters = session.executor, session.counters
    seconds = {"prepare": made - begun, "run": time.perf_counter() - made}
    if args.out:
        _write_arrays(args.out, outputs)
    fields = {
        "model": args.kernel, "target": plan.target, "executor": executor, **_facts(plan), "seconds": seconds,
        "cycles": counters.get("cycles"), "cycles_predicted": counters.get("cycles_predicted"),
        "outputs": {name: {"dtype": plan.outputs[name].dtype, "shape": list(array.shape)} for name, array in outputs.items()},
        "verdict": None if certificate is None else "pass" if certificate.ok else "fail",
        "certificate": None if certificate is None else _certificate_to_json(certificate),
    }
    if args.json:
        print_json("run-model", fields)
    else:
        print(_render(fields, plan, outputs, certificate))
    return 0 if certificate is None or certificate.ok else 1


def seeded(plan: ModelPlan, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs where nobody gave any: normal numbers, integers 0 and 1, truth values, all from the seed."""
    import numpy as np

    from tilefw.api.dtypes import dtype
    from tilefw.kernels.formats import array_dtype, encode

    rng = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, tensor in plan.inputs.items():
        if dtype(tensor.dtype).is_float:
            arrays[name] = encode(rng.standard_normal(tensor.shape), tensor.dtype).reshape(tensor.shape)
        else:
            arrays[name] = rng.integers(0, 2, tensor.shape).astype(array_dtype(tensor.dtype))
    return arrays


def _arrays(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an `.npz` file by name. Raises UsageError TFW0364 for any other file."""
    import zipfile

    import numpy as np

    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > ARRAY_FILE_LIMIT:
            raise ValueError(f"its arrays have {size:,} bytes")
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as error:  # whatever NumPy, zipfile and the decompressors meet
        raise UsageError(f"{path} is no file of arrays: {error}", code="TFW0364", help="write it with numpy.savez") from None


def _write_arrays(path: str, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    import io
    import zipfile

    import numpy as np

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:  # numpy.savez has parameters that an output may be called like
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    write_file(path, made.getvalue())


def _facts(plan: ModelPlan) -> dict[str, Any]:
    from tilefw.graph.memory import arranged, lives

    layout = arranged(lives(plan))
    return {
        "launches": len(plan.steps), "links": [[one.first, one.count, one.ended] for one in plan.links],
        "kernels": len(plan.kernels), "constant_bytes": plan.constant_bytes,
        "arena_bytes": layout.nbytes, "least_arena_bytes": layout.least,
    }


def _summary(facts: Mapping[str, Any]) -> str:
    return (
        f"{facts['launches']} launches of {facts['kernels']} kernels, constants {facts['constant_bytes']:,} bytes, "
        f"arena {facts['arena_bytes']:,} bytes (at least {facts['least_arena_bytes']:,})"
    )


def _render(
    fields: dict[str, Any], plan: ModelPlan, outputs: dict[str, np.ndarray[Any, Any]], certificate: Certificate | None
) -> str:
    headline = {None: "ran ", "pass": "pass", "fail": "FAIL"}[fields["verdict"]]
    lines = [f"{headline}  {fields['model']} on {fields['target']} ({fields['executor']})", f"  {_summary(fields)}"]
    lines += [f"  {line}" for line in _linked(plan)]
    if fields["cycles"] is not None:
        predicted = fields["cycles_predicted"]
        lines.append(f"  {fields['cycles']:,} cycles" + ("" if predicted is None else f", {predicted:,} predicted"))
    lines += [f"  {name}: {plan.outputs[name].dtype}{list(array.shape)}" for name, array in outputs.items()]
    lines.append("  seconds: " + ", ".join(f"{name} {value:.3f}" for name, value in fields["seconds"].items()))
    if certificate is None:
        return "\n".join([*lines, "  unjudged: --check launches compares every launch with the reference"])
    worst = max(certificate.launches, key=lambda launch: launch.worst, default=None)
    wrong = [launch for launch in certificate.launches if not launch.ok]
    lines.append(f"  {len(certificate.launches) - len(wrong)} of {len(certificate.launches)} launches within their bounds")
    if worst is not None:
        lines.append(f"  largest error over bound {worst.worst:.3g}, in {worst.label}")
    lines += [f"  {name}, linked and unlinked: {c}" for name, c in certificate.linked.items() if not c.ok]
    for name, error in certificate.measured.items():
        lines.append(f"  {name}: {error.absolute:.3g} from the reference's run as measured, of at most {error.magnitude:.3g}")
    for launch in wrong:
        lines += [f"  {launch.label} ({launch.kernel}), {buffer}: {c}" for buffer, c in launch.comparisons.items() if not c.ok]
    return "\n".join(lines)


def _linked(plan: ModelPlan) -> list[str]:
    """Which launches are one program."""
    found = [f"{link.count} launches from {plan.steps[link.first].label} on are one program" for link in plan.links]
    return [line + (f"; the next is not: {link.ended}" if link.ended else "") for line, link in zip(found, plan.links, strict=True)]


def _certificate_to_json(certificate: Certificate) -> dict[str, Any]:
    return {
        "launches": [
            {"label": launch.label, "kernel": launch.kernel, "ok": launch.ok, "error_over_bound": launch.worst}
            for launch in certificate.launches
        ],
        "measured": {
            name: {"absolute": error.absolute, "magnitude": error.magnitude} for name, error in certificate.measured.items()
        },
    }
