"""A machine file as data: counts, positions and delays of its units. Every number has its origin.

    machine = load("sdm-1")
    machine.position("MEM.E12")     # 59
    machine.queues["MXM.W0.MAC"]    # Queue(name="MXM.W0.MAC", kind="MAC", unit="MXM.W", position=0, number=0)
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from tilefw.api import CodeError

ORIGINS = ("published", "derived", "ours")
SIDES = ("W", "E")
DELAYS = frozenset({
    "read", "write", "gather", "scatter", "alu", "transcendental", "load_weights", "install_weights", "multiply_pair",
    "multiply_int8", "drain", "switch", "switch_across", "transpose", "fetch", "notify", "link",
})
"""The delays that a machine file has: cycles from issue at a position to the effect there."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of the file: its value, whether it is published, derived or ours, and where it comes from."""

    value: int
    origin: str
    source: str


@dataclass(frozen=True, slots=True)
class Queue:
    """An instruction queue. `kind` says which rows it takes (`isa.Row.queues`): MEM, LW, MAC, DRN, ALU, SXM or C2C. `unit` is what
    it steers (`MEM.E12`, `MXM.W`, `VXM`, `SXM.E`), `number` which of its kind there: the plane, ALU, queue or link."""

    name: str
    kind: str
    unit: str
    position: int
    number: int


@dataclass(frozen=True, eq=False)
class Machine:
    """A chip of the machine file. Counts are plain attributes, named as in the file; `delays` are in cycles, by name; `quantities`
    has each number's origin, those of delays as `delays.read`. Two machines are the same if their hashes are."""

    name: str
    hash: str
    quantities: Mapping[str, Quantity] = field(repr=False)
    delays: Mapping[str, int]
    clock_hz: int
    superlanes: int
    superlane_lanes: int
    streams: int  # in each direction
    slices: int  # of a side
    banks: int
    rows: int  # of a bank
    position_cycles: int
    planes: int  # of a side
    columns: int
    depth_int8: int
    depth_pair: int
    weight_buffers: int
    weight_streams: int
    accumulator_banks: int
    accumulator_rows: int  # of a bank
    alus: int
    delay_step: int
    delay_steps: int
    switch_queues: int  # of a side
    switch_streams: int
    links: int
    local_links: int
    global_links: int
    node_chips: int
    link_interval: int
    epoch: int
    instruction_bytes: int
    vector_words: int

    @cached_property
    def lanes(self) -> int:
        """Lanes of a vector; a row of a slice has a byte for each."""
        return self.superlanes * self.superlane_lanes

    @cached_property
    def capacity(self) -> int:
        """Bytes of all slices."""
        return len(SIDES) * self.slices * self.banks * self.rows * self.lanes

    @property
    def skew(self) -> int:
        """Cycles by which the last superlane is behind the first."""
        return self.superlanes - 1

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Every unit's position, west to east."""
        west = ["MXM.W", "SXM.W", *(f"MEM.W{i}" for i in reversed(range(self.slices)))]
        east = [*(f"MEM.E{i}" for i in range(self.slices)), "SXM.E", "MXM.E"]
        return {unit: at for at, unit in enumerate([*west, "VXM", *east])}

    def position(self, unit: str) -> int:
        """The position of a unit (`MEM.E12`, `VXM`). Raises KeyError for an unknown name."""
        return self.positions[unit]

    @property
    def last_position(self) -> int:
        return len(self.positions) - 1

    @cached_property
    def queues(self) -> Mapping[str, Queue]:
        """Every instruction queue by its name, in the order of the container."""
        found = [Queue(f"MEM.{side}{i}", "MEM", f"MEM.{side}{i}", self.position(f"MEM.{side}{i}"), i)
                 for side in SIDES for i in range(self.slices)]
        found += [Queue(f"MXM.{side}{plane}.{kind}", kind, f"MXM.{side}", self.position(f"MXM.{side}"), plane)
                  for side in SIDES for plane in range(self.planes) for kind in ("LW", "MAC", "DRN")]
        found += [Queue(f"VXM.{i}", "ALU", "VXM", self.position("VXM"), i) for i in range(self.alus)]
        found += [Queue(f"SXM.{side}{i}", "SXM", f"SXM.{side}", self.position(f"SXM.{side}"), i)
                  for side in SIDES for i in range(self.switch_queues)]
        found += [Queue(f"C2C.{i}", "C2C", *self._link_place(i), i) for i in range(self.links)]
        return {queue.name: queue for queue in found}

    def _link_place(self, link: int) -> tuple[str, int]:
        """Links are attached to the switches: those to the chips of the node in the west, so that one stream serves all of them."""
        unit = f"SXM.{SIDES[link >= self.local_links]}"
        return unit, self.position(unit)

    def is_west(self, stream: int) -> bool:
        """Whether a stream flows west: streams 0-31 flow east, 32-63 west."""
        return stream >= self.streams

    def diagonal(self, stream: int, position: int, cycle: int) -> int:
        """What stays the same of a vector as it flows: two vectors on one stream with one diagonal coincide."""
        return cycle + position if self.is_west(stream) else cycle - position

    def passes(self, stream: int, begin: int, end: int) -> int | None:
        """Cycles that a vector takes from position `begin` to `end`, or None where the stream flows in the other direction."""
        distance = begin - end if self.is_west(stream) else end - begin
        return distance * self.position_cycles if distance >= 0 else None

    def depth(self, dtype: str) -> int:
        """Rows of K that one set of weights has: of a plane for int8, of a pair of planes for the others."""
        return self.depth_int8 if dtype == "int8" else self.depth_pair

    def planes_apart(self, dtype: str) -> int:
        """How many products one side multiplies at a time: int8 takes a plane, the others a pair."""
        return self.planes if dtype == "int8" else self.planes // 2

    @cached_property
    def pitch(self) -> int:
        """Cycles from the weights of one product to those of the next, at least."""
        return self.delays["load_weights"] + self.delays["install_weights"]

    def peer(self, chip: int, link: int) -> int:
        """The chip of the node at the other end of a local link. Raises ValueError for links that leave the node."""
        if not 0 <= link < self.local_links:
            raise ValueError(f"link {link} is not one of the {self.local_links} local ones")
        return (chip + link + 1) % self.node_chips

    def link(self, chip: int, peer: int) -> int:
        """The local link of `chip` whose other end is `peer`."""
        return (peer - chip - 1) % self.node_chips


