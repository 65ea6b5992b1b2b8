"""The matrix unit of a warpgroup as the kit describes it: wgmma's shapes, the forms of operands in shared memory, its instructions.

PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". An atom's name is its opcode, and for A in registers a word more: the
opcode does not tell them apart. B, and A unless it is in registers, is in shared memory with a swizzle of 128, 64 or 32 bytes, rows
along k or, for elements of two bytes, along the other dim. Cost: issue cycles of one of a multiprocessor's matrix units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Code, Const, Element, LinearLayout, MatrixAtom, SharedForm, SharedSource
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.meaning.fragments import Fragment, accumulator, operand_a
from tilefw_nvidia.isa.set import instruction_set

MULTIPLY = "wgmma.mma_async.sync.aligned"
_FROM_REGISTERS = " of registers"  # the end of an atom's name
ROWS, WARPS, WARP_ROWS = 64, 4, 16
_COLUMNS = (256, 128, 64, 32, 16, 8)
_K_BYTES = 32  # of a row of A, all shapes
# By PTX's element: its bits, tile IR's name, what f32 is taken for.
_ELEMENTS: Mapping[str, tuple[int, str, str]] = {
    "f16": (16, "f16", ""), "bf16": (16, "bf16", ""), "tf32": (32, "f32", "tf32"), "s8": (8, "i8", ""), "u8": (8, "i8", ""),
    "e4m3": (8, "f8E4M3FN", ""), "e5m2": (8, "f8E5M2", ""),
}
_FP8 = ("e4m3", "e5m2")  # which multiply each other too, with imprecise sums
_SUMS: Mapping[str, tuple[str, ...]] = {
    "f16": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "s8": ("s32",), "u8": ("s32",),
    "e4m3": ("f32",), "e5m2": ("f32",),
}
_RESULTS: Mapping[str, str] = {"f32": "f32", "f16": "f16", "s32": "i32"}
# Bits 62 and 63 of a descriptor, by the bytes of a row (PTX ISA, "Matrix Descriptor Format").
_SWIZZLES: Mapping[int, int] = {128: 1, 64: 2, 32: 3}
_UNIT = 16  # bytes that a descriptor's fields count
_STRIDE_FIELD, _SWIZZLE_FIELD = 32, 62


def warpgroup_atoms(chip: Chip) -> Iterator[MatrixAtom]:
    """The products of a warpgroup that the chip has a rate for."""
    for element in _ELEMENTS:
        for sums in _SUMS[element] if element in chip.warpgroup_rates else ():
            for other, columns in product(_FP8 if element in _FP8 else (element,), _COLUMNS):
                opcode = f"{MULTIPLY}.m{ROWS}n{columns}k{_K_BYTES * 8 // _ELEMENTS[element][0]}.{sums}.{element}.{other}"
                if instruction_set(chip).opcode(opcode).exists:
                    yield from (_atom(opcode, (element, other), sums, columns, chip, registers) for registers in (False, True))


def _atom(opcode: str, elements: tuple[str, str], sums: str, n: int, chip: Chip, registers: bool) -> MatrixAtom:
    element = elements[0]
    bits, name, precision = _ELEMENTS[element]
    k = _K_BYTES * 8 // bits
    forms = tuple(SharedForm(size, along) for size in _SWIZZLES for along in ((True, False) if bits == 16 else (True,)))
    left = _of_warps(operand_a(element, bits, WARP_ROWS, k), k) if registers else _pointed((ROWS, k))
    return MatrixAtom(
        opcode + _FROM_REGISTERS * registers, ROWS, n, k, name, _ELEMENTS[elements[1]][1], _RESULTS[sums], left, _pointed((k, n)),
        _of_warps(accumulator(sums, WARP_ROWS), n), cost=ROWS * n * k / (WARPS * chip.warpgroup_rates[element]),
        precision=precision, unsigned=element == "u8", waves=WARPS, asynchronous=True,
        a_forms=() if registers else forms, b_forms=forms, imprecise=element in _FP8,
    )


def _of_warps(fragment: Fragment, columns: int) -> LinearLayout:
    """A fragment of each warp's 16 rows, which goes on along the columns in further registers."""
    held = sum(name[0] == "r" for name in (*fragment.rows, *fragment.columns))
    more = columns.bit_length() - 1 - len(fragment.columns)
    warp = LinearLayout.of_matrix(fragment.rows, (*fragment.columns, *(f"r{held + i}" for i in range(more))))
    return LinearLayout((ROWS, columns), warp.register, warp.lane, (WARP_ROWS * columns, 2 * WARP_ROWS * columns))


