"""A made-up system of four devices around a switch that reduces, and the text of its file."""

from tilefw.distributed.links.system import System
from tilefw.timing.chip_file import read_chip_file

_FIGURES = {
    "ranks": (16, "count"), "port_rate": (100, "GB/s"), "channels": (4, "count"), "ring_rate": (80, "GB/s"),
    "ring_copy": (0.5, "share"), "ll_share": (0.5, "share"), "ll128_share": (0.9, "share"), "simple_share": (1, "share"),
    "ll_launch": (5, "us"), "ll_step": (1, "us"), "ll128_launch": (8, "us"), "ll128_step": (2, "us"),
    "simple_launch": (10, "us"), "simple_step": (3, "us"), "pick_ll_base": (6, "us"), "pick_ll_step": (0.6, "us"),
    "pick_ll_rate": (40, "GB/s"), "pick_ll128_base": (14, "us"), "pick_ll128_step": (1.9, "us"),
    "pick_ll128_rate": (72, "GB/s"), "pick_simple_base": (8.4, "us"), "pick_simple_step": (3.4, "us"),
    "pick_simple_rate": (80, "GB/s"), "pick_switch_base": (25, "us"), "switch_rate": (70, "GB/s"),
    "switch_channels": (4, "count"), "switch_launch": (20, "us"), "exchange_ll_bytes": (16384, "bytes"),
    "exchange_peer": (0.2, "us"), "exchange_rate": (75, "GB/s"), "exchange_copy_rate": (200, "GB/s"),
    "exchange_ll_launch": (6, "us"), "exchange_simple_launch": (12, "us"), "shots_launch": (3, "us"),
    "shots_phase": (1, "us"), "shots_rate": (60, "GB/s"), "direct_peer": (0.1, "us"), "node_rate": (60, "GB/s"),
    "card_rate": (40, "GB/s"), "card_step": (5, "us"), "card_chunk": (1000000, "bytes"), "card_ll_launch": (30, "us"),
    "card_simple_launch": (60, "us"), "card_ll_bytes": (32768, "bytes"), "link_latency": (0.5, "us"),
}


def toy_text(**changes: str) -> str:
    """The file; a change replaces a figure's whole mapping."""
    lines = ["system: toy", "figures:"]
    for name, (value, unit) in _FIGURES.items():
        lines.append(f"  {name}: " + changes.get(name, f'{{value: {value}, unit: {unit}, kind: assumption, source: "made up"}}'))
    return "\n".join(lines) + "\n"


def toy() -> System:
    return System(read_chip_file(toy_text(), "toy.yaml", "system"))
