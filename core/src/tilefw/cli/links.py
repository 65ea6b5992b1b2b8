"""`tilefw links OPERATION --system PLUGIN:NAME`: how long a collective takes on a system of devices by the model of links."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import add_json, parser, positive
from tilefw.cli.output import print_json, write_file

if TYPE_CHECKING:
    from tilefw.distributed.links import PlayedCollective, System

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def main(summary: str, argv: list[str]) -> int:
    parse = parser("links", summary)
    parse.add_argument("operation", help="all_reduce, all_gather, reduce_scatter, all_to_all; of nodes all_reduce alone")
    parse.add_argument("--system", required=True, metavar="PLUGIN:NAME", help="a system of a plugin's devices")
    parse.add_argument("--ranks", type=positive, default=8, help="devices of a node (default 8)")
    parse.add_argument("--nodes", type=positive, default=1, help="nodes of all their devices (default 1)")
    parse.add_argument("--size", default="1K..1G", metavar="N[..N]", help="bytes of a rank's array, as 64K; A..B: powers of two")
    parse.add_argument("--algorithm", default="", help="ring, tree or in-switch instead of the library's choice")
    parse.add_argument("--trace", metavar="FILE", help="what every rank did with the last size, for ui.perfetto.dev")
    add_json(parse)
    args = parse.parse_all(argv)

    from tilefw.distributed.links.system import plugin_system

    system = plugin_system(args.system)
    played = {size: _played(system, args, size) for size in sizes(args.size)}
    if args.trace:
        from tilefw.distributed.links.timeline import perfetto

        write_file(args.trace, perfetto(played[max(played)], f"{args.operation} on {system.name}").encode())
        print(f"the timeline is in {args.trace}: ui.perfetto.dev shows it", file=sys.stderr)
    rows = [_row(size, one) for size, one in played.items()]
    if args.json:
        asked = {"system": system.name, "operation": args.operation, "ranks": args.ranks, "nodes": args.nodes}
        print_json("links", {**asked, "rows": rows})
        return 0
    print(f"{args.operation} on {system.name}, {args.nodes} x {args.ranks} ranks")
    for row in rows:
        print(f"{row['bytes']:>14} bytes  {row['microseconds']:>12.1f} us  {row['algorithm']}, {row['protocol']}")
    return 0


def sizes(text: str) -> list[int]:
    """`64K` or `1K..1G`; raises UsageError."""
    first, dots, last = text.partition("..")
    begin = _bytes(first)
    end = _bytes(last) if dots else begin
    if end < begin:
        raise UsageError(f"--size {text} ends before it begins", code="TFW0911")
    return [begin << power for power in range((end // begin).bit_length())]


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,15})([KMGT]?)(?:i?B)?", text)
    if found is None or not int(found[1]):
        raise UsageError(f"{text!r} is no number of bytes", code="TFW0911", help="write 65536, 64K or 2G; 1K..1G for a range")
    return int(found[1]) << _UNITS[found[2]]


def _played(system: System, args: argparse.Namespace, size: int) -> PlayedCollective:
    from tilefw.distributed.links import all_reduce_over_nodes, collective

    if args.nodes == 1:
        return collective(system, args.operation, args.ranks, size, args.algorithm)
    ranks = int(system["ranks"])
    if args.operation != "all_reduce" or args.algorithm or args.ranks != ranks:
        what = "over nodes, all_reduce of all their devices is modelled, without --algorithm"
        raise UsageError(what, code="TFW0911", help=f"all_reduce --ranks {ranks}: a node of {system.name} has so many")
    return all_reduce_over_nodes(system, args.nodes, size)


def _row(size: int, played: PlayedCollective) -> dict[str, object]:
    choice = played.choice
    return {
        "bytes": size, "microseconds": round(played.microseconds, 3), "launch": round(played.launch, 3),
        "algorithm": choice.algorithm, "protocol": choice.protocol,
    }
