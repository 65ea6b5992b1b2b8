"""One product of a warpgroup as a kernel: tiles laid out in shared memory as a descriptor says, multiplied, and stored."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tilefw_nvidia.isa.meaning.descriptors import SharedTile

ROWS, K_BYTES = 64, 32
NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}
PITCH = {0: 16, 1: 128, 2: 64, 3: 32}


@dataclass(frozen=True)
class Product:
    """m64nNk of a type: `types` are the modifiers behind the shape; modes are swizzles; `orders` the transposes of A and B."""

    types: str
    n: int
    element_bytes: int
    sums: str
    a_in_registers: bool = False
    modes: tuple[int, int] = (1, 1)
    orders: tuple[int, int] = (0, 0)
    scales: tuple[int, int] = (1, 1)
    accumulate: int = 1

    @property
    def k(self) -> int:
        return K_BYTES // self.element_bytes

    @property
    def registers(self) -> int:
        return self.n // (4 if self.sums == "f16" else 2)


def descriptor(start: int, leading: int, stride: int, mode: int) -> int:
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62


def tile(values: np.ndarray, mode: int, transposed: int) -> tuple[np.ndarray, int, int]:
    """Bytes of shared memory that hold `values` [rows, k], placed chunk by chunk; with the offsets that say so."""
    rows = values.shape[0]
    leading, stride = (128, 512) if mode == 0 else (2 * 8 * PITCH[mode], 8 * PITCH[mode])
    if mode == 0 and transposed:
        leading, stride = rows // 8 * 128, 128
    if mode and transposed:
        leading, stride = 16 * PITCH[mode], 8 * PITCH[mode]
    if mode == 0 and not transposed:
        leading, stride = 128, 256
    places = SharedTile("", rows, not transposed).places(descriptor(0, leading, stride, mode))
    memory = np.zeros(max(int(places.max()) + 16, 1024) + 1023 & ~1023, np.uint8)
    lines = values if not transposed else values.T
    chunks = np.ascontiguousarray(lines).view(np.uint8).reshape(*places.shape, 16)
    for place, chunk in zip(places.reshape(-1), chunks.reshape(-1, 16), strict=True):
        memory[place : place + 16] = chunk
    return memory, leading, stride


def kernel(product: Product, shapes: list[tuple[int, int]], sizes: tuple[int, int]) -> str:
    """The first buffer has A's and B's bytes, the second C's registers, the third takes D's; the fourth has A's registers. Each has
    a part for each workgroup."""
    (a_leading, a_stride), (b_leading, b_stride) = shapes
    a_word = descriptor(0, a_leading, a_stride, product.modes[0])
    b_word = descriptor(0, b_leading, b_stride, product.modes[1])
    held = ", ".join(f"%d{i}" for i in range(product.registers))
    left = "{%a0, %a1, %a2, %a3}" if product.a_in_registers else "%q4"
    integer = product.sums == "s32"
    scales = "" if integer else f", {product.scales[0]}, {product.scales[1]}"
    orders = product.orders[1:] if product.a_in_registers else product.orders
    orders = "".join(f", {order}" for order in orders) if product.element_bytes == 2 else ""
    copies = "\n".join(
        f"ld.global.v4.b32 {{%w0, %w1, %w2, %w3}}, [%q0 + {2048 * i}];\nst.shared.v4.b32 [%s + {2048 * i}], {{%w0, %w1, %w2, %w3}};"
        for i in range((sizes[0] + sizes[1]) // 2048)
    )
    loads = "\n".join(f"ld.global.b32 %d{i}, [%q1 + {512 * i}];" for i in range(product.registers))
    loads += "\n" + "\n".join(f"ld.global.b32 %a{i}, [%q3 + {512 * i}];" for i in range(4))
    stores = "\n".join(f"st.global.b32 [%q2 + {512 * i}], %d{i};" for i in range(product.registers))
    return f""".version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a0, .param .u64 a1, .param .u64 a2, .param .u64 a3)
{{
.reg .b32 %w<4>, %t, %s, %u, %a<4>, %d<{product.registers}>; .reg .b64 %q<8>; .reg .pred %p;
.shared .align 1024 .b8 tiles[{sum(sizes)}];
mov.u32 %t, %tid.x;
ld.param.u64 %q0, [a0]; ld.param.u64 %q1, [a1]; ld.param.u64 %q2, [a2]; ld.param.u64 %q3, [a3];
mad.wide.u32 %q0, %t, 16, %q0; mad.wide.u32 %q1, %t, 4, %q1; mad.wide.u32 %q2, %t, 4, %q2; mad.wide.u32 %q3, %t, 4, %q3;
mov.u32 %u, %ctaid.x;
mad.wide.u32 %q0, %u, {sum(sizes)}, %q0; mad.wide.u32 %q1, %u, {512 * product.registers}, %q1;
mad.wide.u32 %q2, %u, {512 * product.registers}, %q2; mad.wide.u32 %q3, %u, 2048, %q3;
mov.u32 %u, tiles;
mad.lo.u32 %s, %t, 16, %u;
{copies}
{loads}
shr.u32 %u, %u, 4;
cvt.u64.u32 %q6, %u;
add.u64 %q4, %q6, {a_word};
add.u64 %q5, %q6, {b_word + (sizes[0] >> 4)};
setp.eq.u32 %p, 1, {product.accumulate};
fence.proxy.async.shared::cta;
bar.sync 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n{product.n}k{product.k}{product.types} {{{held}}}, {left}, %q5, %p{scales}{orders};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{stores}
ret;
}}
"""


def spread_a(a: np.ndarray) -> np.ndarray:
    """[4 registers, 128 lanes] of A: of each warp's 16 rows, blocks of 8 rows by 16 bytes, first down, then along k."""
    words = np.ascontiguousarray(a).view(np.uint32).reshape(4, 2, 8, 2, 4)  # warp, half, row, half of k, word
    return np.ascontiguousarray(words.transpose(3, 1, 0, 2, 4)).reshape(4, 128)


