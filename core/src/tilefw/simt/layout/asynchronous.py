"""Which asynchronous atom serves a dot, if any, and where its operands then lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilefw.api.dtypes import DTYPES
from tilefw.simt.description import LaneMachine, MatrixAtom, SharedForm
from tilefw.simt.layout.atom_layouts import AtomChain, DotLayouts, idle, with_waves
from tilefw.simt.layout.atom_recipes import DotTypes, Recipe, recipes
from tilefw.simt.layout.shared_operand import SharedOperand, in_form

_ALL_WAVES = 64  # as many as any atom's
_BITS = {dtype.ir: dtype.storage_bits for dtype in DTYPES.values()}


@dataclass(frozen=True)
class FactorSource:
    """Where an operand can come from: `shared` memory, with rows along one of the dims `rows`, in order of preference, or
    registers."""

    shared: bool
    rows: tuple[int, ...] = ()


def asynchronous_layouts(
    shape: Sequence[int], types: DotTypes, machine: LaneMachine, chain: AtomChain, sources: tuple[FactorSource, FactorSource]
) -> DotLayouts | None:
    """The layouts of a dot of `shape` (m, n, k; powers of two) by the cheapest asynchronous atom for operands from `sources`; of
    equals, by the one with the fewest instructions. None where no atom serves, or only with waves that repeat what others do."""
    if len(shape) != 3 or types.group:
        return None
    sizes = dict(zip("mnk", shape, strict=True))
    found = [
        (atom, recipe, shared) for atom, recipe in _multiplying(types, machine)
        if (shared := _operands(atom, sizes, sources)) is not None and idle(atom, sizes, machine, chain) == 1
    ]
    if not found:
        return None
    atom, recipe, shared = min(found, key=lambda each: (_cost(each[0]), each[0].d != types.acc, -_volume(each[0])))
    return replace(with_waves(atom, recipe, sizes, types, machine, chain), shared=shared)


def why_no_atom(shape: Sequence[int], types: DotTypes, machine: LaneMachine, chain: AtomChain) -> str | None:
    """Why no asynchronous atom serves a dot, in a user's words; None where the chip has none for such types at all."""
    anywhere = replace(machine, waves=_ALL_WAVES)
    of_types = list(dict.fromkeys(atom for atom, _ in _multiplying(types, anywhere)))
    if len(shape) != 3 or types.group or not of_types:
        return None
    together = min(atom.waves for atom in of_types)
    if machine.waves % together:
        return f"{together} warps multiply together, and there are {machine.waves}"
    sizes = dict(zip("mnk", shape, strict=True))
    for dim, size in sizes.items():
        least = min(getattr(atom, dim) for atom in of_types)
        if size % least:
            return f"its {dim} of {size} is no multiple of {least}"
    fitting = [atom for atom in of_types if not any(size % getattr(atom, dim) for dim, size in sizes.items())]
    if not any(idle(atom, sizes, machine, chain) == 1 for atom in fitting):
        return f"not all of the {machine.waves} warps would have a part of it"
    return "the unit does not take its operands in the order in which they lie"


def layouts_in_forms(
    shape: Sequence[int], types: DotTypes, machine: LaneMachine, chain: AtomChain, name: str, rows: Sequence[int]
) -> DotLayouts:
    """Those of the atom called `name`, whose operands lie with rows along these dims; -1 for one that comes from registers."""
    sizes = dict(zip("mnk", shape, strict=True))
    sources = (FactorSource(rows[0] >= 0, (rows[0],)), FactorSource(rows[1] >= 0, (rows[1],)))
    atom, recipe = next((atom, recipe) for atom, recipe in _multiplying(types, machine) if atom.name == name)
    shared = _operands(atom, sizes, sources)
    assert shared is not None, "the atom was chosen for these operands"
    return replace(with_waves(atom, recipe, sizes, types, machine, chain), shared=shared)


def _multiplying(types: DotTypes, machine: LaneMachine) -> Iterator[tuple[MatrixAtom, Recipe]]:
    """The asynchronous atoms that take operands as they are, and have waves enough."""
    for recipe in recipes(types):
        for atom in machine.chip.atoms:
            as_they_are = (atom.a, atom.b, atom.precision) == (recipe.a, recipe.b, recipe.precision) == (
                types.a, types.b, recipe.precision,
            )
            sums = atom.d == types.acc or (types.acc == "f16" and atom.d == "f32")
            enough = machine.waves % atom.waves == 0
            one = len(recipe.products) == 1 and atom.unsigned == types.unsigned and atom.imprecise <= types.imprecise
            if atom.asynchronous and as_they_are and sums and enough and one:
                yield atom, recipe


def _operands(
    atom: MatrixAtom, sizes: dict[str, int], sources: tuple[FactorSource, FactorSource]
) -> tuple[SharedOperand | None, SharedOperand | None] | None:
    """A and B in shared memory, None for one from registers; nothing where the atom does not take them so."""
    if any(sizes[dim] % size for dim, size in (("m", atom.m), ("n", atom.n), ("k", atom.k))):
        return None
    m, n, k = (sizes[dim] for dim in "mnk")
    found = (
        _operand((m, k), 1, (atom.m, atom.k), atom.a, atom.a_forms, sources[0]),
        _operand((k, n), 0, (atom.k, atom.n), atom.b, atom.b_forms, sources[1]),
    )
    fits = all((operand is not None) == source.shared for operand, source in zip(found, sources, strict=True))
    shared = (bool(atom.a_forms), bool(atom.b_forms)) == (sources[0].shared, sources[1].shared)
    return found if fits and shared else None


def _operand(
    shape: tuple[int, int], k: int, atom: tuple[int, int], element: str, forms: Sequence[SharedForm], source: FactorSource
) -> SharedOperand | None:
    candidates = (in_form(shape, _BITS[element], fast, k, atom, forms) for fast in source.rows)
    return next((found for found in candidates if found is not None), None) if source.shared else None


def _volume(atom: MatrixAtom) -> int:
    return atom.m * atom.n * atom.k


def _cost(atom: MatrixAtom) -> float:
    """Cycles for a multiply-add of all its waves."""
    return atom.cost / _volume(atom)
