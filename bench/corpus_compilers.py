"""One compiler over one collection, in a process of its own, because both are called `triton` by the kernels' modules.

    python corpus_compilers.py triton|tilefw TARGET PATH --results FILE [--plans FILE] [--every N] [--limit SECONDS]
        [--accept-only] [--assemble] [--again]

A line of JSON a kernel: its specialisation, the processor's seconds, or the error. A kernel that ends the process is told by a
line that says only that it was begun; the next process goes on behind it. Kernels of `--plans` are compiled as they were there,
or with the first of several plans that is accepted. `peak` is the process's largest resident set in bytes while the kernel was
compiled, and `grown` by how much it grew meanwhile. With `--accept-only` a compiler stops behind its first stage, where it has
accepted the kernel: a tenth of the time. With `--assemble` Triton makes machine code, so that its assembler judges inline
assembly; what LLVM prints as an error is one. With `--again` each kernel is compiled twice, and the seconds are of the second time.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import corpus_kernels
import corpus_stand_ins
from corpus_signatures import GUESSES, NoSignature, Plan, inner, plan

Compile = Callable[[Any, Plan], object]
_WARM: list[Any] = []
_THREADS = 1024  # of a workgroup, on all chips here
_PATIENCE = 4  # time limits of the processor that a clock on the wall may show


class TooLong(Exception):
    """The kernel's processor time is over."""


class DoesNotFit(Exception):
    """More shared memory or more threads than a workgroup can have."""


class LlvmError(Exception):
    """LLVM printed an error, and Triton went on."""


class Accepted(Exception):
    """Triton's first stage is behind the kernel."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("compiler", choices=("triton", "tilefw"))
    parser.add_argument("target")
    parser.add_argument("path")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--plans", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--accept-only", action="store_true")
    parser.add_argument("--assemble", action="store_true")
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args(argv)
    os.environ["TILEFW_CACHE"] = "0"
    if asked.compiler == "triton":
        compile_one = _triton(asked.target, asked.accept_only, asked.assemble)
    else:
        compile_one = _tilefw(asked.target, asked.accept_only)
    known = _read(asked.plans) if asked.plans else {}
    done = _read(asked.results)
    corpus_stand_ins.card_of_torch()
    corpus_stand_ins.vendor_of(asked.target)
    signal.signal(signal.SIGPROF, _too_long)
    with asked.results.open("a") as results:
        root, only = corpus_kernels.folder(asked.path), known.keys() if asked.plans else None
        for found in corpus_kernels.kernels(root, asked.every, only, done.keys()):
            key = f"{found.file}:{found.name}"
            if key in done or (asked.plans and key not in known):
                continue
            if asked.again:
                _WARM.clear()
            _write(results, {"kernel": key, "begun": True})
            if found.failure:
                _write(results, {"kernel": key, "import": found.failure})
            else:
                tried = _tried(compile_one, found.kernel, known.get(key), asked.limit)
                _write(results, {"kernel": key, **tried})
    return 0


def _read(file: Path | None) -> dict[str, dict[str, Any]]:
    if file is None or not file.exists():
        return {}
    return {line["kernel"]: line for line in map(json.loads, file.read_text("utf-8").splitlines())}


def _write(results: Any, line: dict[str, Any]) -> None:
    results.write(json.dumps(line) + "\n")
    results.flush()


def _too_long(*_: object) -> None:
    raise TooLong("over the time limit")


def _tried(compile_one: Compile, kernel: Any, known: dict[str, Any] | None, limit: int) -> dict[str, Any]:
    """The first specialisation that is compiled, with those refused before it; only the known ones where there are some."""
    refused: list[dict[str, Any]] = []
    try:
        plans = _plans(kernel, known)
    except (NoSignature, OSError) as error:
        return {"skipped": str(error)}
    for made in plans:
        _forget_peak()
        resident, start = _peak(), time.process_time()
        try:
            signal.setitimer(signal.ITIMER_PROF, limit)
            faulthandler.dump_traceback_later(_PATIENCE * limit, exit=True)  # LLVM returns to Python for no signal
            compile_one(inner(kernel), made)
            if not _WARM:  # the first one loads the compiler too, and is compiled once more
                _WARM.append(kernel)
                start = time.process_time()
                compile_one(inner(kernel), made)
            seconds, peak = time.process_time() - start, _peak()
            return {"plan": made.as_json(), "seconds": seconds, "peak": peak, "grown": peak - resident, "refused": refused}
        except Exception as error:
            refused.append({"plan": made.as_json(), "error": _told(error), "seconds": time.process_time() - start})
            if isinstance(error, TooLong):
                break
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.cancel_dump_traceback_later()
    return {**refused[0], "refused": refused}


def _plans(kernel: Any, known: dict[str, Any] | None) -> list[Plan]:
    if known and "plans" in known:
        return [Plan(**words) for words in known["plans"]]
    if known and "plan" in known:
        return [Plan(**known["plan"])]
    made = [plan(kernel, guess) for guess in GUESSES]
    return [one for at, one in enumerate(made) if one not in made[:at]]


def _forget_peak() -> None:
    """The kernel's own counter of the largest resident set starts anew: proc(5), clear_refs."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    status = Path("/proc/self/status").read_text("ascii")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