def spread_sums(c: np.ndarray) -> np.ndarray:
    """[registers, 128 lanes] of C: of eight columns after eight, pairs of a row."""
    parts = c.reshape(4, 2, 8, -1, 4, 2)  # warp, half, row, block, pair, column of the pair
    if c.dtype.itemsize == 2:
        return np.ascontiguousarray(parts.transpose(3, 1, 0, 2, 4, 5)).reshape(-1, 128, 2).view(np.uint32)[..., 0]
    return np.ascontiguousarray(parts.transpose(3, 1, 5, 0, 2, 4)).view(np.uint32).reshape(-1, 128)


def gather_sums(registers: np.ndarray, n: int, kind: type) -> np.ndarray:
    """The inverse."""
    if np.dtype(kind).itemsize == 2:
        parts = registers.reshape(n // 8, 2, 4, 8, 4).view(kind).reshape(n // 8, 2, 4, 8, 4, 2)
        return parts.transpose(2, 1, 3, 0, 4, 5).reshape(ROWS, n)
    parts = registers.view(kind).reshape(n // 8, 2, 2, 4, 8, 4)
    return parts.transpose(3, 1, 4, 0, 5, 2).reshape(ROWS, n)


def operands(product: Product, seed: int, spread: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A [64, k], B [n, k] and C [64, n], with exponents that differ by up to twice `spread`."""
    rng = np.random.default_rng(seed)

    def sample(shape: tuple[int, int], kind: str) -> np.ndarray:
        if kind in ("s8", "u8", "s32"):
            limits = np.iinfo(NUMPY[kind] if kind != "s32" else np.int16)
            return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(NUMPY[kind])
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
        found = values.astype(NUMPY[kind])
        return (found.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if kind == "tf32" else found

    a, b = product.types.split(".")[-2:]
    return sample((ROWS, product.k), a), sample((product.n, product.k), b), sample((ROWS, product.n), product.sums)


def text_and_buffers(product: Product, *all_operands: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[str, list[np.ndarray]]:
    """The kernel, and its buffers for the operands of each workgroup."""
    parts: list[list[np.ndarray]] = []
    text = ""
    for a, b, c in all_operands:
        left, right = tile(a, product.modes[0], product.orders[0]), tile(b, product.modes[1], product.orders[1])
        sizes = [(len(memory) + 2047) & ~2047 for memory, _, _ in (left, right)]
        tiles = np.zeros(sum(sizes), np.uint8)
        tiles[: len(left[0])] = left[0]
        tiles[sizes[0] : sizes[0] + len(right[0])] = right[0]
        text = kernel(product, [left[1:], right[1:]], (sizes[0], sizes[1]))
        parts.append([tiles, spread_sums(c), np.zeros((product.registers, 128), np.uint32), spread_a(a)])
    return text, [np.stack(arrays) for arrays in zip(*parts, strict=True)]


def results(product: Product, buffer: bytes) -> list[np.ndarray]:
    """D of each workgroup."""
    registers = np.frombuffer(buffer, np.uint32).reshape(-1, product.registers, 128)
    return [gather_sums(each, product.n, NUMPY[product.sums]) for each in registers]
