"""Random programs on tiles of integers, as tile IR text: every op that moves or combines elements, in loops and branches.

Sums of i32 wrap and products are of small numbers, so that every result is exact and any order of combining gives it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import prod

import numpy as np

MOST = 1 << 11  # elements of a tile
SHAPES = (
    (64,), (256,), (1024,), (8,), (2,), (16, 32), (64, 8), (4, 128), (1, 64), (32, 32), (2, 8, 16), (4, 4, 4, 4), (2, 4, 2, 8, 2),
)


@dataclass
class Tiles:
    """A kernel line by line; `arrays` are its pointer arguments, `scalars` its numbers."""

    rng: random.Random
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    scalars: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    open: list[list[tuple[str, tuple[int, ...]]]] = field(default_factory=lambda: [[]])  # tiles in sight, by region
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def add(self, shape: tuple[int, ...], line: str) -> str:
        """A tile; `line` has `@` where its name goes."""
        name = self.name()
        self.lines.append(line.replace("@", name))
        self.open[-1].append((name, shape))
        return name

    def number(self, value: int) -> str:
        """A scalar: a constant, or an argument."""
        name = self.name()
        if self.rng.random() < 0.7:
            self.lines.append(f"{name} = tile.constant {value} : i32")
            return name
        self.scalars[name[1:]] = value
        return name

    def any(self, wanted=lambda shape: True) -> tuple[str, tuple[int, ...]] | None:
        """A tile in sight; recent ones more often."""
        found = [t for region in self.open for t in region if wanted(t[1])]
        if not found:
            return None
        return found[-1] if self.rng.random() < 0.5 else self.rng.choice(found)

    def text(self) -> str:
        parameters = [f"%{n}: !tile.ptr<i32> {{tile.divisible = 16 : i64}}" for n in self.arrays]
        parameters += [f"%{n}: i32" for n in self.scalars]
        return "\n".join([f"func.func @k({', '.join(parameters)}) {{", *self.lines, "func.return", "}"])


def tile(shape: tuple[int, ...], element: str = "i32") -> str:
    return f"tensor<{''.join(f'{s}x' for s in shape)}{element}>" if shape else element


def _block(p: Tiles, shape: tuple[int, ...], kind: str) -> tuple[str, str]:
    """The array, and the text of offsets, strides and perhaps bounds of a block that some order of dims runs through."""
    order = list(range(len(shape)))
    if p.rng.random() < 0.4:
        p.rng.shuffle(order)
    pitch = p.rng.choice([1, 1, 1, 2])
    strides, step = [0] * len(shape), pitch
    for d in reversed(order):
        strides[d] = step
        step *= shape[d]
    array = f"{kind}{len(p.arrays)}"
    p.arrays[array] = np.random.default_rng(len(p.arrays)).integers(-100, 100, step).astype(np.int32)
    zero = p.number(0)
    i32s = ", ".join(["i32"] * len(shape))
    where = f"at ({', '.join([zero] * len(shape))} : {i32s}) strides ({', '.join(p.number(s) for s in strides)} : {i32s})"
    if p.rng.random() < 0.4:
        d = p.rng.randrange(len(shape))
        bound = p.number(p.rng.randint(0, shape[d]))
        checks = ["none"] * len(shape)
        checks[d] = p.rng.choice(["upper", "both"])
        where += f" shape ({bound} : i32) checks [{', '.join(checks)}]"
    return array, where


def load(p: Tiles) -> None:
    shape = p.rng.choice(SHAPES)
    array, where = _block(p, shape, "in")
    other = p.name()
    p.lines.append(f"{other} = tile.constant 7 : {tile(shape)}")
    p.add(shape, f"@ = tile.load_block %{array} {where} other {other} : !tile.ptr<i32>, {tile(shape)}")


def gather(p: Tiles) -> None:
    """Elements whose places are computed, some of them masked off."""
    found = p.any()
    if found is None:
        return
    source, shape = found
    array = f"in{len(p.arrays)}"
    p.arrays[array] = np.random.default_rng(1).integers(-100, 100, 64).astype(np.int32)
    mask, at, other, limit = p.name(), p.name(), p.name(), p.name()
    p.lines += [
        f"{limit} = tile.constant 63 : {tile(shape)}", f"{at} = tile.andi {source}, {limit} : {tile(shape)}",
        f"{mask} = tile.nei {at}, {limit} : {tile(shape)}", f"{other} = tile.constant 5 : {tile(shape)}",
    ]
    p.add(shape, f"@ = tile.load %{array}[{at}] mask {mask} other {other} : !tile.ptr<i32>[{tile(shape)}]")


def index(p: Tiles) -> None:
    size = p.rng.choice([8, 64, 256, 512])
    start = p.rng.choice([0, 0, 3])
    p.add((size,), f"@ = tile.iota {start} to {start + size}")


def elementwise(p: Tiles) -> None:
    found = p.any()
    if found is None:
        return
    other = p.any(lambda shape: shape == found[1]) or found
    row = p.rng.choice(["addi", "subi", "xori", "mins", "maxs"])
    p.add(found[1], f"@ = tile.{row} {found[0]}, {other[0]} : {tile(found[1])}")


def trans(p: Tiles) -> None:
    found = p.any(lambda shape: len(shape) > 1)
    if found is None:
        return
    order = list(range(len(found[1])))
    p.rng.shuffle(order)
    p.add(tuple(found[1][d] for d in order), f"@ = tile.trans {found[0]} {order} : {tile(found[1])}")


def reshape(p: Tiles) -> None:
    found = p.any()
    if found is None:
        return
    shape, left = [], prod(found[1])
    while left > 1 and len(shape) < 4:
        size = 1 << p.rng.randint(0, left.bit_length() - 1)
        shape.append(size)
        left //= size
    shape.append(left)
    p.add(tuple(shape), f"@ = tile.reshape {found[0]} : {tile(found[1])} to {tile(tuple(shape))}")


def broadcast(p: Tiles) -> None:
    found = p.any(lambda shape: len(shape) < 4 and prod(shape) <= 256)
    if found is None:
        return
    name, shape = found
    axis = p.rng.randint(0, len(shape))
    wide = (*shape[:axis], 1, *shape[axis:])
    middle = p.add(wide, f"@ = tile.expand_dims {name} axis {axis} : {tile(shape)}")
    result = (*shape[:axis], p.rng.choice([2, 4, 8]), *shape[axis:])
    p.add(result, f"@ = tile.broadcast {middle} : {tile(wide)} to {tile(result)}")


def join(p: Tiles) -> None:
    found = p.any(lambda shape: 2 * prod(shape) <= MOST and len(shape) < 5)
    if found is None:
        return
    other = p.any(lambda shape: shape == found[1]) or found
    p.add((*found[1], 2), f"@ = tile.join {found[0]}, {other[0]} : {tile(found[1])}")


def split(p: Tiles) -> None:
    found = p.any(lambda shape: len(shape) > 1 and shape[-1] == 2)
    if found is None:
        return
    a, b = p.name(), p.name()
    p.lines.append(f"{a}, {b} = tile.split {found[0]} : {tile(found[1])}")
    p.open[-1] += [(a, found[1][:-1]), (b, found[1][:-1])]


def flip(p: Tiles) -> None:
    found = p.any()
    if found is not None:
        axis = p.rng.randrange(len(found[1]))
        p.add(found[1], f"@ = tile.flip {found[0]} axis {axis} : {tile(found[1])}")


def reduce(p: Tiles) -> None:
    found = p.any(lambda shape: len(shape) > 1)
    if found is None:
        return
    axis = p.rng.randrange(len(found[1]))
    left = (*found[1][:axis], *found[1][axis + 1 :])
    row = p.rng.choice(["addi", "maxs", "mins", "xori"])
    a, b, c = p.name(), p.name(), p.name()
    p.add(left, f"@ = tile.reduce {found[0]} axis {axis} : {tile(found[1])} {{\n^bb0({a} : i32, {b} : i32):\n"
                f"{c} = tile.{row} {a}, {b} : i32\ntile.reduce_return {c} : i32\n}}")


def scan(p: Tiles) -> None:
    """A running combination, which keeps the order of the elements: of maps x -> a·x + b, or by a row."""
    found = p.any()
    if found is None:
        return
    axis, words = p.rng.randrange(len(found[1])), p.rng.choice(("", " reverse"))
    a, b, c, d, e, f, g = (p.name() for _ in range(7))
    if p.rng.random() < 0.5:
        row = p.rng.choice(["addi", "maxs", "mins", "xori"])
        p.add(found[1], f"@ = tile.scan {found[0]} axis {axis}{words} : {tile(found[1])} {{\n^bb0({a} : i32, {b} : i32):\n"
                        f"{c} = tile.{row} {a}, {b} : i32\ntile.scan_return {c} : i32\n}}")
        return
    other, scales = p.any(lambda shape: shape == found[1]) or found, p.name()
    p.add(found[1], f"{scales}, @ = tile.scan {other[0]}, {found[0]} axis {axis}{words} : {tile(found[1])}, {tile(found[1])} {{\n"
                    f"^bb0({a} : i32, {b} : i32, {c} : i32, {d} : i32):\n{e} = tile.muli {a}, {c} : i32\n"
                    f"{f} = tile.muli {b}, {c} : i32\n{g} = tile.addi {f}, {d} : i32\ntile.scan_return {e}, {g} : i32, i32\n}}")


def total(p: Tiles) -> None:
    """A reduction to a scalar, and the scalar as a tile again."""
    found = p.any(lambda shape: len(shape) == 1)
    if found is None:
        return
    scalar, a, b, c = (p.name() for _ in range(4))
    p.lines.append(f"{scalar} = tile.reduce {found[0]} axis 0 : {tile(found[1])} {{\n^bb0({a} : i32, {b} : i32):\n"
                   f"{c} = tile.addi {a}, {b} : i32\ntile.reduce_return {c} : i32\n}}")
    p.add((16,), f"@ = tile.splat {scalar} : i32 to {tile((16,))}")


def largest(p: Tiles) -> None:
    """The largest element with the smallest index that has it: a reduction of two tiles."""
    found = p.any(lambda shape: len(shape) == 2)
    if found is None:
        return
    name, shape = found
    iota, row, places = p.name(), p.name(), p.name()
    p.lines += [
        f"{iota} = tile.iota 0 to {shape[1]}", f"{row} = tile.expand_dims {iota} axis 0 : {tile((shape[1],))}",
        f"{places} = tile.broadcast {row} : {tile((1, shape[1]))} to {tile(shape)}",
    ]
    n = [p.name() for _ in range(11)]
    left = (shape[0],)
    p.lines.append(
        f"{n[0]}, {n[1]} = tile.reduce {name}, {places} axis 1 : {tile(shape)}, {tile(shape)} {{\n"
        f"^bb0({n[2]} : i32, {n[3]} : i32, {n[4]} : i32, {n[5]} : i32):\n"
        f"{n[6]} = tile.gts {n[2]}, {n[4]} : i32\n{n[7]} = tile.eqi {n[2]}, {n[4]} : i32\n{n[8]} = tile.lts {n[3]}, {n[5]} : i32\n"
        f"{n[7]}a = tile.andi {n[7]}, {n[8]} : i1\n{n[6]}a = tile.ori {n[6]}, {n[7]}a : i1\n"
        f"{n[9]} = tile.select {n[6]}a, {n[2]}, {n[4]} : i32\n{n[10]} = tile.select {n[6]}a, {n[3]}, {n[5]} : i32\n"
        f"tile.reduce_return {n[9]}, {n[10]} : i32, i32\n}}"
    )
    p.open[-1] += [(n[0], left), (n[1], left)]


def dot(p: Tiles) -> None:
    """A product of small whole numbers in a narrow format, whose result is exact."""
    a = p.any(lambda shape: len(shape) == 2)
    b = a and p.any(lambda shape: len(shape) == 2 and shape[0] == a[1][1] and prod(shape) <= 1024)
    if a is None or b is None or a[1][1] > 64:
        return
    element = p.rng.choice(["f16", "bf16", "f32"])
    shape = (a[1][0], b[1][1])
    if prod(shape) > MOST:
        return
    small = [_small(p, *operand, element) for operand in (a, b)]
    acc, product = p.name(), p.name()
    operands = ", ".join(tile(s, element) for s in (a[1], b[1]))
    p.lines += [
        f"{acc} = tile.constant 1.0 : {tile(shape, 'f32')}",
        f"{product} = tile.dot {small[0]}, {small[1]}, {acc} : {operands}, {tile(shape, 'f32')}",
    ]
    p.add(shape, f"@ = tile.f2s {product} : {tile(shape, 'f32')} to {tile(shape)}")


def _small(p: Tiles, name: str, shape: tuple[int, ...], element: str) -> str:
    three, low, result = p.name(), p.name(), p.name()
    p.lines += [
        f"{three} = tile.constant 3 : {tile(shape)}", f"{low} = tile.andi {name}, {three} : {tile(shape)}",
        f"{result} = tile.s2f {low} : {tile(shape)} to {tile(shape, element)}",
    ]
    return result


def shared(p: Tiles) -> None:
    """Through a shared buffer."""
    found = p.any()
    if found is None:
        return
    kind = f"!tile.shared<{''.join(f'{s}x' for s in found[1])}i32>"
    buffer = p.name()
    p.lines += [f"{buffer} = tile.alloc_shared : {kind}", f"tile.store_shared {buffer}, {found[0]} : {kind}"]
    p.add(found[1], f"@ = tile.load_shared {buffer} : {kind}")


def copies(p: Tiles) -> None:
    """A block copied to a ring of slots, waited for and read."""
    shape = p.rng.choice([s for s in SHAPES if prod(s) >= 32])
    array, where = _block(p, shape, "in")
    dims = "".join(f"{s}x" for s in shape)
    ring, view, one = p.name(), p.name(), p.name()
    p.lines += [
        f"{one} = tile.constant 1 : i32", f"{ring} = tile.alloc_shared : !tile.shared<2 x {dims}i32>",
        f"{view} = tile.slot {ring}[{one}] : !tile.shared<2 x {dims}i32>",
        f"tile.copy_block %{array} to {view} {where} : !tile.ptr<i32>, !tile.shared<{dims}i32>", "tile.commit", "tile.wait 0",
    ]
    p.add(shape, f"@ = tile.load_shared {view} : !tile.shared<{dims}i32>")


def narrowed(p: Tiles) -> None:
    """Another width, moved about, and back: conversions of bytes, halves, pairs of words and predicates."""
    found = p.any()
    if found is None:
        return
    name, shape = found
    element = p.rng.choice(["i8", "i16", "i64", "i1"])
    there, zero = p.name(), p.name()
    if element == "i1":
        p.lines += [f"{zero} = tile.constant 0 : {tile(shape)}", f"{there} = tile.gts {name}, {zero} : {tile(shape)}"]
    else:
        row = "exts" if element == "i64" else "trunci"
        p.lines.append(f"{there} = tile.{row} {name} : {tile(shape)} to {tile(shape, element)}")
    axis = p.rng.randrange(len(shape))
    if p.rng.random() < 0.5:
        moved = p.name()
        p.lines.append(f"{moved} = tile.flip {there} axis {axis} : {tile(shape, element)}")
        there = moved
    if len(shape) > 1:
        order = list(range(len(shape)))
        p.rng.shuffle(order)
        moved = p.name()
        p.lines.append(f"{moved} = tile.trans {there} {order} : {tile(shape, element)}")
        there, shape = moved, tuple(shape[d] for d in order)
    if element != "i1" and p.rng.random() < 0.5:
        kind, buffer, moved = f"!tile.shared<{''.join(f'{s}x' for s in shape)}{element}>", p.name(), p.name()
        p.lines += [
            f"{buffer} = tile.alloc_shared : {kind}", f"tile.store_shared {buffer}, {there} : {kind}",
            f"{moved} = tile.load_shared {buffer} : {kind}",
        ]
        there = moved
    row = "trunci" if element == "i64" else "extu"
    p.add(shape, f"@ = tile.{row} {there} : {tile(shape, element)} to {tile(shape)}")


def pointers(p: Tiles) -> None:
    """A tile of pointers, moved about and loaded from, with a mask of its own."""
    found = p.any(lambda shape: len(shape) == 2)
    if found is None:
        return
    source, shape = found
    array = f"in{len(p.arrays)}"
    p.arrays[array] = np.random.default_rng(2).integers(-100, 100, 128).astype(np.int32)
    limit, at, base, there, turned, back = (p.name() for _ in range(6))
    turned_shape = shape[::-1]
    kind, turned_kind = tile(shape, "!tile.ptr<i32>"), tile(turned_shape, "!tile.ptr<i32>")
    p.lines += [
        f"{limit} = tile.constant 127 : {tile(shape)}", f"{at} = tile.andi {source}, {limit} : {tile(shape)}",
        f"{base} = tile.splat %{array} : !tile.ptr<i32> to {kind}",
        f"{there} = tile.addptr {base}, {at} : {kind}, {tile(shape)}",
        f"{turned} = tile.trans {there} [1, 0] : {kind}",
        f"{back} = tile.load {turned} : {turned_kind}",
    ]
    p.open[-1].append((back, turned_shape))


def while_loop(p: Tiles) -> None:
    """A few rounds that carry a tile and a counter."""
    found = p.any()
    if found is None or len(p.open) > 2:
        return
    start, shape = found
    zero, one, limit = p.number(0), p.number(1), p.number(p.rng.choice([0, 1, 3]))
    i, x, go, j, y, k, end, last = (p.name() for _ in range(8))
    kind = tile(shape)
    p.lines += [
        f"{end}, {last} = scf.while ({i} = {zero}, {x} = {start}) : (i32, {kind}) -> (i32, {kind}) {{",
        f"{go} = tile.lts {i}, {limit} : i32", f"scf.condition({go}) {i}, {x} : i32, {kind}", "} do {",
        f"^bb0({j} : i32, {y} : {kind}):", f"{k} = tile.addi {j}, {one} : i32",
    ]
    p.open.append([(y, shape)])
    write(p, p.rng.randint(1, 3))
    following = p.any(lambda s: s == shape)[0]
    p.open.pop()
    p.lines += [f"scf.yield {k}, {following} : i32, {kind}", "}"]
    p.open[-1].append((last, shape))


def loop(p: Tiles) -> None:
    """Two or three rounds that carry tiles."""
    carried = [t for t in {p.any(), p.any()} if t is not None]
    if not carried or len(p.open) > 2:
        return
    low, high, step, i = p.number(0), p.number(p.rng.choice([0, 2, 3])), p.number(1), p.name()
    arguments = [(p.name(), shape) for _, shape in carried]
    results = [(p.name(), shape) for _, shape in carried]
    kinds = ", ".join(tile(shape) for _, shape in carried)
    starts = ", ".join(f"{a} = {v}" for (a, _), (v, _) in zip(arguments, carried, strict=True))
    ends = ", ".join(r for r, _ in results)
    p.lines.append(f"{ends} = scf.for {i} = {low} to {high} step {step} iter_args({starts}) -> ({kinds}) : i32 {{")
    p.open.append(list(arguments))
    write(p, p.rng.randint(1, 4))
    next_ones = [p.any(lambda s, shape=shape: s == shape)[0] for _, shape in carried]
    p.open.pop()
    p.lines.append(f"scf.yield {', '.join(next_ones)} : {kinds}\n}}")
    p.open[-1] += results


def branch(p: Tiles) -> None:
    """Either of two tiles, by a number."""
    found = p.any()
    if found is None or len(p.open) > 2:
        return
    shape = found[1]
    zero, number, condition, result = p.number(0), p.number(p.rng.randint(0, 1)), p.name(), p.name()
    p.lines += [f"{condition} = tile.nei {number}, {zero} : i32", f"{result} = scf.if {condition} -> ({tile(shape)}) {{"]
    for between in ("} else {", "}"):
        p.open.append([])
        write(p, p.rng.randint(0, 3))
        p.lines.append(f"scf.yield {p.any(lambda s: s == shape)[0]} : {tile(shape)}\n{between}")
        p.open.pop()
    p.open[-1].append((result, shape))


KINDS = (
    load, load, gather, index, elementwise, elementwise, trans, reshape, broadcast, join, split, flip, reduce, scan, scan, total,
    largest, dot, dot, shared, copies, loop, branch, while_loop, narrowed, narrowed, pointers,
)


def write(p: Tiles, count: int) -> None:
    for _ in range(count):
        p.rng.choice(KINDS)(p)


def store(p: Tiles, name: str, shape: tuple[int, ...]) -> None:
    array, where = _block(p, shape, "out")
    p.arrays[array][:] = -1
    p.lines.append(f"tile.store_block %{array}, {name} {where} : !tile.ptr<i32>, {tile(shape)}")


def random_tiles(seed: int) -> Tiles:
    """A program that stores what it ends with, and some of what it had on the way."""
    p = Tiles(random.Random(seed))
    load(p)
    write(p, p.rng.randint(2, 10))
    last = p.open[0][-4:]
    for name, shape in last:
        if shape:
            store(p, name, shape)
    return p
