"""Clusters, leaders of warps, budgets of registers and dependent grids (PTX ISA, "Parallel Synchronization and Communication",
"Data Movement and Conversion: mapa, getctarank", "Miscellaneous: setmaxnreg, griddepcontrol")."""

from __future__ import annotations

from tilefw.api.sim import Await
from tilefw_nvidia.chips.versions import SPECIFIC_TARGETS
from tilefw_nvidia.isa.model import Chapter, Facts
from tilefw_nvidia.isa.rows.warp import members
from tilefw_nvidia.isa.tensor_map_size import BYTES

CHAPTER = Chapter()
form = CHAPTER.form

SYNC = "Parallel Synchronization and Communication"
MOVE = "Data Movement and Conversion"
_LATER = {"acquire": ("8.0", 90), "release": ("8.0", 90), "relaxed": ("8.0", 90)}


@form("barrier.cluster.arrive{.sem}{.aligned}", sem="release relaxed", unit="control", section=f"{SYNC}: barrier.cluster",
      ptx="7.8", since=90, needs=_LATER)
def cluster_arrive(m):
    """Arrive at the cluster's barrier, and go on."""
    order = m.sem or "release"
    return lambda lanes: lanes.cluster_arrive(order)


@form("barrier.cluster.wait{.acquire}{.aligned}", unit="control", section=f"{SYNC}: barrier.cluster", ptx="7.8", since=90,
      needs=_LATER, flow=True)
def cluster_wait(m):
    """Wait until all threads of the cluster have arrived."""
    return (lambda lanes: lanes.cluster_passed()), Await()


@form("mapa.space.type d, a, rank:u32", space="shared::cluster", type="u32 u64", unit="alu", section=f"{MOVE}: mapa", ptx="7.8",
      since=90)
def mapa(m):
    """The address in the shared memory of that workgroup of the cluster of what lies at `a` in one's own."""
    bits = m.type_of().bits
    return lambda lanes, a, rank: lanes.cluster_address(a, rank, bits)


@form("mapa.type d, a, rank:u32", type="u32 u64", unit="alu", section=f"{MOVE}: mapa", ptx="7.8", since=90)
def mapa_generic(m):
    """As with a space, of a generic address."""
    bits = m.type_of().bits

    def meaning(lanes, a, rank):
        inside = lanes.cluster_address(lanes.from_generic(a, "shared"), rank, 64)
        address = lanes.to_generic(inside, "shared")
        return lanes.truncate(address, bits) if bits < 64 else address

    return meaning


@form("getctarank.space.type d:u32, a", space="shared::cluster", type="u32 u64", unit="alu", section=f"{MOVE}: getctarank",
      ptx="7.8", since=90)
def getctarank(m):
    """The number in the cluster of the workgroup in whose shared memory the address lies."""
    return lambda lanes, a: lanes.cluster_rank_of(a)


@form("getctarank.type d:u32, a", type="u32 u64", unit="alu", section=f"{MOVE}: getctarank", ptx="7.8", since=90)
def getctarank_generic(m):
    """As with a space, of a generic address."""
    return lambda lanes, a: lanes.cluster_rank_of(lanes.from_generic(a, "shared"))


@form("elect.sync d:b32|both, mask:b32", unit="shuffle", section=f"{SYNC}: elect.sync", ptx="8.0", since=90)
def elect(m):
    """The number of one of the member lanes, and whether this lane is it: the lowest."""
    check = members(m)

    def meaning(lanes, mask):
        check(lanes, mask)
        there = lanes.and_(lanes.active()[0], mask)
        lowest = lanes.sub(lanes.const(31, 32), lanes.leading_zeros(lanes.and_(there, lanes.neg(there))))
        return lowest, lanes.compare(lowest, lanes.lane_id(), "eq", False)

    return meaning


@form("setmaxnreg.action.sync.aligned.u32 =registers", action="inc dec", unit="control", section="Miscellaneous: setmaxnreg",
      ptx="8.0", since=90, only=SPECIFIC_TARGETS)
def setmaxnreg(m):
    """The warp has at most so many registers from now on: 24 to 256, a multiple of 8; all warps of a workgroup, 65536 at most."""
    if not 24 <= m.registers <= 256 or m.registers % 8:
        raise ValueError(f"a warp has 24 to 256 registers, a multiple of 8, not {m.registers}")
    return lambda lanes: lanes.deal_registers(m.registers, m.action == "inc")


@form("griddepcontrol.action", action="launch_dependents wait", unit="control", section=f"{SYNC}: griddepcontrol",
      ptx="7.8", since=90)
def griddepcontrol(m):
    """Let dependent grids begin, or wait for those before; grids here come one after the other, and nothing changes."""
    return lambda lanes: None


_PROXY: Facts = dict(unit="control", section=f"{SYNC}: fence.proxy", since=90, ptx="8.0")
_MAPS: Facts = _PROXY | {"ptx": "8.3", "scope": "cta cluster gpu sys"}


@form("fence.proxy.async{.space}", space="global shared::cta shared::cluster", **_PROXY)
def fence_async(m):
    """What threads have written is there for engines from now on, and the other way round."""
    return (lambda lanes: None) if m.space == "global" else lambda lanes: lanes.view_fence()


@form("fence.proxy.alias", unit="control", section=f"{SYNC}: fence.proxy", ptx="7.5", since=70)
def fence_alias(m):
    """Orders accesses to one place by several addresses; a place has one address here."""
    return lambda lanes: None


@form("fence.mbarrier_init.release.cluster", unit="control", section=f"{SYNC}: fence", ptx="8.0", since=90)
def fence_barriers(m):
    """Barriers that were made are there for the cluster; nothing else that was written is there for engines by it."""
    return lambda lanes: lanes.fence("release", "cluster")


@form("fence.proxy.tensormap::generic.release.scope", **_MAPS)
def fence_descriptor_release(m):
    """A descriptor that was written is there for those who acquire it."""
    return lambda lanes: lanes.fence("release", "device")


@form("fence.proxy.tensormap::generic.acquire.scope [addr], =bytes", **_MAPS)
def fence_descriptor_acquire(m):
    """The descriptor at the address may have been written by others."""
    if m.bytes != BYTES:
        raise ValueError(f"a descriptor has {BYTES} bytes, not {m.bytes}")

    def meaning(lanes, address):
        lanes.fence("acquire", "device")
        lanes.descriptor(address, "acquired")

    return meaning
