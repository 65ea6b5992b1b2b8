"""Makes the ops of tile IR at the current place and gives each its source location: the only file here that names op classes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

import tilefw.language as tl
from tilefw.frontend.values import RuntimeValue, lowered, tile_type
from tilefw.tile import types
from tilefw.tile.dialect import elementwise_op, ops
from tilefw.tile.dialect.base import dense_i64, string_attr


class Builder:
    """Appends ops to the end of `block`, stamped with `location`; `debug` says whether this is a debug build. `warps` are
    those of a program and the lanes of one, None where that is not known."""

    __slots__ = (
        "argument_hints", "block", "debug", "entry", "entry_ops", "entry_values", "hidden", "location", "steps", "warps",
    )

    def __init__(self, block: Block, debug: bool = False, warps: tuple[int, int] | None = None) -> None:
        self.block = block
        self.location: LocationAttr = UNKNOWN_LOC
        self.debug = debug
        self.warps = warps
        # Statements compiled so far, unrolled ones each time: what bounds the time that a compilation takes.
        self.steps = 0
        # Hints on arguments of the kernel, which become attributes of its function's parameters.
        self.argument_hints: dict[SSAValue, dict[str, Attribute]] = {}
        # The kernel's own block, how many ops were put at its beginning, and what they compute, by name.
        self.entry = block
        self.entry_ops = 0
        self.entry_values: dict[str, RuntimeValue] = {}
        # Arguments that the runtime passes by itself, each by the words that tell it which (`Parameter.hidden`).
        self.hidden: dict[str, SSAValue] = {}

    def insert(self, op: Operation) -> Operation:
        op.location = self.location
        self.block.add_op(op)
        return op

    def at_entry(self, name: str, build: Callable[[], RuntimeValue]) -> RuntimeValue:
        """A value computed once where the kernel begins, for all that ask for it by this name."""
        if name not in self.entry_values:
            block = Block()
            with self.inside(block):
                self.entry_values[name] = build()
            for op in list(block.ops):
                op.detach()
                self.entry.insert_ops_before([op], first) if (first := self._behind_entry_ops()) else self.entry.add_op(op)
                self.entry_ops += 1
        return self.entry_values[name]

    def _behind_entry_ops(self) -> Operation | None:
        return next(islice(self.entry.ops, self.entry_ops, None), None)

    def hidden_argument(self, words: str, name: str, type: tl.dtype) -> RuntimeValue:
        """The argument, behind all others, that the runtime knows by `words` (`Parameter.hidden`)."""
        if words not in self.hidden:
            self.hidden[words] = argument = self.entry.insert_arg(lowered(type), len(self.entry.args))
            self.argument_hints[argument] = {"tile.name": string_attr(name), "tile.hidden": string_attr(words)}
            name_value(argument, name.replace(".", "_"))
        return RuntimeValue(self.hidden[words], type)

    def value(self, op: Operation, type: tl.dtype) -> RuntimeValue:
        """Insert an op with one result, which has `type` in the language."""
        return RuntimeValue(self.insert(op).results[0], type)

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Append to another block for a while."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    @contextmanager
    def asynchronous(self) -> Iterator[None]:
        """Loads and stores that are inserted meanwhile may be made later, until the program's next fence for the system."""
        last = self.block.last_op
        yield
        op = self.block.first_op if last is None else last.next_op
        while op is not None:
            if isinstance(op, ops.LoadOp | ops.StoreOp | ops.LoadBlockOp | ops.StoreBlockOp):
                op.properties["asynchronous"] = UnitAttr()
            op = op.next_op

    def row(self, name: str, *operands: RuntimeValue, type: tl.dtype | None = None) -> RuntimeValue:
        """An op of the elementwise table whose result has the type of its last operand, or `type`."""
        op = elementwise_op.build(name, *[operand.ssa for operand in operands])
        return self.value(op, operands[-1].type if type is None else type)

    def compare(self, name: str, left: RuntimeValue, right: RuntimeValue) -> RuntimeValue:
        return self.row(name, left, right, type=left.type.with_element_ty(tl.int1))

    def cast(self, name: str, value: RuntimeValue, element: tl.dtype, rounding: Any = None) -> RuntimeValue:
        """A cast row to `element`, keeping the shape."""
        type = value.type.with_element_ty(element)
        return self.value(elementwise_op.build(name, value.ssa, result=lowered(type), rounding=rounding), type)

    def retyped(self, value: RuntimeValue, element: tl.dtype) -> RuntimeValue:
        """The same SSA value under another type of the language that tile IR spells alike (int32 and uint32)."""
        return RuntimeValue(value.ssa, value.type.with_element_ty(element))

    def constant(self, number: float | int | bool, element: tl.dtype, shape: tuple[int, ...] = ()) -> RuntimeValue:
        """A constant scalar or splat of an integer type or a float type of 16 bits or more."""
        type = tile_type(element, shape)
        number = encode_integer(int(number), element) if element.is_int() else nearest(float(number), element)
        return self.value(ops.ConstantOp(number, lowered(type)), type)

    def splat(self, value: RuntimeValue, shape: tuple[int, ...]) -> RuntimeValue:
        type = tile_type(value.dtype, shape)
        return self.value(ops.SplatOp(value.ssa, lowered(type)), type)

    def broadcast(self, value: RuntimeValue, shape: tuple[int, ...]) -> RuntimeValue:
        type = tile_type(value.dtype, shape)
        return self.value(ops.BroadcastOp(value.ssa, lowered(type)), type)

    def expand_dims(self, value: RuntimeValue, axis: int) -> RuntimeValue:
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        return self.value(ops.ExpandDimsOp(value.ssa, axis), tile_type(value.dtype, shape))

    def reshape(self, value: RuntimeValue, shape: tuple[int, ...]) -> RuntimeValue:
        type = tile_type(value.dtype, shape)
        return self.value(ops.ReshapeOp(value.ssa, lowered(type)), type)

    def transpose(self, value: RuntimeValue, order: tuple[int, ...]) -> RuntimeValue:
        type = tile_type(value.dtype, tuple(value.shape[axis] for axis in order))
        return self.value(ops.TransOp(value.ssa, order), type)

    def join(self, left: RuntimeValue, right: RuntimeValue) -> RuntimeValue:
        return self.value(ops.JoinOp(left.ssa, right.ssa), tile_type(left.dtype, (*left.shape, 2)))

    def split(self, value: RuntimeValue) -> tuple[RuntimeValue, RuntimeValue]:
        first, second = self.insert(ops.SplitOp(value.ssa)).results
        type = tile_type(value.dtype, value.shape[:-1])
        return RuntimeValue(first, type), RuntimeValue(second, type)

    def flip(self, value: RuntimeValue, axis: int) -> RuntimeValue:
        return self.value(ops.FlipOp(value.ssa, axis), value.type)

    def gather(self, source: RuntimeValue, index: RuntimeValue, axis: int) -> RuntimeValue:
        return self.value(ops.GatherOp(source.ssa, index.ssa, axis), tile_type(source.dtype, index.shape))

    def reduce(
        self, tiles: Sequence[RuntimeValue], axis: int, combine: Block, results: Sequence[RuntimeValue]
    ) -> list[RuntimeValue]:
        """The tiles reduced together along `axis` by a block that combines two elements of each and gives `results`."""
        with self.inside(combine):
            self.insert(ops.ReduceReturnOp([result.ssa for result in results]))
        op = self.insert(ops.ReduceOp([tile.ssa for tile in tiles], axis, Region(combine)))
        shape = (*tiles[0].shape[:axis], *tiles[0].shape[axis + 1 :])
        return [RuntimeValue(ssa, tile_type(tile.dtype, shape)) for ssa, tile in zip(op.results, tiles, strict=True)]

    def scan(
        self, tiles: Sequence[RuntimeValue], axis: int, reverse: bool, combine: Block, results: Sequence[RuntimeValue]
    ) -> list[RuntimeValue]:
        """The tiles scanned together along `axis` by a block that combines two elements of each and gives `results`."""
        with self.inside(combine):
            self.insert(ops.ScanReturnOp([result.ssa for result in results]))
        op = self.insert(ops.ScanOp([tile.ssa for tile in tiles], axis, Region(combine), reverse))
        return [RuntimeValue(ssa, tile.type) for ssa, tile in zip(op.results, tiles, strict=True)]

    def dot(
        self, left: RuntimeValue, right: RuntimeValue, acc: RuntimeValue, precision: str, unsigned: bool, imprecise: bool = False
    ) -> RuntimeValue:
        return self.value(ops.DotOp(left.ssa, right.ssa, acc.ssa, precision, unsigned, imprecise), acc.type)

    def dot_scaled(
        self, left: RuntimeValue, right: RuntimeValue, acc: RuntimeValue, scales: Sequence[RuntimeValue | None],
        packings: Sequence[str],
    ) -> RuntimeValue:
        """`scales` and `packings` are those of the left operand and of the right one."""
        found = [None if scale is None else scale.ssa for scale in scales]
        return self.value(ops.DotScaledOp(left.ssa, right.ssa, acc.ssa, found[0], found[1], *packings), acc.type)

    def iota(self, start: int, end: int) -> RuntimeValue:
        return self.value(ops.IotaOp(start, end), tile_type(tl.int32, (end - start,)))

    def program_id(self, axis: int) -> RuntimeValue:
        return self.value(ops.ProgramIdOp(axis), tl.int32)

    def num_programs(self, axis: int) -> RuntimeValue:
        return self.value(ops.NumProgramsOp(axis), tl.int32)

    def observe(self, what: str) -> RuntimeValue:
        op = ops.ObserveOp(what)
        return self.value(op, tl.int64 if types.dtype_of(op.result.type).bits == 64 else tl.int32)

    def add_pointer(self, pointer: RuntimeValue, offset: RuntimeValue) -> RuntimeValue:
        return self.value(ops.AddPtrOp(pointer.ssa, offset.ssa), pointer.type)

    def load(
        self, pointer: RuntimeValue, mask: RuntimeValue | None, other: RuntimeValue | None, cache: str, eviction: str,
        volatile: bool,
    ) -> RuntimeValue:
        op = ops.LoadOp(
            pointer.ssa,
            mask=_ssa(mask),
            other=_ssa(other),
            cache=cache,
            eviction=eviction,
            volatile=volatile,
        )
        return self.value(op, pointer.type.with_element_ty(element_of(pointer)))

    def store(self, pointer: RuntimeValue, value: RuntimeValue, mask: RuntimeValue | None, cache: str, eviction: str) -> None:
        self.insert(ops.StoreOp(pointer.ssa, value.ssa, mask=_ssa(mask), cache=cache, eviction=eviction))

    def load_block(
        self, base: RuntimeValue, offsets: Sequence[RuntimeValue], strides: Sequence[RuntimeValue],
        bounds: Sequence[RuntimeValue | None], block: tuple[int, ...], other: RuntimeValue | None, **hints: Any,
    ) -> RuntimeValue:
        """A block of a strided array; an axis with a bound is checked against it and against 0."""
        op = ops.LoadBlockOp(
            base.ssa, _values(bounds), [s.ssa for s in strides], [o.ssa for o in offsets], block, _ssa(other), **hints
        )
        return self.value(op, tile_type(element_of(base), block))

    def store_block(
        self, base: RuntimeValue, value: RuntimeValue, offsets: Sequence[RuntimeValue], strides: Sequence[RuntimeValue],
        bounds: Sequence[RuntimeValue | None], **hints: Any,
    ) -> None:
        """The counterpart of `load_block`."""
        strided, begin = [s.ssa for s in strides], [o.ssa for o in offsets]
        self.insert(ops.StoreBlockOp(base.ssa, value.ssa, _values(bounds), strided, begin, **hints))

    def atomic_rmw(
        self, kind: str, pointer: RuntimeValue, value: RuntimeValue, mask: RuntimeValue | None, order: str, scope: str
    ) -> RuntimeValue:
        op = ops.AtomicRmwOp(kind, pointer.ssa, value.ssa, mask=_ssa(mask), order=order, scope=scope)
        return self.value(op, value.type)

    def atomic_cas(self, pointer: RuntimeValue, compare: RuntimeValue, value: RuntimeValue, order: str, scope: str) -> RuntimeValue:
        return self.value(ops.AtomicCasOp(pointer.ssa, compare.ssa, value.ssa, order=order, scope=scope), value.type)

    def multicast(
        self, action: str, kind: str, pointer: RuntimeValue, value: RuntimeValue, context: RuntimeValue, mask: RuntimeValue | None,
        order: str = "relaxed", scope: str = "system",
    ) -> RuntimeValue:
        op = ops.MulticastOp(
            action, kind, pointer.ssa, value.ssa, context.ssa, mask=_ssa(mask), order=order, scope=scope,
        )
        return self.value(op, value.type)

    def hint(self, value: RuntimeValue, name: str, numbers: tuple[int, ...]) -> None:
        """Note a fact on the op or kernel argument that made a value.

        Only where the value was made in this very block: under a branch the fact may hold for that branch alone.
        """
        owner = value.ssa.owner
        if owner is self.block:
            self.argument_hints.setdefault(value.ssa, {})[name] = dense_i64(numbers)
        elif isinstance(owner, Operation) and owner.parent is self.block:
            owner.attributes[name] = dense_i64(numbers)

    def barrier(self) -> None:
        self.insert(ops.BarrierOp())

    def fence(self, order: str, scope: str) -> None:
        self.insert(ops.FenceOp(order, scope))

    def trap(self, message: str) -> None:
        self.insert(ops.TrapOp(message))

    def trap_where(self, fails: RuntimeValue, message: str) -> None:
        """Stop the program where a condition, an int1, is true."""
        then, otherwise = Block(), Block()
        with self.inside(then):
            self.trap(message)
        self.branch(fails, then, otherwise, [])

    def inline_asm(
        self, text: str, constraints: str, pack: int, values: Sequence[RuntimeValue], results: Sequence[tl.dtype], pure: bool
    ) -> list[RuntimeValue]:
        """Assembly text on values of one shape; `results` are types in the language."""
        kinds = [lowered(type) for type in results]
        op = self.insert(ops.InlineAsmOp(text, constraints, pack, [v.ssa for v in values], kinds, pure))
        return [RuntimeValue(ssa, type) for ssa, type in zip(op.results, results, strict=True)]

    def print(self, prefix: str, values: Sequence[RuntimeValue], elements: Sequence[str], hex: bool) -> None:
        self.insert(ops.PrintOp(prefix, [value.ssa for value in values], elements, hex))

    def until(
        self, state: Sequence[RuntimeValue], step: Callable[..., tuple[RuntimeValue, Sequence[RuntimeValue]]]
    ) -> list[RuntimeValue]:
        """Take steps from one state to the next as long as a step says to go on (int1); the state after the last one."""
        types = [lowered(value.type) for value in state]
        test, body = Block(arg_types=types), Block(arg_types=types)
        with self.inside(test):
            before = [RuntimeValue(ssa, value.type) for ssa, value in zip(test.args, state, strict=True)]
            goes_on, after = step(*before)
            self.insert(scf.ConditionOp(goes_on.ssa, *[value.ssa for value in after]))
        with self.inside(body):
            self.insert(scf.YieldOp(*body.args))
        loop = self.insert(scf.WhileOp([value.ssa for value in state], types, Region(test), Region(body)))
        return [RuntimeValue(ssa, value.type) for ssa, value in zip(loop.results, state, strict=True)]

    def branch(
        self, condition: RuntimeValue, then: Block, otherwise: Block, results: Sequence[tuple[RuntimeValue, RuntimeValue]]
    ) -> list[SSAValue]:
        """An `scf.if` over two filled blocks; `results` pairs what each yields. Gives the values after it."""
        for block, side in ((then, 0), (otherwise, 1)):
            with self.inside(block):
                self.insert(scf.YieldOp(*[pair[side].ssa for pair in results]))
        op = scf.IfOp(condition.ssa, [lowered(pair[0].type) for pair in results], [then], [otherwise])
        return list(self.insert(op).results)


