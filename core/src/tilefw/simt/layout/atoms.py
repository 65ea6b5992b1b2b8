"""Which matrix atom serves a dot: the cheapest of the chip's whose types and sizes fit; else the kit's own.

Where no matrix atom of the chip serves, the kit's own *lane atom* does: a multiply-add of each lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilefw.api.errors import Place, UnsupportedError
from tilefw.simt.description import ChipDescription, LaneMachine, MatrixAtom
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atom_layouts import AtomChain, DotLayouts, idle, with_lanes, with_waves
from tilefw.simt.layout.atom_recipes import F32_RECIPES, DotTypes, Recipe, recipes

__all__ = ["LANE_ATOM", "AtomChain", "DotLayouts", "DotTypes", "choose", "find_atom", "lane_atom"]

LANE_ATOM = "lane."
# The type that lane atoms multiply and add in, for each accumulator; f16 sums are kept wider and rounded once, at the end.
LANE_TYPES = {"f32": "f32", "f16": "f32", "i32": "i32", "f64": "f64"}


def lane_atom(element: str) -> MatrixAtom:
    """The kit's own atom: one multiply-add of each lane for itself, so its layouts have no lane bits."""
    one = LinearLayout((1, 1), (), (), ())
    return MatrixAtom(f"{LANE_ATOM}{element}", 1, 1, 1, element, element, element, one, one, one, cost=1.0)


def find_atom(chip: ChipDescription, name: str) -> MatrixAtom:
    """The atom of the chip, or of the kit, by its name; raises KeyError."""
    if name.startswith(LANE_ATOM) and name.removeprefix(LANE_ATOM) in LANE_TYPES.values():
        return lane_atom(name.removeprefix(LANE_ATOM))
    return {atom.name: atom for atom in chip.atoms}[name]


def choose(
    shape: Sequence[int], types: DotTypes, machine: LaneMachine, chain: AtomChain = AtomChain.NONE, atom: str | None = None,
    place: Place | None = None,
) -> DotLayouts:
    """The layouts of a dot of `shape` ([b,] m, n, k; powers of two).

    The atom is the cheapest that serves, or the one called `atom`. Of dots in a `chain` all waves go along m as far as m reaches,
    so that what one gives another stays within a wave. Raises UnsupportedError: TFW0621 for types that nothing serves, TFW0622
    when the atom called for does not serve, with those that would.
    """
    sizes = dict(zip("bmnk" if len(shape) == 4 else "mnk", shape, strict=True))
    if types.acc not in LANE_TYPES or (types.a == types.b == "f32" and types.precision not in F32_RECIPES):
        raise UnsupportedError(f"no atom multiplies {types.a} by {types.b} into {types.acc}", code="TFW0621", place=place)
    found = sorted(
        _serving(sizes, types, machine.chip),
        key=lambda pair: (_price(*pair, types.acc)[0] * idle(pair[0], sizes, machine, chain), _price(*pair, types.acc)),
    )
    if types.group:
        return with_waves(*_scaled(found, types, place), sizes, types, machine, chain)
    own = lane_atom(LANE_TYPES[types.acc])
    if atom is not None and atom != own.name:
        found = [pair for pair in found if pair[0].name == atom] or _refuse(atom, sizes, types, machine.chip, place)
    if not found or atom == own.name:
        return with_lanes(own, sizes, types, machine)
    return with_waves(*found[0], sizes, types, machine, chain)


def serves_scaled(shape: Sequence[int], types: DotTypes, chip: ChipDescription) -> bool:
    """Whether the chip has an atom for a dot of `shape` with scales: lanes alone do none."""
    sizes = dict(zip("bmnk" if len(shape) == 4 else "mnk", shape, strict=True))
    return next(_serving(sizes, types, chip), None) is not None


def _scaled(
    found: Sequence[tuple[MatrixAtom, Recipe]], types: DotTypes, place: Place | None
) -> tuple[MatrixAtom, Recipe]:
    if not found:
        raise UnsupportedError(
            f"no atom multiplies {types.a} by {types.b} with scales of groups of {types.group}", code="TFW0621", place=place
        )
    return found[0]


def of_types(types: DotTypes, chip: ChipDescription) -> tuple[MatrixAtom, ...]:
    """The chip's atoms that serve dots of these types, of whatever sizes; the cheapest first."""
    found = [(atom, recipe) for recipe in recipes(types) for atom in chip.atoms if _multiplies(atom, recipe, types)]
    return tuple({atom.name: atom for atom, _ in sorted(found, key=lambda pair: _price(*pair, types.acc))}.values())


def _serving(sizes: dict[str, int], types: DotTypes, chip: ChipDescription) -> Iterator[tuple[MatrixAtom, Recipe]]:
    """The atoms of one wave whose types are right and whose sizes divide the tile's."""
    for recipe in recipes(types):
        for atom in chip.atoms:
            fits = all(sizes[dim] % size == 0 for dim, size in (("m", atom.m), ("n", atom.n), ("k", atom.k)))
            if fits and _multiplies(atom, recipe, types):
                yield atom, recipe


def _multiplies(atom: MatrixAtom, recipe: Recipe, types: DotTypes) -> bool:
    operands = (atom.a, atom.b, atom.precision) == (recipe.a, recipe.b, recipe.precision)
    # A wider accumulator is a better one: it is rounded once.
    sums = atom.d == types.acc or (types.acc == "f16" and atom.d == "f32")
    if types.group != (0 if atom.scales is None else atom.scales.group):
        return False
    return operands and sums and atom.unsigned == types.unsigned and atom.waves == 1 and not atom.asynchronous


def _price(atom: MatrixAtom, recipe: Recipe, acc: str) -> tuple[float, bool, int]:
    """Cycles for a multiply-add; of equals, the one that needs no conversion of sums, then the one with fewer instructions."""
    volume = atom.m * atom.n * atom.k
    return atom.cost * len(recipe.products) / volume, atom.d != acc, -volume


def _refuse(
    name: str, sizes: dict[str, int], types: DotTypes, chip: ChipDescription, place: Place | None
) -> list[tuple[MatrixAtom, Recipe]]:
    tile = "x".join(str(size) for size in sizes.values())
    serving = sorted({atom.name for atom, _ in _serving(sizes, types, chip)} | {lane_atom(LANE_TYPES[types.acc]).name})
    raise UnsupportedError(
        f"the atom {name} does not serve a dot of {tile} ({', '.join(sizes)}) of {types.a} and {types.b} into {types.acc}",
        code="TFW0622", place=place, help=f"these do: {', '.join(serving)}",
    )
