"""Launch keywords: the closed set that shapes code, checked and overlaid on a target's defaults."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tilefw.api.backend import CompileOptions
from tilefw.api.errors import CapacityError, LaunchError
from tilefw.api.launch import LaunchArguments
from tilefw.api.target import TargetInfo
from tilefw.runtime.config import verify_code
from tilefw.runtime.names import suggest

# Keywords of a launch that choose where and how to execute, not what code is made.
EXECUTION_KEYWORDS = ("target", "executor", "checks", "budget", "numerics", "seed", "stream")


class LaunchKeywordError(LaunchError, AssertionError):
    """A launch keyword's value is out of range. Programs written for Triton catch Python's own AssertionError."""


def _power_of_two(value: Any) -> str | None:
    if not _is_int(value) or value < 1 or value & (value - 1):
        return "a power of 2"
    return None


def _positive_int(value: Any) -> str | None:
    return None if _is_int(value) and value >= 1 else "a positive whole number"


def _count_or_none(value: Any) -> str | None:
    return None if value is None else _positive_int(value) and "a positive whole number or None"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "True or False"


def _python_number(value: Any) -> Any:
    """A whole number or a truth value of another library (NumPy's) as Python's own; anything else as it is."""
    if isinstance(value, int):
        return value
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    try:
        return operator.index(value)
    except TypeError:
        return value


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# Keyword of Triton's that every target understands -> what is wrong with a value (None when nothing).
COMPILE_KEYWORDS: Mapping[str, Callable[[Any], str | None]] = {
    "num_warps": _power_of_two,
    "num_stages": _positive_int,
    "num_ctas": _power_of_two,
    "maxnreg": _count_or_none,
    "enable_fp_fusion": _flag,
    "debug": _flag,
}


# Hints that one of Triton's own backends takes: programs pass them on every chip. A target that does not declare one has no use for
# it, so that it has no effect there. `extern_libs` names files of libdevice's functions, which are the language's own here.
HINTS = frozenset({
    "allow_flush_denorm", "extern_libs", "instruction_sched_variant", "kpack", "launch_cooperative_grid", "launch_pdl",
    "matrix_instr_nonkdim", "max_num_imprecise_acc_default", "maxnreg", "minRegAutoWS", "maxRegAutoWS", "num_buffers_warp_spec",
    "num_consumer_groups", "optimize_epilogue", "reg_dec_producer", "reg_inc_consumer", "sanitize_overflow", "schedule_hint",
    "waves_per_eu",
})


def split(keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Launch keywords as (those that choose the execution, all others)."""
    execution = {name: value for name, value in keywords.items() if name in EXECUTION_KEYWORDS}
    return execution, {name: value for name, value in keywords.items() if name not in EXECUTION_KEYWORDS}


def resolve(
    keywords: Mapping[str, Any], info: TargetInfo, *, facts: Iterable[str] = (), launch: LaunchArguments | None = None,
    keep_levels: bool = False,
) -> CompileOptions:
    """The options of one compilation; raises LaunchError TFW0320 for an unknown keyword, TFW0321 for a value out of range."""
    keywords = {name: _python_number(value) for name, value in keywords.items()}
    for name, value in keywords.items():
        if name in COMPILE_KEYWORDS:
            wanted = COMPILE_KEYWORDS[name](value)
            if wanted is not None:
                raise LaunchKeywordError(f"{name} must be {wanted}, not {value!r}", code="TFW0321")
        elif name not in info.options and name not in HINTS:
            raise LaunchError(
                f"target '{info.name}' knows no launch keyword '{name}'", code="TFW0320",
                help=suggest(name, known_keywords(info), what="launch keywords"),
            )
    used = {name: value for name, value in keywords.items() if name in COMPILE_KEYWORDS or name in info.options}
    chosen = {**info.default_options, **used}
    _refuse_too_many_waves(chosen, info)
    _refuse_clusters(chosen, info)
    core = {name: value for name, value in chosen.items() if name in COMPILE_KEYWORDS}
    extra = {name: value for name, value in chosen.items() if name not in COMPILE_KEYWORDS}
    return CompileOptions(
        **core, facts=frozenset(facts), launch=launch, keep_levels=keep_levels, verify=verify_code(), extra=extra
    )


def warps(request: CompileOptions, info: TargetInfo) -> tuple[int, int] | None:
    """How many warps a program has, and how many lanes one has; None on a target without lanes."""
    lanes = info.limits.get("lanes")
    return None if lanes is None else (request.num_warps, lanes)


def _refuse_too_many_waves(chosen: Mapping[str, Any], info: TargetInfo) -> None:
    """Code for a larger workgroup than the chip's could be made, but never launched."""
    lanes, threads = info.limits.get("lanes"), info.limits.get("threads_per_workgroup")
    waves = chosen.get("num_warps", 1)
    if lanes is not None and threads is not None and waves * lanes > threads:
        raise CapacityError(
            f"num_warps={waves} is too much for {info.name}", code="TFW0321",
            note=f"{waves} waves of {lanes} lanes are {waves * lanes} threads; a workgroup has at most {threads}",
            help=f"use num_warps={1 << (threads // lanes).bit_length() - 1} or less",
            resource="threads of a workgroup", needed=waves * lanes, available=threads, unit="threads",
        )


def _refuse_clusters(chosen: Mapping[str, Any], info: TargetInfo) -> None:
    """A chip with lanes whose workgroups cannot run in clusters would run each for itself, and so something else than was asked."""
    workgroups = chosen.get("num_ctas", 1)
    if "lanes" in info.limits and workgroups > info.limits.get("workgroups_per_cluster", 1):
        raise LaunchError(
            f"num_ctas={workgroups} is too much for {info.name}", code="TFW0321", note="its workgroups do not run in clusters",
            help="leave num_ctas out",
        )


def known_keywords(info: TargetInfo) -> list[str]:
    """Every keyword that a launch on this target takes besides the kernel's own parameters."""
    return sorted({*COMPILE_KEYWORDS, *EXECUTION_KEYWORDS, *info.options})
