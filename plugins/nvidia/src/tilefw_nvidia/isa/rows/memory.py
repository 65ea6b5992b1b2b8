"""Loads, stores, prefetches (PTX ISA, "Data Movement and Conversion Instructions": ld, ld.global.nc, ldu, st, prefetch).

Cache operators, eviction priorities and prefetch sizes say how soon data comes, never which, and are accepted without effect.
"""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers
from tilefw_nvidia.isa.rows.movement import space_of
from tilefw_nvidia.isa.types import TYPES

CHAPTER = Chapter()
form = CHAPTER.form

ELEMENTS = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
LOAD_SPACES = "const global local param param::entry param::func shared shared::cta shared::cluster"
STORE_SPACES = "global local shared shared::cta shared::cluster"
CALL_SPACES = "param param::func"  # what a call passes
SCOPES = "cta cluster gpu sys"
EVICT = "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"
PREFETCH = "L2::64B L2::128B L2::256B"
SECTION = "Data Movement and Conversion"

# The algebra's scopes ("Memory Consistency Model": Scope).
SCOPE = {"": "device", "cta": "workgroup", "cluster": "cluster", "gpu": "device", "sys": "system"}
# Version and sm of single modifiers, from the notes of ld and st.
NEEDS = {
    **dict.fromkeys(EVICT.split(), ("7.4", 70)),
    **{"L2::64B": ("7.4", 75), "L2::128B": ("7.4", 75), "L2::256B": ("7.4", 80), "L2::cache_hint": ("7.4", 80)},
    "shared::cta": ("7.8", 30),
    "shared::cluster": ("7.8", 90),
    "param::entry": ("8.3", 10),
    "param::func": ("8.3", 10),
    "b128": ("8.3", 70),
    "sys b128": ("8.4", 70),
    "cluster": ("7.8", 90),
}


def fits_vector(m: Modifiers) -> str:
    """A vector has at most 128 bits, and b128 is none ("Vectors")."""
    bits = TYPES[m.type].bits * int(m.vec[1:] if m.vec else 1)
    return "" if bits <= 128 else "a vector access has at most 128 bits"


def _hint_rule(m: Modifiers) -> str:
    """Eviction priorities, L2 prefetch sizes and cache policies are for global and generic addresses only."""
    if (m.evict or m.prefetch or m.L2_cache_hint) and m.space not in ("", "global"):
        return "eviction priorities, prefetch sizes and cache policies are for .global and generic addresses"
    return fits_vector(m)


def _count(m: Modifiers) -> int:
    return int(m.vec[1:]) if m.vec else 1


def _load(order: str):
    def build(m):
        """d = the bytes at the address, extended to the register by the type's sign."""
        space, bits, count = space_of(m.space), TYPES[m.type].bits, _count(m)
        scope = SCOPE[m.scope] if m.scope else "system" if order != "weak" else "workgroup"
        return lambda lanes, address, *_: lanes.load(space, address, bits, count, order=order, scope=scope)

    return build


def _store(order: str):
    def build(m):
        """The bytes at the address = the low bits of the registers."""
        space = space_of(m.space)
        scope = SCOPE[m.scope] if m.scope else "system" if order != "weak" else "workgroup"
        return lambda lanes, address, *values: lanes.store(space, address, values, order=order, scope=scope)

    return build


def _store_hinted(m):
    """A store; the cache policy behind the values is not data."""
    store = _store("weak")(m)
    return lambda lanes, address, *values: store(lanes, address, *values[:-1])


_LOADS: Facts = dict(space=LOAD_SPACES, vec="v2 v4", type=ELEMENTS, unit="memory", needs=NEEDS, section=f"{SECTION}: ld")
_STORES: Facts = dict(space=STORE_SPACES, vec="v2 v4", type=ELEMENTS, unit="memory", needs=NEEDS, section=f"{SECTION}: st")
_WEAK_LOADS: Facts = _LOADS | {"needs": NEEDS | {"weak": ("6.0", 70)}}
_WEAK_STORES: Facts = _STORES | {"needs": NEEDS | {"weak": ("6.0", 70)}}
_ORDERED: Facts = dict(scope=SCOPES, ptx="6.0", since=70)


def _ordered(m: Modifiers) -> str:
    if m.space and space_of(m.space) in ("const", "param", "local"):
        return f"an ordered access to .{m.space} does not exist"
    return _hint_rule(m)


def _hinted(m: Modifiers) -> str:
    if m.cop and m.evict:
        return "a cache operator and an eviction priority exclude each other"
    if m.cop and m.space == "param::func":  # ptxas (12.9) ends with a segmentation fault
        return "no cache holds what a call passes"
    return _hint_rule(m)


