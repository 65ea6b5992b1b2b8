"""`tilefw opt`: reads IR text of any level, checks it, runs a pipeline of passes, and gives the text back.

Passes and dialects of plugins come as data, name to `"module:attribute"`, and are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Any

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline as parse_specs
from xdsl.utils.exceptions import ArgSpecParseError

from tilefw.api.errors import InternalError, IRError, KernelError, Place, UsageError
from tilefw.api.signals import from_signal_handler
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.tile.text.module import parse

# Core's passes and dialects of the levels below, which this room must not import; its own passes are those of the pipeline.
LOWER_PASSES: Mapping[str, str] = {
    "insert-barriers": "tilefw.simt.shared_memory.barriers:InsertBarriers",
    "place-atom-waits": "tilefw.simt.asynchronous.waits:PlaceAtomWaits",
    "pipeline-loops": "tilefw.simt.software_pipeline.loops:PipelineLoops",
    "place-shared": "tilefw.simt.shared_memory.placement:PlaceShared",
    "tile-to-lane": "tilefw.simt.lower.tile_to_lane:TileToLane",
    "unroll-short-loops": "tilefw.simt.software_pipeline.short_loops:UnrollShortLoops",
}
DIALECTS: Mapping[str, str] = {
    "lane": "tilefw.simt.lane:Lane",
    "machine": "tilefw.machine.function_op:Machine",
}
DEFAULT = "default"  # stands for the whole default pipeline


def opt(
    text: str, pipeline: str = "", *, name: str = "<text>", passes: Mapping[str, str] | None = None,
    dialects: Mapping[str, str] | None = None, generic: bool = False, print_after: Any = None,
    target_passes: Mapping[str, ModulePass] | None = None,
) -> str:
    """The text after `pipeline` (`"canonicalize,cse"`, with options as in `"pass{option=1}"`; `default` is the usual order).

    `target_passes`: passes of one target by name, as its backend makes them (`listing.by_name`); they come first.

    The module is verified before and after every pass. Raises IRError for text that is wrong (TFW0401, TFW0402) or that a
    pass broke (TFW0403), UsageError for an unknown pass or a malformed pipeline (TFW0404).
    """
    known = {**_tile_passes(), **LOWER_PASSES, **(passes or {})}
    chosen = parse_pipeline(pipeline, known, target_passes or {})
    module = parse(text, name, _dialects_of(text, {**DIALECTS, **(dialects or {})}))
    manager = PassManager(chosen, verify_each=True, dump=print_after)
    try:
        manager.run(module)
    except (KernelError, InternalError):
        raise
    except Exception as error:
        if from_signal_handler(error):
            raise
        raise InternalError(f"a pass of `{pipeline}` failed on {name}: {type(error).__name__}: {error}") from error
    return printed(module, generic)


def _tile_passes() -> Mapping[str, str]:
    """The passes of the default pipeline by their names."""
    return {each.name: f"{type(each).__module__}:{type(each).__qualname__}" for each in default_passes()}


def parse_pipeline(
    pipeline: str, passes: Mapping[str, str], target_passes: Mapping[str, ModulePass] = MappingProxyType({})
) -> list[ModulePass]:
    """The passes that a pipeline names, `default` among them standing for the usual ones. Raises UsageError (TFW0404)."""
    if not pipeline.strip():
        return []
    try:
        specs = list(parse_specs(pipeline))
        for spec in specs:
            if spec.name not in (DEFAULT, *passes, *target_passes):
                listed = [DEFAULT, *sorted({*passes, *target_passes})]
                more = "" if target_passes else "; `--target T` adds the passes that `tilefw passes --target T` lists"
                raise _wrong(pipeline, f"there is no pass '{spec.name}'", _nearest(spec.name, listed) + more)
        return [made for spec in specs for made in _passes_of(spec, passes, target_passes)]
    except (ArgSpecParseError, ValueError, TypeError) as error:
        reason = str(error).strip().splitlines()[-1].strip() if str(error).strip() else "malformed"
        raise _wrong(pipeline, reason, "a pipeline is `pass,pass{option=value}`") from None


def _passes_of(spec: Any, passes: Mapping[str, str], target_passes: Mapping[str, ModulePass]) -> list[ModulePass]:
    if spec.name == DEFAULT:
        return default_passes()
    if spec.name in target_passes:
        if spec.parameters and spec.name not in passes:
            raise ValueError(f"{spec.name} takes its options from the target")
        if not spec.parameters:
            return [target_passes[spec.name]]
    return [_load_attribute(passes[spec.name]).from_pass_spec(spec)]


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean '{near[0]}'?" if near else f"passes: {', '.join(known)}"


def _wrong(pipeline: str, reason: str, help: str) -> UsageError:
    return UsageError(f"the pipeline `{pipeline}` is wrong: {reason}", "TFW0404", help=help)


def _load_attribute(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def _dialects_of(text: str, dialects: Mapping[str, str]) -> list[Dialect]:
    """The dialects whose name stands in the text before a dot: the others stay unloaded."""
    found: list[Dialect] = []
    for name, target in dialects.items():
        if f"{name}." not in text:
            continue
        try:
            found.append(_load_attribute(target))
        except (ImportError, AttributeError) as error:
            raise IRError(f"the dialect {name} does not load: {error}", "TFW0401", Place("<text>", 1)) from None
    return found


def printed(module: Any, generic: bool = False) -> str:
    """The module as text that `opt` reads back."""
    from io import StringIO

    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue() + "\n"
