"""Moves, choices, and what one lane tells the others (CDNA3 ISA, "VOP1", "VOP2", "VOP3A": V_MOV, V_CNDMASK, V_READLANE, …)."""

from __future__ import annotations

from functools import partial

from tilefw_amd.isa.row import Chapter, RowFacts

CHAPTER = Chapter()
row = CHAPTER.row

VOP1: RowFacts = {"unit": "valu", "section": "VOP1"}
VOP3: RowFacts = {"unit": "valu", "section": "VOP3A"}


@row("v_nop", vop1=0, without="sdwa dpp", **VOP1)
def v_nop(m):
    """Nothing."""
    return lambda lanes: None


@row("v_clrexcp", vop1=53, without="sdwa dpp", **VOP1)
def v_clrexcp(m):
    """Clears the wave's floating-point exceptions, which the simulator does not keep."""
    return lambda lanes: None


@row("v_mov_b32 d:b32, a:b32", vop1=1, **VOP1)
def v_mov_b32(m):
    """d = a."""
    return lambda lanes, a: a


@row("v_mov_b64 d:b64, a:b64", vop1=56, without="sdwa", unit="valu64", section="VOP1")
def v_mov_b64(m):
    """d = a."""
    return lambda lanes, a: a


@row("v_swap_b32 +d:b32, +da:b32=v", vop1=81, without="vop3 sdwa dpp", **VOP1)
def v_swap_b32(m):
    """Exchanges two registers."""
    return lambda lanes, first, second: (second, first)


# The sources are floats so that they take neg and abs, as the assembler lets them.
@row("v_cndmask_b32 d:b32, a:f32, b:f32, c:mask", vop2=0, unit="valu", section="VOP2")
def v_cndmask_b32(m):
    """d = c ? b : a."""
    return lambda lanes, a, b, c: lanes.select(c, b, a)


def _exchange(distance, m):
    """Lanes of da in the even rows of `distance` lanes and lanes of d in the odd rows above them exchange what they hold.

    A lane that is off keeps its register. What the other one gets from it is undefined (no public manual says what the hardware
    gives), but for `fi:1`, which reads it.
    """
    inactive = "value" if m.fi else "undefined"

    def meaning(lanes, d, da):
        lane = lanes.lane_id()
        odd = lanes.compare(lanes.and_(lane, lanes.const(distance, 32)), lanes.const(0, 32), "ne", False)
        other = lanes.xor(lane, lanes.const(distance, 32))
        from_d, from_da = (lanes.read_lane(a, other, inactive) for a in (d, da))
        return lanes.select(odd, from_da, d), lanes.select(odd, da, from_d)

    return meaning


for _distance, _opcode in ((16, 89), (32, 90)):
    row(f"v_permlane{_distance}_swap_b32 +d:b32, +da:b32=v", vop1=_opcode, without="sdwa dpp", since=4, modifiers="bound_ctrl fi",
        **VOP1)(partial(_exchange, _distance))


@row("v_readfirstlane_b32 d:b32=s, a:b32=v, <exec", vop1=2, without="vop3 sdwa dpp", facts="ignores exec", **VOP1)
def v_readfirstlane_b32(m):
    """What the first lane that is on holds; lane 0 when none is."""

    def meaning(lanes, a, on):
        # Zeros below the lowest one; 64 of them for EXEC = 0, which is lane 0 again.
        return lanes.read_lane(a, lanes.leading_zeros(lanes.reverse_bits(on)), "value")

    return meaning


@row("v_readlane_b32 d:b32=s, a:b32=v, b:u32=sc", vop3=0x289, facts="ignores exec", **VOP3)
def v_readlane_b32(m):
    """What lane b & 63 holds, on or off."""
    return lambda lanes, a, b: lanes.read_lane(a, b, "value")


@row("v_writelane_b32 +d:b32, a:b32=sc, b:u32=sc", vop3=0x28A, facts="ignores exec", **VOP3)
def v_writelane_b32(m):
    """Writes a into lane b & 63, on or off."""

    def meaning(lanes, a, b, old):
        here = lanes.compare(lanes.lane_id(), lanes.and_(b, lanes.const(63, 32)), "eq", False)
        return lanes.select(here, a, old)

    return meaning


@row("v_screen_partition_4se_b32 d:b32, a:b32", vop1=55, **VOP1)
def v_screen_partition_4se_b32(m):
    """A table of the graphics pipeline's screen partitions, which the manual does not print: refused where it is executed."""
    raise ValueError("v_screen_partition_4se_b32 belongs to graphics: its table is not in the manual")
