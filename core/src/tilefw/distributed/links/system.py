"""A system of devices as the model of links sees it: the figures of its file, by what they are for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from tilefw.api.errors import CodeError, UsageError
from tilefw.distributed.links.fabric import Fabric, mesh, switched
from tilefw.distributed.links.flows import Network
from tilefw.distributed.links.ring import RingProtocol
from tilefw.runtime.names import suggest
from tilefw.timing.chip_file import ChipFigures, packaged_system

_CODE = "TFW0668"
GB_PER_SECOND = 1e3  # bytes per microsecond
PROTOCOLS = ("ll", "ll128", "simple")
# Data bytes of a chunk of one channel, and its slices. nccl `src/include/device.h`: NCCL_LL_LINES_PER_THREAD 8 x 512
# threads x 8 bytes; NCCL_LL128_ELEMS_PER_THREAD 120 x 640 threads x 8 bytes x 15/16; 4 of 8
# steps of a buffer of 4 MiB, in two slices.
_CHUNKS = {"ll": (32 << 10, 1), "ll128": (576_000, 2), "simple": (2 << 20, 2)}


@dataclass(frozen=True)
class System:
    """The figures of one system. Rates in bytes per microsecond, times in microseconds."""

    figures: ChipFigures

    def __getitem__(self, name: str) -> float:
        """A figure, rates in bytes per microsecond; raises CodeError TFW0665 for one that the file does not have."""
        figure = self.figures.figure(name)
        return figure.value * GB_PER_SECOND if figure.unit == "GB/s" else figure.value

    def __contains__(self, name: str) -> bool:
        return name in self.figures.figures

    def least(self, name: str) -> float:
        """A figure below which a time cannot be, 0 where the file has none."""
        return self[name] if name in self else 0.0  # noqa: SIM401 - not a mapping

    @property
    def name(self) -> str:
        return self.figures.chip

    def launch(self, protocol: str) -> float:
        """Microseconds of a collective that does nothing: launch of its kernel, and the first and last synchronisation."""
        return self[f"{protocol}_launch"]

    def fabric(self, network: Network, ranks: int) -> Fabric:
        """The ports of a node's devices."""
        if "mesh_link_rate" in self:
            return mesh(network, ranks, self["mesh_link_rate"], self["port_rate"])
        return switched(network, ranks, self["port_rate"])

    def ring_rate(self, ranks: int) -> float:
        """Bytes per us that a rank sends to the next of all rings."""
        if "mesh_link_rate" in self:
            return min(self["mesh_link_rate"] * (ranks - 1), self["port_rate"])
        return self["ring_pair_rate"] if ranks == 2 and "ring_pair_rate" in self else self["ring_rate"]

    def expected_rate(self, protocol: str, ranks: int) -> float | None:
        """The rate that the library's table has for a protocol of rings, None where it does not know the protocol."""
        if f"pick_{protocol}_link_rate" in self:
            return self[f"pick_{protocol}_link_rate"] * (ranks - 1)
        known = f"pick_{protocol}_rate" in self
        return self[f"pick_{protocol}_rate"] if known else None

    def ring(self, protocol: str, ranks: int) -> RingProtocol:
        """What a ring step costs with a protocol: each byte of data takes its share of the wire, flags the rest."""
        chunk, slices = _CHUNKS[protocol]
        rate = self.ring_rate(ranks) * self[f"{protocol}_share"]
        copy = 1.0 if protocol == "ll" else self["ring_copy"]  # lines with flags are unpacked at the pace at which they come
        warm = (self["ramp_bytes"], self["ramp_rate"]) if protocol != "ll" and "ramp_rate" in self else (0.0, rate)
        return RingProtocol(rate, self[f"{protocol}_step"], chunk * self["channels"], slices, copy, *warm)


def read_system(package: str, name: str) -> System:
    """The system whose file `NAME.yaml` a package has. Raises CodeError TFW0668 with the nearest name, TFW0665 for a bad file."""
    found = packaged_system(package, name)
    if found is None:
        known = system_names(package)
        raise CodeError(f"{package} has no system '{name}'", code=_CODE, help=suggest(name, known, what="systems"))
    return System(found)


def plugin_system(name: str) -> System:
    """The system `PLUGIN:NAME`. Raises UsageError TFW0668 where the plugin has none of that name, or none at all."""
    from tilefw.runtime.plugins.loader import registry  # which the figures of a known package do not need

    brought_by, colon, short = name.partition(":")
    if not colon:
        raise UsageError(f"whose system is {name!r}?", code=_CODE, help=f"write PLUGIN:{name}")
    plugin = registry().plugin(brought_by)
    answers = plugin.manager.hook.tilefw_systems() if plugin.manager is not None and "tilefw_systems" in plugin.hooks else ()
    if not answers:
        raise UsageError(f"plugin '{brought_by}' has no systems of devices", code=_CODE)
    package = str(answers[0])
    known = system_names(package)
    if short not in known:
        helped = suggest(short, known, what="its systems")
        raise UsageError(f"plugin '{brought_by}' has no system {short!r}", code=_CODE, help=helped)
    return read_system(package, short)


def system_names(package: str) -> list[str]:
    """The systems that a package has files of."""
    return sorted(file.name.removesuffix(".yaml") for file in files(package).iterdir() if file.name.endswith(".yaml"))
