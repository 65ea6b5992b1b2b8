"""A digest of the machine code of every library kernel and of random programs, to show that a change left it as it was.

    python bench/code_digest.py --out before.json                # on one tree
    python bench/code_digest.py --out after.json --against before.json   # on the other: exit code 1 where code differs

Code is compared as assembly text without places in source files: those move with every edit of a kernel's file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

TARGETS = ("nvidia-sm80", "amd-cdna3", "amd-cdna4", "spatial-sdm1")
DTYPES = ("fp16", "bf16", "fp32")
_PLACES = re.compile(r'^\s*\.(loc|file)\b.*\n|"[^"]*\.py"|[\w./-]+\.py(:\d+)*', re.MULTILINE)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--target", action="append", choices=TARGETS)
    asked = parser.parse_args(argv)
    os.environ["TILEFW_CACHE"] = "0"
    digests = {name: digest for target in asked.target or TARGETS for name, digest in _digests(target, asked.programs)}
    asked.out.write_text(json.dumps(digests, indent=0, sort_keys=True), "utf-8")
    whole = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
    print(f"{len(digests)} pieces of machine code, digest {whole[:16]}")
    return 0 if asked.against is None else _compared(json.loads(asked.against.read_text("utf-8")), digests)


def _compared(before: dict[str, str], after: dict[str, str]) -> int:
    differing = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    print(f"{len(before.keys() & after.keys())} in both, {len(differing)} differ", *differing, sep="\n  ")
    return 1 if differing else 0


def _digests(target: str, programs: int) -> Iterator[tuple[str, str]]:
    from tilefw.testing.programs import compiled, numbered

    for name, parameters in _works():
        yield f"{target} {name} {json.dumps(parameters)}", _digest(lambda n=name, p=parameters: _library(n, p, target))
    for index in range(programs):
        yield f"{target} program {index}", _digest(lambda i=index: compiled(numbered(16, i), target))


def _works() -> Iterator[tuple[str, dict[str, str]]]:
    """Every library kernel with its defaults, and in each type that it may take."""
    from tilefw.kernels.index import KERNELS

    for name, info in KERNELS.items():
        yield name, {}
        if any(parameter.name == "dtype" for parameter in info.parameters):
            yield from ((name, {"dtype": dtype}) for dtype in DTYPES)


def _digest(make) -> str:
    """The digest of what `make` compiles; what is refused has its error's code for a digest."""
    from tilefw.api.errors import KernelError

    try:
        artifact = make()
    except KernelError as error:
        return f"refused {error.code}"
    return hashlib.sha256(_PLACES.sub("", str(artifact.text)).encode()).hexdigest()


def _library(name: str, parameters: dict[str, str], target: str):
    import numpy as np

    from tilefw.kernels.reference import typed
    from tilefw.kernels.spec import load
    from tilefw.runtime.arguments.array_facts import facts_of
    from tilefw.runtime.arguments.bound_launch import launch_of
    from tilefw.runtime.compilation import compiler, kernel_source, options, pass_run
    from tilefw.runtime.jit import specialize
    from tilefw.runtime.plugins.loader import find_target

    spec, chosen = load(name), find_target(target)
    launch = spec.prepare(spec.resolve(parameters), np.random.default_rng(0))
    given = {**{key: typed(value) for key, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, values = specialize(spec.kernel, {p.name: given[p.name] for p in spec.kernel.params})
    source = kernel_source.from_jit(spec.kernel, signature, constexprs)
    request = options.resolve(
        launch.keywords, chosen.info, facts=facts_of(chosen.info, values), launch=launch_of(chosen.info, values, launch.grid)
    )
    return compiler.compile_source(source, chosen, request, assemble=True, watch=pass_run.Watch()).artifact


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