def _pointed(shape: tuple[int, int]) -> LinearLayout:
    """What a descriptor points at: all threads of the warpgroup have the same."""
    return LinearLayout(shape, (), (0,) * 5, (0, 0))


def begin(code: Code, factors: Sequence[Slice]) -> None:
    """wgmma.fence: the unit sees the registers as they are now; those of A are written before it."""
    code.effect("wgmma.fence.sync.aligned", implicit_uses=factors)


def commit(code: Code) -> None:
    """wgmma.commit_group."""
    code.effect("wgmma.commit_group.sync.aligned")


def wait(code: Code, pending: int, sums: Sequence[Slice], factors: Sequence[Slice]) -> None:
    """wgmma.wait_group: what reads the sums stays behind it, and nobody has the registers of A before it."""
    code.effect("wgmma.wait_group.sync.aligned", (), [pending], implicit_uses=(*sums, *factors), implicit_defs=sums)


def fence_view(code: Code, arrays: bool) -> None:
    """The unit works in the asynchronous proxy: it sees what the generic one wrote behind a fence between them (PTX ISA, "Async
    proxy")."""
    code.effect("fence.proxy.async" if arrays else "fence.proxy.async.shared::cta")


def multiply(
    code: Code, atom: MatrixAtom, a: Sequence[Slice] | SharedSource, b: Sequence[Slice] | SharedSource, d: Sequence[Slice],
    adds: Element,
) -> None:
    """One wgmma: D, A or its descriptor, B's descriptor, whether it adds to D, signs of A and B, and how they lie."""
    opcode = atom.name.removesuffix(_FROM_REGISTERS)
    element = opcode.rpartition(".")[2]
    bits = _ELEMENTS[element][0]
    signs = [1, 1] if element not in ("s8", "u8") else []
    orders = [int(not each.form.along_k) for each in (a, b) if isinstance(each, SharedSource)] if bits == 16 else []
    operands = [register for each in (a, b) for register in _operand(code, each)]
    predicate = code.inst("mov.pred", "i1", adds.bits) if isinstance(adds, Const) else adds
    code.effect(opcode, d, [*operands, predicate, *signs, *orders], implicit_uses=d)


def _operand(code: Code, operand: Sequence[Slice] | SharedSource) -> Sequence[Operand]:
    return [_descriptor(code, operand)] if isinstance(operand, SharedSource) else operand


def _descriptor(code: Code, source: SharedSource) -> Slice:
    """The matrix descriptor: that of where addresses begin, and beyond it by an addition to its lowest field."""
    form = source.form
    low = code.inst("shr.u32", "w32", source.address, _UNIT.bit_length() - 1)
    fields = source.row_stride // _UNIT << 16 | form.pattern_bytes // _UNIT << _STRIDE_FIELD
    fields |= _SWIZZLES[form.row_bytes] << _SWIZZLE_FIELD
    if not form.along_k:  # nothing is behind a row along k: of k an instruction takes no more than the narrowest has
        low = code.inst("or.b32", "w32", low, fields & 0xFFFFFFFF)
    first = code.inst("mov.b64", "w64", low, _signed(fields >> 32))
    return code.inst("add.s64", "w64", first, source.immediate // _UNIT) if source.immediate else first


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
