"""`tilefw opt`: reads IR text of any level, checks it, runs a pipeline of passes, and gives the text back.

Passes and dialects of plugins come as data, name to `"module:attribute"`, and are imported when they are used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from xdsl.ir import Dialect
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ArgSpecParseError

from tilefw.api.errors import InternalError, IRError, KernelError, Place, UsageError
from tilefw.passes.manager import PassManager
from tilefw.tile.text import parse

# What core itself has: the passes of this room, and the dialects of the levels below, which this room must not import.
PASSES: Mapping[str, str] = {
    "canonicalize": "tilefw.passes.canonicalize:CanonicalizePass",
    "cse": "tilefw.passes.cse:CsePass",
    "dce": "tilefw.passes.dce:DcePass",
    "licm": "tilefw.passes.licm:LicmPass",
    "scalarize-carried": "tilefw.passes.scalarize_carried:ScalarizeCarriedPass",
    "structured-access": "tilefw.passes.structured_access:StructuredAccessPass",
    "tile-to-lane": "tilefw.simt.tile_to_lane:TileToLane",
}
DIALECTS: Mapping[str, str] = {
    "lane": "tilefw.simt.lane:Lane",
    "machine": "tilefw.machine.function_op:Machine",
}
DEFAULT = "default"  # stands for the whole default pipeline


def opt(
    text: str, pipeline: str = "", *, name: str = "<text>", passes: Mapping[str, str] | None = None,
    dialects: Mapping[str, str] | None = None, generic: bool = False, print_after: Any = None,
) -> str:
    """The text after `pipeline` (`"canonicalize,cse"`, with options as in `"pass{option=1}"`; `default` is the usual order).

    The module is verified before and after every pass. Raises IRError for text that is wrong (TFW0401, TFW0402) or that a
    pass broke (TFW0403), UsageError for an unknown pass or a malformed pipeline (TFW0404).
    """
    known = {**PASSES, **(passes or {})}
    chosen = parse_pipeline(pipeline, known)
    module = parse(text, name, _dialects_of(text, {**DIALECTS, **(dialects or {})}))
    manager = PassManager(chosen, verify_each=True, dump=print_after)
    try:
        manager.run(module)
    except (KernelError, InternalError):
        raise
    except Exception as error:
        raise InternalError(f"a pass of `{pipeline}` failed on {name}: {type(error).__name__}: {error}") from error
    return _print(module, generic)


def parse_pipeline(pipeline: str, passes: Mapping[str, str]) -> list[ModulePass]:
    """The passes that a pipeline names. Raises UsageError (TFW0404)."""
    if not pipeline.strip():
        return []
    if pipeline.strip() == DEFAULT:
        from tilefw.passes.pipeline import default_passes

        return default_passes()
    available = {name: (lambda target=target: _load(target)) for name, target in passes.items()}
    try:
        return list(PassPipeline.parse_spec(available, pipeline).passes)
    except (ArgSpecParseError, ValueError, TypeError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else "malformed"
        helped = f"passes: {', '.join([DEFAULT, *sorted(passes)])}"
        raise UsageError(f"the pipeline `{pipeline}` is wrong: {reason}", "TFW0404", help=helped) from None


def _load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def _dialects_of(text: str, dialects: Mapping[str, str]) -> list[Dialect]:
    """The dialects whose name stands in the text before a dot: the others stay unloaded."""
    found: list[Dialect] = []
    for name, target in dialects.items():
        if f"{name}." not in text:
            continue
        try:
            found.append(_load(target))
        except (ImportError, AttributeError) as error:
            raise IRError(f"the dialect {name} does not load: {error}", "TFW0401", Place("<text>", 1)) from None
    return found


def _print(module: Any, generic: bool) -> str:
    from io import StringIO

    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue() + "\n"


def main(
    argv: Sequence[str], passes: Mapping[str, str] | None = None, dialects: Mapping[str, str] | None = None, out: Any = None
) -> int:
    """The command line; 0 when all is well. Errors are raised, for the caller to print."""
    parser = argparse.ArgumentParser(prog="tilefw opt", description="passes over IR text of any level")
    parser.add_argument("file", help="the IR text; - for standard input")
    parser.add_argument("-p", "--pipeline", default="", help="comma-separated passes, or `default`")
    parser.add_argument("-o", "--output", help="write here instead of to standard output")
    parser.add_argument("--generic", action="store_true", help="print the generic form")
    parser.add_argument("--print-between-passes", action="store_true", help="print the module after every pass, to standard error")
    args = parser.parse_args(list(argv))
    dump = _print_after if args.print_between_passes else None
    text = _read(args.file)
    result = opt(
        text, args.pipeline, name=args.file, passes=passes, dialects=dialects, generic=args.generic, print_after=dump
    )
    if args.output:
        with open(args.output, "w", encoding="utf-8") as stream:
            stream.write(result)
    else:
        (out or sys.stdout).write(result)
    return 0


def _print_after(name: str, module: Any) -> None:
    print(f"// after {name}\n{module}", file=sys.stderr)


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", "TFW0404") from None
    except UnicodeDecodeError:
        raise IRError(f"{file} is no text", "TFW0401", Place(file, 1)) from None
