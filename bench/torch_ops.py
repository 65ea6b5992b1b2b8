"""PyTorch's tests of its compiler's operators with this backend in the compiler's place: what becomes of each kernel.

    python bench/torch_ops.py test_torchinductor.py --target nvidia-sm80 --sample 330 --seed 1 --keep sm80.jsonl --seconds 300
    python bench/torch_ops.py test_torchinductor.py --target reference --only softmax --loud
    python bench/torch_ops_page.py reference.jsonl sm80.jsonl cdna3.jsonl --tree "COMMIT of …"     # its part of torch.md

The file is PyTorch's test/inductor/test_torchinductor.py; it is read, never written. Its tests of tensors of the host run
unmodified. They ask for `expecttest`. With `--keep`, cases that are there are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import upstream

FOLDER = Path(__file__).parent


def main(said: Sequence[str]) -> int:
    options = _options(said)
    return upstream.gathered(lambda results: _run(options, results), options.keep, options.groups)


def _options(said: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE", help="PyTorch's test_torchinductor.py")
    parser.add_argument("--target", required=True, help="a target of tilefw")
    parser.add_argument("--only", default="", metavar="EXPRESSION", help="pytest's -k")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="run N of the cases, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the results to FILE; cases that are there are not run again")
    parser.add_argument("--seconds", type=float, default=0, metavar="SECONDS", help="start no case after this time")
    parser.add_argument("--time-limit", type=float, default=60, metavar="SECONDS", help="of a processor, for each test")
    parser.add_argument("--groups", type=int, default=40, metavar="N", help="print the N commonest reasons")
    parser.add_argument("--loud", action="store_true", help="show what pytest says")
    return parser.parse_args(said)


def _run(options: argparse.Namespace, results: Path) -> int:
    """Run pytest in a process of its own; its exit status. A case that ends the process gets a result that says so."""
    settings = {
        "results": str(results), "target": options.target, "sample": options.sample, "seed": options.seed, "each": 0, "listed": "",
        "list": False, "shuffle": False, "last": [], "seconds": options.seconds, "time_limit": options.time_limit,
    }
    paths = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ, "UPSTREAM": json.dumps(settings), "TORCH_OPS_FILE": str(options.file.resolve()),
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(paths),
        "TILEFW_TARGET": options.target,
    }
    command = [
        sys.executable, "-m", "pytest", "-p", "torch_ops_session", "-p", "no:cacheprovider", "-q", "--no-header",
        "-c", os.devnull, "-W", "ignore", f"--rootdir={FOLDER}", "-o",
        "python_classes=CompilerTests SweptInputs", "--tb=short", *(["-k", options.only] if options.only else []),
        *([] if options.loud else ["--no-summary"]), str(FOLDER / "torch_ops_cases.py"),
    ]
    said = None if options.loud else subprocess.PIPE
    with tempfile.TemporaryDirectory() as elsewhere:
        run = subprocess.run(command, env=environment, cwd=elsewhere, stdout=said, stderr=subprocess.STDOUT, check=False)
    return upstream.ended(run, results, options.target, (0, 1, 5), kernels=[], fallbacks={})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