form(
    "ld{.weak}{.space}{.cop}{.evict}{.prefetch}{.vec}.type d*vec:type^, [a]",
    cop="ca cg cs lu cv",
    evict=EVICT,
    prefetch=PREFETCH,
    refuse=_hinted,
    **_WEAK_LOADS,
)(_load("weak"))
form(
    "ld{.weak}{.space}{.cop}{.evict}.L2::cache_hint{.prefetch}{.vec}.type d*vec:type^, [a], policy:b64",
    cop="ca cg cs lu cv",
    evict=EVICT,
    prefetch=PREFETCH,
    refuse=_hinted,
    **_LOADS,
)(_load("weak"))
form("ld.volatile{.space}{.vec}.type d*vec:type^, [a]", refuse=_ordered, **_LOADS)(_load("relaxed"))
for _order in ("relaxed", "acquire"):
    form(
        f"ld.{_order}.scope{{.space}}{{.evict}}{{.prefetch}}{{.vec}}.type d*vec:type^, [a]",
        evict=EVICT,
        prefetch=PREFETCH,
        refuse=_ordered,
        **_LOADS,
        **_ORDERED,
    )(_load(_order))


def _read_only(m):
    """d = the bytes at the address, through the cache for data that no one writes during the launch."""
    return _load("weak")(Modifiers(m, space="global"))


_READ_ONLY: Facts = _LOADS | {"ptx": "3.1", "since": 32, "section": f"{SECTION}: ld.global.nc", "prefetch": PREFETCH}
form("ld.global{.cop}.nc{.prefetch}{.vec}.type d*vec:type^, [a]", cop="ca cg cs", refuse=fits_vector, **_READ_ONLY)(_read_only)
form("ld.global.nc.evict{.prefetch}{.vec}.type d*vec:type^, [a]", evict=EVICT, refuse=fits_vector, **_READ_ONLY)(_read_only)
form(
    "ld.global.nc{.evict}.L2::cache_hint{.prefetch}{.vec}.type d*vec:type^, [a], policy:b64",
    evict=EVICT,
    refuse=fits_vector,
    **_READ_ONLY,
)(_read_only)
form(
    "ldu{.space}{.vec}.type d*vec:type^, [a]",
    refuse=fits_vector,
    **(_LOADS | {"space": "global", "ptx": "2.0", "since": 20, "section": f"{SECTION}: ldu"}),
)(_load("weak"))

form(
    "st{.weak}{.space}{.cop}{.evict}{.vec}.type [a], b*vec:type^",
    cop="wb cg cs wt",
    evict=EVICT,
    refuse=_hinted,
    **_WEAK_STORES,
)(_store("weak"))
form(
    "st{.weak}{.space}{.cop}{.evict}.L2::cache_hint{.vec}.type [a], b*vec:type^, policy:b64",
    cop="wb cg cs wt",
    evict=EVICT,
    refuse=_hinted,
    **_STORES,
)(_store_hinted)
form(
    "st{.weak}.space{.vec}.type [a], b*vec:type^",
    refuse=fits_vector,
    **(_STORES | {"space": CALL_SPACES, "needs": NEEDS | {"weak": ("6.0", 70)}, "ptx": "2.0", "since": 20}),
)(_store("weak"))
form("st.volatile{.space}{.vec}.type [a], b*vec:type^", refuse=_ordered, **_STORES)(_store("relaxed"))
for _order in ("relaxed", "release"):
    form(
        f"st.{_order}.scope{{.space}}{{.evict}}{{.vec}}.type [a], b*vec:type^", evict=EVICT, refuse=_ordered, **_STORES, **_ORDERED
    )(_store(_order))


def hint(m):
    """Brings data nearer; no effect on results."""
    return lambda lanes, *_: None


form(
    "prefetch{.space}.level [a]",
    space="global local",
    level="L1 L2",
    unit="memory",
    section=f"{SECTION}: prefetch",
    ptx="2.0",
    since=20,
)(hint)
form(
    "prefetch.global.level [a]",
    level="L2::evict_last L2::evict_normal",
    unit="memory",
    section=f"{SECTION}: prefetch",
    ptx="7.4",
    since=80,
)(hint)
form("prefetchu.L1 [a]", unit="memory", section=f"{SECTION}: prefetchu", ptx="2.0", since=20)(hint)

_PRIORITIES = "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged"


@form(
    "createpolicy.fractional.primary{.secondary}.b64 d:b64, f:f32?",
    primary=_PRIORITIES,
    secondary="L2::evict_unchanged",
    unit="alu",
    section=f"{SECTION}: createpolicy",
    ptx="7.4",
    since=80,
    refuse=lambda m: "" if m.primary != m.secondary else "two equal priorities",
)
def createpolicy(m):
    """A cache policy: opaque, and without effect on results, so any constant."""
    return lambda lanes, *_: lanes.const(0, 64)
