"""The modelled time of a run on a node for the command line: the system it is told for, its text, its JSON, its timeline."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.cli.output import write_file

if TYPE_CHECKING:
    from tilefw.distributed.links.system import System
    from tilefw.distributed.node_time import NodeTime


def asks_for_time(args: argparse.Namespace) -> bool:
    """Whether anything is asked for that the modelled time tells."""
    return bool(args.time or args.timeline or args.system or args.json)


def system_asked_for(args: argparse.Namespace, target: str, devices: int) -> tuple[System | None, str | None]:
    """The system that the devices are joined in, or why the time of a run is not told. Raises UsageError for a name that is none,
    and for a system of fewer devices, UnsupportedError TFW0666 for one beside a target without a model of time."""
    if not asks_for_time(args):
        return None, "not asked for"
    from tilefw.distributed.links.system import plugin_system
    from tilefw.distributed.node_time import check_system, default_system
    from tilefw.runtime.plugins.loader import find_target

    if args.system is not None:
        find_target(target).backend.timing()
        system = plugin_system(args.system)
        check_system(system, devices)
        return system, None
    try:
        usual = default_system(target)
        check_system(usual, devices)
        return usual, None
    except (UnsupportedError, UsageError) as error:
        return None, f"{error.message} ({error.code}){f': {error.help}' if error.help else ''}"


def rendered_time(time: NodeTime | None, unknown: str | None) -> str:
    """The time in one line, or why it is not told."""
    if time is None:
        return f"time on devices unknown: {unknown}"
    parts = ", ".join(f"{name} {1e6 * taken:.2f}" for name, taken in time.parts.items())
    return f"{1e6 * time.seconds:.2f} us on {time.system}, {time.cycles:,.0f} cycles: {parts}"


def time_to_json(time: NodeTime | None, unknown: str | None) -> dict[str, Any]:
    """The modelled time; null with the reason where it is not told."""
    if time is None:
        return dict.fromkeys(("seconds", "cycles", "parts", "system", "ranks")) | {"unknown": unknown}
    ranks = [{"rank": one.rank, "seconds": one.seconds, "bytes": one.nbytes} for one in time.ranks]
    return {
        "seconds": time.seconds, "cycles": time.cycles, "parts": dict(time.parts), "system": time.system, "ranks": ranks,
        "unknown": None,
    }


def check_timeline_name(path: str) -> None:
    """Raises UsageError for a file that is of neither kind."""
    if os.path.splitext(path)[1] not in (".json", ".svg"):
        raise UsageError(f"'{path}' ends neither in .json nor in .svg", code="TFW0917", help=".json is for ui.perfetto.dev")


def require_time(unknown: str | None) -> None:
    """Raises UsageError where there is no timeline to write."""
    if unknown is not None:
        raise UsageError(f"there is no timeline where the time is not known: {unknown}", code="TFW0917")


def write_timeline(path: str, title: str, time: NodeTime | None, unknown: str | None) -> None:
    """Write what every rank did when, as a picture or for a viewer of traces."""
    from tilefw.distributed.node_time.timeline import node_timeline
    from tilefw.runtime.timeline_svg import picture
    from tilefw.runtime.timeline_trace import trace_events

    require_time(unknown)
    assert time is not None
    timeline = node_timeline(time)
    write_file(path, (picture(timeline, title) if path.endswith(".svg") else trace_events(timeline, title)).encode())
    print(f"the timeline is in {path}", file=sys.stderr)