class MachineFileError(ValueError):
    """A machine file that is not one: a number without origin, a name that is missing or unknown."""


@cache
def load(name: str | Path = "sdm-1") -> Machine:
    """The machine file `data/<name>.yaml` of this package, or the one at a path. Raises FileNotFoundError, MachineFileError."""
    if isinstance(name, Path):
        return read(name.read_text(encoding="utf-8"))
    if not re.fullmatch(r"[\w-]+", name):  # names come from programs too: they are no paths
        raise FileNotFoundError(f"there is no machine file {name[:40]!r}")
    return read((files("tilefw_spatial") / "data" / f"{name}.yaml").read_text(encoding="utf-8"))


@cache
def _read_once(path: str, changed: int) -> Machine:
    """The machine of a file as it was when it was last changed, in nanoseconds."""
    return load.__wrapped__(Path(path))


def given(path: str) -> Machine:
    """The machine of the file that a user names, read again after it has changed. Raises CodeError TFW0739."""
    try:
        return _read_once(path, Path(path).stat().st_mtime_ns)
    except (OSError, UnicodeDecodeError) as error:
        raise CodeError(f"the machine file {path} cannot be read: {error}", code="TFW0739") from None
    except (MachineFileError, yaml.YAMLError) as error:
        raise CodeError(f"{path} is no machine file: {error}", code="TFW0739", help=_LIKE) from None


_LIKE = "a machine file has the entries of tilefw_spatial/data/sdm-1.yaml, each with value, origin and source"


def read(text: str) -> Machine:
    """A machine from the text of its file. Raises MachineFileError."""
    document: Any = yaml.safe_load(text)
    if not isinstance(document, dict) or not isinstance(document.get("delays"), dict) or not isinstance(document.get("name"), str):
        raise MachineFileError("must be a mapping with a name, delays and counts")
    delays = {key: _quantity(f"delays.{key}", entry) for key, entry in document.pop("delays").items()}
    name = document.pop("name")
    counts = {key: _quantity(key, entry) for key, entry in document.items()}
    values = {key: quantity.value for key, quantity in counts.items()}
    times = {key: quantity.value for key, quantity in delays.items()}
    if times.keys() != DELAYS:
        raise MachineFileError(f"machine {name}: delays that are missing or unknown: {', '.join(sorted(times.keys() ^ DELAYS))}")
    quantities = counts | {f"delays.{key}": quantity for key, quantity in delays.items()}
    try:
        return Machine(name, fingerprint(name, values, times), quantities, times, **values)
    except TypeError as error:
        raise MachineFileError(f"machine {name}: {error}") from None


def fingerprint(name: str, counts: Mapping[str, int], delays: Mapping[str, int]) -> str:
    """The machine's hash, SHA-256 in hexadecimal: programs made for one are refused by every other."""
    text = json.dumps({"name": name, "counts": dict(counts), "delays": dict(delays)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _quantity(key: str, entry: Any) -> Quantity:
    if not isinstance(entry, dict) or set(entry) != {"value", "origin", "source"}:
        raise MachineFileError(f"{key}: must have exactly value, origin and source")
    if entry["origin"] not in ORIGINS or type(entry["value"]) is not int or entry["value"] < 1:
        raise MachineFileError(f"{key}: value must be an integer above 0 and origin one of {', '.join(ORIGINS)}")
    return Quantity(entry["value"], entry["origin"], entry["source"])
