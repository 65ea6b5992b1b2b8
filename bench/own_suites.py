"""Collections of Triton kernels by their own unit tests, unmodified, with tilefw behind `import triton`, and how many pass.

    python bench/own_suites.py liger CHECKOUT --target nvidia-sm80 --keep liger-sm80.jsonl --seconds 1200
    python bench/own_suites.py fla CHECKOUT --target reference --tests tests/ops/test_gla.py --numel 4096
    python bench/own_suites_page.py liger=liger-sm80.jsonl fla=fla.jsonl # writes own_suites.md

The checkout is read, never written. Small cases are chosen by a rule: the product of the whole numbers among a case's parameters, a
list of offsets counting by its last, is at most `--numel`; the smallest run first. `--each` thins the cases of a function, drawn by
`--seed`. What a test's own code skips is counted apart. Autotuners take their first configuration that compiles, unless the
environment says TILEFW_AUTOTUNE=all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import upstream


@dataclass(frozen=True)
class Collection:
    """Where a checkout keeps its modules and its tests; `left_out` are tests of other compilers' kernels, or of several devices."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ()


COLLECTIONS = {
    "liger": Collection(
        (".", "src"), ("test/transformers", "test/chunked_loss", "test/triton"), ("*cutedsl*", "*cute_*", "*cutile*"),
    ),
    "fla": Collection((".",), ("tests/ops", "tests/modules", "tests/layers", "tests/models"), ("*tilelang*",)),
    "flaggems": Collection((".", "src"), ("tests",)),
}


def main(said: Sequence[str]) -> int:
    options = _options(said)
    return upstream.gathered(lambda results: _run(options, results), options.keep, options.groups)


def _options(said: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", choices=COLLECTIONS)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="folder of the collection's own tree")
    parser.add_argument("--target", required=True, help="a target of tilefw")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="in the checkout, FILE::TEST too; by default all")
    parser.add_argument("--only", default="", metavar="EXPRESSION", help="pytest's -k")
    parser.add_argument("--numel", type=int, default=1 << 16, help="the largest product of a case's whole numbers")
    parser.add_argument("--each", type=int, default=0, metavar="N", help="at most N cases of each function")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the results to FILE; cases that are there are not run again")
    parser.add_argument("--again", action="store_true", help="with --keep: run those again that have not passed")
    parser.add_argument("--seconds", type=float, default=0, metavar="SECONDS", help="start no case after this time")
    parser.add_argument("--time-limit", type=float, default=60, metavar="SECONDS", help="of a processor, for each test")
    parser.add_argument("--groups", type=int, default=40, metavar="N", help="print the N commonest reasons")
    parser.add_argument("--loud", action="store_true", help="show what pytest says")
    return parser.parse_args(said)


def _run(options: argparse.Namespace, results: Path) -> int:
    """Run pytest in a process of its own; its exit status. A case that ends the process gets a result that says so."""
    checkout, collection = options.checkout.resolve(), COLLECTIONS[options.collection]
    settings = {
        "results": str(results), "target": options.target, "numel": options.numel,
        "each": options.each, "seed": options.seed, "again": options.again, "seconds": options.seconds,
        "time_limit": options.time_limit,
    }
    paths = [str(Path(__file__).parent), *(str(checkout / name) for name in collection.modules)]
    environment = {
        "TILEFW_AUTOTUNE": "first", **os.environ, "UPSTREAM": json.dumps(settings), "TILEFW_TARGET": options.target,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    command = [
        sys.executable, "-m", "pytest", "-p", "own_suites_session", "-p", "no:cacheprovider", "-q", "--no-header",
        "--tb=long" if options.loud else "--tb=short", "--continue-on-collection-errors", "-o", "log_cli=false",
        *(f"--ignore-glob={pattern}" for pattern in collection.left_out),
        *(["-k", options.only] if options.only else []),
        *(options.tests or collection.tests),
    ]
    said = None if options.loud else subprocess.PIPE
    run = subprocess.run(command, env=environment, cwd=checkout, stdout=said, stderr=subprocess.STDOUT, check=False)
    return upstream.ended(run, results, options.target, (0, 1, 5))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