def _told(error: Exception) -> str:
    while type(error).__name__ == "CompilationError" and isinstance(error.__cause__, Exception):
        error = error.__cause__  # Triton wraps the cause once for each function that is inlined
    code = getattr(error, "code", None)
    return f"{code or type(error).__name__}: {getattr(error, 'message', None) or str(error)}".strip()[:400]


def _tilefw(target: str, accept_only: bool) -> Compile:
    import tilefw
    import tilefw.language as tl
    import tilefw.triton
    from tilefw.runtime import config
    from tilefw.runtime.autotune import Autotuner
    from tilefw.runtime.compilation import compiler, kernel_source, options
    from tilefw.runtime.jit import JITFunction
    from tilefw.runtime.plugins import loader

    tilefw.set_target(target)
    tilefw.triton.install()
    JITFunction.run = Autotuner.run = _launches_nothing  # type: ignore[assignment, method-assign]
    _drop_unknown_names(Autotuner)
    found = loader.find_target(config.resolve(config.settings(target)).target)
    facts = frozenset({"under_2_gib"}) & found.info.wants

    def compile_one(kernel: Any, made: Plan) -> object:
        constexprs = {name: _value(tl, value) for name, value in made.constexprs.items()}
        source = kernel_source.from_jit(kernel, kernel_source.ahead_of_time(made.signature), constexprs)
        request = options.resolve(dict(made.keywords), found.info, facts=facts, keep_levels=False)
        if accept_only:
            return compiler.Compilation(source, found).build()
        return compiler.compile_source(source, found, request, assemble=False)

    return compile_one


def _triton(target: str, accept_only: bool, assemble: bool) -> Compile:
    os.environ.update(TRITON_ALWAYS_COMPILE="1", TRITON_CACHE_DIR=tempfile.mkdtemp(prefix="tilefw-bench-"))
    import library
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.runtime import Autotuner, JITFunction

    import tilefw.triton
    from tilefw.triton import chip as chip_words

    tilefw.triton.sanitize(target)
    chip = next(c for c in (library.SM80, library.GFX942, library.GFX950) if c.target == target)
    shared_bytes = chip_words.max_shared_mem()
    library.stop_at_text(not assemble, chip)
    if accept_only:
        importlib.import_module("triton.knobs").runtime.add_stages_inspection_hook = _stop_at_ttir
    JITFunction.run = Autotuner.run = _launches_nothing
    _drop_unknown_names(Autotuner)

    def compile_one(kernel: Any, made: Plan) -> object:
        constexprs = {name: _value(tl, value) for name, value in made.constexprs.items()}
        signature, hints = {}, {}
        for index, name in enumerate(kernel.arg_names):
            signature[name] = made.signature.get(name, "constexpr")
            if signature[name].startswith("*"):
                hints[(index,)] = [["tt.divisibility", 16], *map(list, chip.hints)]
        source = ASTSource(kernel, signature, constexprs, hints)
        try:
            with _what_llvm_refuses():
                made_code: Any = triton.compile(source, target=GPUTarget(*chip.triton), options=dict(made.keywords))
        except Accepted:
            return None
        needs = made_code.metadata  # Triton itself compares at the launch
        if needs.shared > shared_bytes:
            raise DoesNotFit(f"{needs.shared} bytes of shared memory of {shared_bytes}")
        if needs.num_warps * needs.warp_size > _THREADS:
            raise DoesNotFit(f"{needs.num_warps * needs.warp_size} threads of {_THREADS}")
        return made_code

    return compile_one


@contextmanager
def _what_llvm_refuses() -> Iterator[None]:
    """LLVM prints that it cannot allocate a register for an inline assembly's constraint, and leaves the statement out; Triton
    hands on the code without it. Raises `LlvmError` with the first such line."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").splitlines()
            print(*lines, sep="\n", end="\n" * bool(lines), file=sys.stderr)
    errors = [line for line in lines if line.startswith("error:")]
    if errors:
        raise LlvmError(errors[0])


def _stop_at_ttir(backend: Any = None, stages: Any = None, *_: object, **__: object) -> tuple[str, str] | None:
    """Triton's hook for its stages: the second one says that the first is done."""
    if stages is None:
        return "ttir", "ttir"
    stages["ttgir"] = _accepted
    return None


def _accepted(source: object, metadata: object) -> None:
    raise Accepted


def _launches_nothing(*_: object, **__: object) -> None:
    """In place of a launch: modules of collections run tests while they are imported."""


def _drop_unknown_names(tuner: Any) -> None:
    """Both compilers refuse an autotune key that is no parameter, and with it the modules that import the kernel."""
    begin = tuner.__init__

    def lenient(self: Any, fn: Any, arg_names: Any, configs: Any, key: Any, *more: Any, **keywords: Any) -> None:
        begin(self, fn, arg_names, configs, [name for name in key if name in arg_names], *more, **keywords)

    tuner.__init__ = lenient


def _value(language: Any, value: Any) -> Any:
    return language.dtype(value["dtype"]) if isinstance(value, dict) else value


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    importlib.invalidate_caches()
    sys.exit(main(sys.argv[1:]))
