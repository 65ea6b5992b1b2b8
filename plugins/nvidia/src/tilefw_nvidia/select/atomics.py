"""Atomic accesses: which ones a chip has, and their opcodes with order and scope.

PTX ISA, "Parallel Synchronization and Communication: atom, red, membar/fence, vote.sync" and "Memory Consistency Model". `red` is
an `atom` whose old value nobody gets; it takes no order but .relaxed and .release.
"""

from __future__ import annotations

from functools import cache

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import AtomicAccess, Code, Const, Element
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.set import instruction_set

SCOPES = {"workgroup": "cta", "device": "gpu", "system": "sys"}
_REDUCTION_ORDERS = ("relaxed", "release")
_ALL_LANES = -1  # the membermask of a whole warp

# Kind and type of a lane's access to operation and type of PTX.
_INTEGERS = {
    "add": "add.u{bits}", "and": "and.b{bits}", "or": "or.b{bits}", "xor": "xor.b{bits}", "xchg": "exch.b{bits}",
    "cas": "cas.b{bits}", "mins": "min.s{bits}", "maxs": "max.s{bits}", "minu": "min.u{bits}", "maxu": "max.u{bits}",
}
_OPERATIONS = {
    **{f"{kind}.i{bits}": form.format(bits=bits) for kind, form in _INTEGERS.items() for bits in (32, 64)},
    "cas.i16": "cas.b16", "add.f16": "add.noftz.f16", "add.f16x2": "add.noftz.f16x2", "add.f32": "add.f32", "add.f64": "add.f64",
}
_LOADS = {f"load.i{bits}": f"b{bits}" for bits in (16, 32, 64)}
# What instructions for multimem addresses combine one element by.
_COMBINED = {
    **{
        f"{kind}.i{bits}": form.format(bits=bits)
        for kind, form in _INTEGERS.items() for bits in (32, 64) if kind not in ("xchg", "cas")
    },
    "add.f32": "add.f32", "add.f64": "add.f64",
}
_PAIRS = ("f16x2", "bf16x2")  # added up in fp32, and rounded once: the results of other orders differ by no more
_MULTIMEM = {
    **{f"multicast_load_{key}": f"multimem.ld_reduce.{{order}}.{{scope}}.global.{form}" for key, form in _COMBINED.items()},
    **{f"multicast_{key}": f"multimem.red.{{order}}.{{scope}}.global.{form}" for key, form in _COMBINED.items()},
    **{f"multicast_load_add.{pair}": f"multimem.ld_reduce.{{order}}.{{scope}}.global.add.acc::f32.{pair}" for pair in _PAIRS},
    **{f"multicast_add.{pair}": f"multimem.red.{{order}}.{{scope}}.global.add.{pair}" for pair in _PAIRS},
    **{f"multicast_store.{t}": f"multimem.st.{{order}}.{{scope}}.global.{form}" for t, form in (
        ("i32", "b32"), ("i64", "b64"), ("f32", "f32"), ("f64", "f64"),
    )},
}
_WITHOUT_REDUCTION = ("xchg", "cas")


@cache
def served(chip: Chip) -> frozenset[str]:
    """The accesses that one instruction of the chip makes, as `kind.type`."""
    instructions = instruction_set(chip)
    operations = {key for key, form in _OPERATIONS.items() if instructions.opcode(f"atom.relaxed.gpu.global.{form}").exists}
    spread = {key for key, form in _MULTIMEM.items() if instructions.opcode(form.format(order="relaxed", scope="sys")).exists}
    return frozenset({*operations, *_LOADS, *spread})


_FORMS = {"i16": "e16", "f16": "e16", "i32": "w32", "f32": "w32", "f16x2": "w32", "bf16x2": "w32", "i64": "w64", "f64": "w64"}
_MOVES = {"e16": "mov.b16", "w32": "mov.b32", "w64": "mov.b64"}


def access(code: Code, wanted: AtomicAccess) -> None:
    """Emit one."""
    key = f"{wanted.kind}.{wanted.type}"
    where: list[Operand] = [wanted.address, wanted.immediate]
    facts = {"predicate": wanted.predicate, "buffer": wanted.buffer}
    scope = SCOPES[wanted.scope]
    if key in _LOADS:
        assert wanted.result is not None
        code.effect(f"ld.relaxed.{scope}.global.{_LOADS[key]}", [wanted.result], where, **facts)
        return
    if key in _MULTIMEM:
        opcode = _MULTIMEM[key].format(order=wanted.order, scope=scope)
        given = [_register(code, operand, _FORMS[wanted.type]) for operand in wanted.operands]
        code.effect(opcode, [] if wanted.result is None else [wanted.result], [*where, *given], **facts)
        return
    operands = [_register(code, operand, _FORMS[wanted.type]) for operand in wanted.operands]
    silent = wanted.result is None and wanted.kind not in _WITHOUT_REDUCTION and wanted.order in _REDUCTION_ORDERS
    opcode = f"{'red' if silent else 'atom'}.{wanted.order}.{scope}.global.{_OPERATIONS[key]}"
    result = [] if silent else [wanted.result or code.new_register(_FORMS[wanted.type])]
    code.effect(opcode, result, [*where, *operands], **facts)


def fence(code: Code, scope: str) -> None:
    """PTX has one for both directions."""
    code.effect(f"fence.acq_rel.{SCOPES[scope]}")


def any_lane(code: Code, predicate: Element) -> Slice:
    """Of the warp, which stays together."""
    return code.inst("vote.sync.any.pred", "i1", code.chip.operand(code, predicate), _ALL_LANES)


def _register(code: Code, operand: Element, form: str) -> Slice:
    return code.inst(_MOVES[form], form, operand.bits) if isinstance(operand, Const) else operand
