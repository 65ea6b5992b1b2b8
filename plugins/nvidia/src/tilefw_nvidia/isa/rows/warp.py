"""Across the lanes of a warp (PTX ISA, "Parallel Synchronization and Communication", "Data Movement: shfl.sync").

Every `.sync` form names the lanes that take part; a lane that executes it without being named is an error, which we report.
"""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Parallel Synchronization and Communication"
ALL = 0xFFFFFFFF


def members(m: Modifiers):
    """Check that the executing lanes are in the mask; nothing to check where it is written as all lanes."""
    if m.constants.get("mask", 0) & ALL == ALL:
        return lambda lanes, mask: None

    def check(lanes, mask):
        mine = lanes.truncate(lanes.shr(mask, lanes.lane_id(), False), 1)
        lanes.require(mine, "a lane executes a .sync instruction without being in its membermask")

    return check


def _source_lane(lanes, mode, lane, b, c):
    """(source lane, in range) by the pseudocode of the manual's section `shfl.sync`."""
    five = lanes.const(31, 32)
    clamp, segment = lanes.and_(c, five), lanes.and_(lanes.shr(c, lanes.const(8, 32), False), five)
    b = lanes.and_(b, five)
    outside = lanes.not_(segment)
    lowest = lanes.and_(lane, segment)
    last = lanes.or_(lowest, lanes.and_(clamp, outside))
    j = {
        "up": lambda: lanes.sub(lane, b),
        "down": lambda: lanes.add(lane, b),
        "bfly": lambda: lanes.xor(lane, b),
        "idx": lambda: lanes.or_(lowest, lanes.and_(b, outside)),
    }[mode]()
    inside = lanes.compare(j, last, "ge" if mode == "up" else "le", True)
    return lanes.select(inside, j, lane), inside


@form("shfl.sync.mode.b32 d|p, a, b:b32, c:b32, mask:b32", mode="up down bfly idx",
      unit="shuffle", section="Data Movement and Conversion: shfl.sync", ptx="6.0", since=30)
def shfl(m):
    """d = a of another lane of the segment, or of this one when that lane is out of range; p says whether it is in range."""
    check, both = members(m), m.two

    def meaning(lanes, a, b, c, mask):
        check(lanes, mask)
        lane, inside = _source_lane(lanes, m.mode, lanes.lane_id(), b, c)
        value = lanes.read_lane(a, lane)
        return (value, inside) if both else value

    return meaning


def _votes(lanes, p, mask):
    """(lanes that vote yes, lanes that vote) within the mask."""
    return lanes.and_(lanes.ballot(p)[0], mask), lanes.and_(lanes.active()[0], mask)


@form("vote.sync.mode.pred d, a, mask:b32", mode="all any uni",
      unit="shuffle", section=f"{SECTION}: vote.sync", ptx="6.0", since=30)
def vote(m):
    """Whether the predicate holds in all, in any, or equally in all of the member lanes."""
    check = members(m)

    def meaning(lanes, a, mask):
        check(lanes, mask)
        yes, there = _votes(lanes, a, mask)
        every = lanes.compare(yes, there, "eq", False)
        none = lanes.compare(yes, lanes.const(0, 32), "eq", False)
        return {"all": every, "any": lanes.not_(none), "uni": lanes.or_(every, none)}[m.mode]

    return meaning


@form("vote.sync.ballot.b32 d, a:pred, mask:b32", unit="shuffle", section=f"{SECTION}: vote.sync", ptx="6.0", since=30)
def ballot(m):
    """A bit for each member lane in which the predicate holds."""
    check = members(m)

    def meaning(lanes, a, mask):
        check(lanes, mask)
        return _votes(lanes, a, mask)[0]

    return meaning


@form("match.any.sync.type d:b32, a, mask:b32", type="b32 b64",
      unit="shuffle", section=f"{SECTION}: match.sync", ptx="6.0", since=70)
def match_any(m):
    """The member lanes that hold the same value as this one."""
    check = members(m)

    def meaning(lanes, a, mask):
        check(lanes, mask)
        return lanes.match(a, mask)

    return meaning


@form("match.all.sync.type d:b32|p, a, mask:b32", type="b32 b64",
      unit="shuffle", section=f"{SECTION}: match.sync", ptx="6.0", since=70)
def match_all(m):
    """The mask if all member lanes hold one value, else 0; p says which."""
    check, both = members(m), m.two

    def meaning(lanes, a, mask):
        check(lanes, mask)
        there = lanes.and_(lanes.active()[0], mask)
        same = lanes.compare(lanes.match(a, mask), there, "eq", False)
        value = lanes.select(same, mask, lanes.const(0, 32))
        return (value, same) if both else value

    return meaning


def _reduce(m):
    """The reduction of the member lanes' values, in each of them."""
    check = members(m)
    kind = m.type_of()
    op = f"{m.op}_{'s' if kind.signed else 'u'}" if m.op in ("min", "max") else m.op

    def meaning(lanes, a, mask):
        check(lanes, mask)
        return lanes.wave_reduce(a, op, mask)

    return meaning


def _reduce_bits(m):
    """The conjunction, disjunction or parity of the member lanes' values, bit by bit, in each of them."""
    return _reduce(Modifiers(m, type="b32"))


_REDUX: Facts = dict(unit="shuffle", section=f"{SECTION}: redux.sync", ptx="7.0", since=80)
form("redux.sync.op.type d, a, mask:b32", op="add min max", type="u32 s32", **_REDUX)(_reduce)
form("redux.sync.op.b32 d, a, mask:b32", op="and or xor", **_REDUX)(_reduce_bits)


@form("activemask.b32 d", unit="alu", section=f"{SECTION}: activemask", ptx="6.2", since=30)
def activemask(m):
    """A bit for each lane that executes this."""
    return lambda lanes: lanes.active()[0]