def _values(bounds: Sequence[RuntimeValue | None]) -> list[SSAValue | None]:
    return [_ssa(bound) for bound in bounds]


def _ssa(value: RuntimeValue | None) -> SSAValue | None:
    return None if value is None else value.ssa


_ONLY_NUMBERS = re.compile("(_[0-9]+)+")  # xDSL takes a number at the end off a name: nothing would be left of `_0`


def name_value(value: SSAValue, name: str) -> None:
    """Name a value after a variable, unless it has a name or IR cannot spell this one."""
    if value.name_hint is None and name.isascii() and not _ONLY_NUMBERS.fullmatch(name):
        value.name_hint = name


def element_of(pointer: RuntimeValue) -> tl.dtype:
    """What a pointer, or a tile of pointers, points to."""
    assert isinstance(pointer.dtype, tl.pointer_type)
    return pointer.dtype.element_ty


def encode_integer(number: int, element: tl.dtype) -> int:
    """The number modulo the width, in the signed range that IR prints; 0 or 1 for int1."""
    if element.is_bool():
        return int(bool(number))
    bits = element.int_bitwidth
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def nearest(number: float, element: tl.dtype) -> float:
    """The value of a float type nearest to a number, ties to even; beyond the range infinity (IEEE 754-2019, 4.3.1)."""
    if not math.isfinite(number) or number == 0.0 or element.is_fp64():
        return number
    bits, bias = element.fp_mantissa_width, element.exponent_bias
    _, exponent = math.frexp(number)
    step = max(exponent - 1, 1 - bias) - bits
    rounded = math.ldexp(round(math.ldexp(number, -step)), step)
    limit = math.ldexp(2.0 - 2.0**-bits, bias)
    return math.copysign(math.inf, number) if abs(rounded) > limit else math.copysign(rounded, number)


def power_of_two(extent: int) -> bool:
    return extent > 0 and extent & (extent - 1) == 0


def element_count(shape: Sequence[int]) -> int:
    return math.prod(shape)
