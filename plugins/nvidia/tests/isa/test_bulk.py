"""Bulk copies by the engine: bytes and barriers, groups, reductions, boxes of tensors, and what is reported without their waits."""

from __future__ import annotations

import numpy as np
import pytest

from isa.hopper import CHIP, codes, run
from tilefw.api import CodeError
from tilefw_nvidia.isa.meaning.tensor_map import ELEMENT_TYPES
from tilefw_nvidia.load import artifact

INIT = "@%p0 mbarrier.init.shared.b64 [%r2], 1;\n"
READY = "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], {bytes};\n"
LOAD = "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d0], 128, [%r2];\n"
WAIT = "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%r2], 0; @!done bra again; }\n"
INDEX = "shl.b32 %r3, %r0, 2; add.u32 %r4, %r3, %r1; cvt.u64.u32 %d9, %r3; add.u64 %d8, %d1, %d9;\n"
OUT = INDEX + "ld.shared.u32 %r5, [%r4]; st.global.u32 [%d8], %r5;\n"
STORE = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 128;\n"
COMMIT, DONE = "@%p0 cp.async.bulk.commit_group;\n", "@%p0 cp.async.bulk.wait_group.read 0;\n"
DATA, ZEROS = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
FILL = INDEX + "add.u32 %r5, %r0, 7; st.shared.u32 [%r4], %r5;\n"


def test_a_load_completes_on_its_barrier() -> None:
    (_, out), findings = run(INIT + READY + EXPECT.format(bytes=128) + LOAD + WAIT + OUT, [DATA, ZEROS])
    assert findings == () and np.array_equal(out, DATA)


def test_a_store_completes_with_its_group() -> None:
    for seed in (0, 3):
        (_, out), findings = run(FILL + READY + STORE + COMMIT + DONE, [ZEROS, ZEROS], seed=seed)
        assert findings == () and np.array_equal(out, DATA + 7)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (INIT + READY + EXPECT.format(bytes=128) + LOAD + OUT, "TFW0826"),  # no wait before the load's bytes are read
        (INIT + READY + EXPECT.format(bytes=112) + LOAD + WAIT + OUT, "TFW0811"),  # another number of bytes
        (INIT + READY + EXPECT.format(bytes=128) + WAIT + OUT, "TFW0811"),  # no copy
        (INIT + READY + EXPECT.format(bytes=128) + LOAD, "TFW0808"),  # at work at the end
        (READY + LOAD, "TFW0824"),  # no barrier
        (INIT + READY + EXPECT.format(bytes=128) + LOAD.replace("128", "120"), "TFW0825"),  # not a multiple of 16
        (INIT + READY + EXPECT.format(bytes=128) + LOAD.replace("[%r1]", "[%r1+4]"), "TFW0802"),  # not aligned
        (FILL + "bar.sync 0;\n" + STORE + COMMIT + DONE, "TFW0827"),  # no fence between the views
        (FILL + "fence.mbarrier_init.release.cluster;\nbar.sync 0;\n" + STORE + COMMIT + DONE, "TFW0827"),  # of barriers alone
        (INIT + FILL + "bar.sync 0;\n" + EXPECT.format(bytes=128) + LOAD + WAIT + OUT, "TFW0827"),  # writes over a thread's bytes
        (INIT + READY + EXPECT.format(bytes=256) + LOAD + LOAD + WAIT + OUT, "TFW0826"),  # two copies to one place
        (FILL + READY + STORE + COMMIT, "TFW0808"),  # the group is not waited for
        (FILL + READY + STORE + DONE, "TFW0808"),  # it has no group
        (FILL + READY + STORE + COMMIT + "bar.sync 0;\n" + FILL + DONE, "TFW0826"),  # overwritten while the engine reads
    ],
)
def test_what_goes_wrong_is_found(code: str, found: str) -> None:
    assert found in codes(run(code, [DATA, ZEROS])[1])


@pytest.mark.parametrize(("second", "found"), [(7, set()), (8, {"TFW0804"})])
def test_stores_of_two_waves_to_one_place_race_unless_their_bytes_are_equal(second: int, found: set[str]) -> None:
    """Each of two waves fills memory of its own and has it stored; the second one's code lies, and so runs, behind the first's."""
    fill = "and.b32 %r6, %r0, 31; add.u32 %r5, %r6, 7; setp.ge.u32 %p1, %r0, 32;\n" + f"@%p1 add.u32 %r5, %r6, {second};\n"
    fill += "shl.b32 %r3, %r0, 2; add.u32 %r4, %r3, %r1; st.shared.u32 [%r4], %r5; setp.eq.u32 %p2, %r6, 0;\n"
    store = STORE.replace("%r1", "%r4") + COMMIT + DONE.replace(".read", "")
    body = fill + READY + "@%p1 bra second;\n" + store + "ret;\nsecond:\n" + store
    assert codes(run(body.replace("@%p0", "@%p2"), [ZEROS, ZEROS], block=64)[1]) == found


TWO_WAVES = "and.b32 %r6, %r0, 31; shl.b32 %r3, %r0, 2; add.u32 %r4, %r3, %r1; add.u32 %r5, %r6, {first};\n"
TWO_WAVES += "setp.ge.u32 %p1, %r0, 32;\n@%p1 add.u32 %r5, %r6, {second};\nst.shared.u32 [%r4], %r5; setp.eq.u32 %p2, %r6, 0;\n"
TWO_WAVES += READY
SENT = "@%p2 cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r4], 128;\n@%p2 cp.async.bulk.commit_group;\n"
ENDED = "@%p2 cp.async.bulk.wait_group{} 0;\n"


@pytest.mark.parametrize(("second", "found"), [(7, set()), (8, {"TFW0826"})])
def test_stores_at_once_of_one_place_race_unless_their_bytes_are_equal(second: int, found: set[str]) -> None:
    waves = TWO_WAVES.format(first=7, second=second)
    assert codes(run(waves + SENT + ENDED.format(""), [ZEROS, ZEROS], block=64)[1]) == found
    apart = "@%p1 bra second;\n" + SENT + "bar.sync 0;\nbra done;\nsecond:\nbar.sync 0;\n" + SENT + "done:\n"
    assert codes(run(waves + apart + ENDED.format(""), [ZEROS, ZEROS], block=64)[1]) == found


@pytest.mark.parametrize(
    ("access", "wait", "found"),
    [
        ("ld.global.u32 %r8, [%d1]; st.shared.u32 [%r1+1024], %r8;\n", "", {"TFW0826"}),
        ("ld.global.u32 %r8, [%d1]; st.shared.u32 [%r1+1024], %r8;\n", ENDED.format(".read"), {"TFW0826"}),
        ("ld.global.u32 %r8, [%d1]; st.shared.u32 [%r1+1024], %r8;\n", ENDED.format(""), set()),
        ("ld.global.u32 %r8, [%d1+128]; st.shared.u32 [%r1+1024], %r8;\n", "", set()),  # beside it
        ("st.global.u32 [%d1], 3;\n", "", {"TFW0826"}),
        ("st.global.u32 [%d1], 7;\n", "", set()),  # what the copy writes there
    ],
)
@pytest.mark.parametrize("by", ["the wave itself", "another wave"])
def test_global_memory_that_an_engine_is_at_work_on_is_left_alone(access: str, wait: str, found: set[str], by: str) -> None:
    first, second = (access, "") if by == "the wave itself" else ("", access)
    body = TWO_WAVES.format(first=7, second=7) + f"@%p1 bra second;\n{SENT}{wait}{first}bar.sync 0;\nbar.sync 0;\nbra done;\n"
    body += f"second:\nbar.sync 0;\n{second}bar.sync 0;\ndone:\n@!%p1 bra all;\nret;\nall:\n{ENDED.format('')}"
    assert codes(run(body, [ZEROS, np.zeros(64, np.uint32)], block=64)[1]) == found


def test_a_source_in_global_memory_is_not_written_before_the_wait() -> None:
    for value, found in ((3, {"TFW0826"}), (0, set())):  # DATA begins with a 0
        early = LOAD + f"@%p0 st.global.u32 [%d0], {value};\n"
        assert codes(run(INIT + READY + EXPECT.format(bytes=128) + early + WAIT + OUT, [DATA, ZEROS])[1]) == found


def test_reductions_and_atomics_of_one_place_go_on_together() -> None:
    waves = TWO_WAVES.format(first=7, second=8)
    adds = SENT.replace(".bulk_group [", ".bulk_group.add.u32 [").replace("cp.async.bulk.global", "cp.reduce.async.bulk.global")
    body = waves + adds + "red.relaxed.gpu.global.add.u32 [%d1], 1;\n" + ENDED.format("")
    (_, out), findings = run(body, [ZEROS, ZEROS], block=64)
    assert findings == () and out.tolist() == [2 * lane + 15 + 64 * (lane == 0) for lane in range(32)]


def test_the_source_is_read_late_so_that_overwriting_it_shows() -> None:
    (_, out), _ = run(FILL + READY + STORE + COMMIT + "bar.sync 0;\n" + FILL.replace("7", "90") + DONE, [DATA, ZEROS])
    assert np.array_equal(out, DATA + 90)


@pytest.mark.parametrize(("op", "expected"), [("add", DATA * 5 + 7), ("max", np.maximum(DATA + 7, DATA * 4)), ("inc", DATA * 0)])
def test_a_store_reduces(op: str, expected: np.ndarray) -> None:
    reduce = f"@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.u32 [%d1], [%r1], 128;\n"
    start = DATA * 4 + (100 if op == "inc" else 0)
    (_, out), findings = run(FILL + READY + reduce + COMMIT + DONE, [ZEROS, start.astype(np.uint32)])
    assert findings == () and np.array_equal(out, expected)


# --- boxes ------------------------------------------------------------------------------------------------------------------------


def tensor_map(
    kind: str, sizes: tuple[int, ...], strides: tuple[int, ...], box: tuple[int, ...], swizzle: int = 0, fill: int = 0,
    address: str = "%d0",
) -> str:
    """Code that makes a map in the last 128 bytes of `tile`, and lays it into global memory at %d2: its address is %d10."""
    def replaced(field: str, bits: int, value: str) -> str:
        return f"@%p0 tensormap.replace.tile.{field}.shared::cta.b1024.b{bits} [%d11], {value};"

    lines = [
        "add.u32 %r10, %r1, 3968; cvt.u64.u32 %d11, %r10; shl.b32 %r11, %r0, 2; add.u32 %r11, %r11, %r10;",
        "mov.u32 %r12, 0; st.shared.u32 [%r11], %r12; bar.warp.sync -1;", replaced("global_address", 64, address),
        replaced("rank", 32, str(len(sizes) - 1)), replaced("elemtype", 32, str(ELEMENT_TYPES[kind])),
        replaced("swizzle_mode", 32, str(swizzle)), replaced("fill_mode", 32, str(fill)),
        replaced("interleave_layout", 32, "0"),
    ]
    for axis, (size, extent) in enumerate(zip(sizes, box, strict=True)):
        lines += [
            f"mov.u32 %r12, {size};", replaced("global_dim", 32, f"{axis}, %r12"), f"mov.u32 %r12, {extent};",
            replaced("box_dim", 32, f"{axis}, %r12"), "mov.u32 %r12, 1;", replaced("element_stride", 32, f"{axis}, %r12"),
        ]
    for axis, stride in enumerate(strides):
        lines += [f"mov.u64 %d12, {stride};", replaced("global_stride", 64, f"{axis}, %d12")]
    lines += [
        "bar.warp.sync -1;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d2], [%d11], 128;",
        "fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;", "bar.sync 0;", "mov.u64 %d10, %d2;",
    ]
    return "\n".join(lines) + "\n"


def load(dimensions: int, coordinates: tuple[int, ...], bytes: int) -> str:
    """Load a box to `tile`, and copy all its words to %d1."""
    start = f"cp.async.bulk.tensor.{dimensions}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    moved = "".join(
        f"ld.shared.u32 %r5, [%r4+{at}]; st.global.u32 [%d8+{at}], %r5;\n" for at in range(0, bytes, 128)
    )
    return INIT + READY + EXPECT.format(bytes=bytes) + (
        f"@%p0 {start} [%r1], [%d10, {{{', '.join(map(str, coordinates))}}}], [%r2];\n" + WAIT + INDEX + moved
    )


MAP = np.zeros(32, np.uint32)


@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
@pytest.mark.parametrize("start", [(0, 0), (8, 3), (-4, -1), (30, 6), (5, 2)])
def test_a_box_is_loaded_with_zeros_outside_and_swizzled(swizzle: int, start: tuple[int, int]) -> None:
    columns = 8 if swizzle == 1 else 16 if swizzle == 2 else 32
    data = np.arange(1, 8 * 36 + 1, dtype=np.float32).reshape(8, 36)
    size = 4 * columns * 4
    text = tensor_map("f32", (36, 8), (144,), (columns, 4), swizzle) + load(2, start, size)
    (_, out, _), findings = run(text, [data, np.zeros(size // 4, np.float32), MAP])
    padded = np.zeros((40, 128), np.float32)
    padded[16:24, 48:84] = data
    x, y = start
    box = padded[16 + y : 20 + y, 48 + x : 48 + x + columns].reshape(-1)
    wanted = np.empty_like(box)
    at = np.arange(len(box)) * 4
    wanted[(at ^ (((at >> 7) & ((1 << swizzle) - 1)) << 4)) // 4] = box
    assert findings == () and np.array_equal(out, wanted)


def test_outside_may_be_filled_with_nan() -> None:
    data = np.arange(64, dtype=np.float16).reshape(4, 16)
    text = tensor_map("f16", (16, 4), (32,), (32, 2), fill=1) + load(2, (0, 3), 128)
    (_, out, _), findings = run(text, [data, np.zeros(64, np.float16), MAP])
    assert findings == () and np.array_equal(out[:16], data[3]) and np.isnan(out[16:].astype(np.float32)).all()


@pytest.mark.parametrize("dimensions", [1, 3, 4, 5])
def test_boxes_have_one_to_five_dimensions(dimensions: int) -> None:
    shape = (5, 4, 3, 6, 32)[5 - dimensions :]
    data = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    box = (2, 2, 2, 1, 16)[5 - dimensions :]
    strides = tuple(s for s in reversed(data.strides[:-1]))
    size = int(np.prod(box)) * 4
    start = (1, 1, 1, 2, 3)[5 - dimensions :]
    text = tensor_map("s32", shape[::-1], strides, box[::-1]) + load(dimensions, start[::-1], size)
    (_, out, _), findings = run(text, [data, np.zeros(max(32, size // 4), np.int32), MAP])
    wanted = data[tuple(slice(s, s + n) for s, n in zip(start, box, strict=True))].reshape(-1)
    assert [f.code for f in findings if f.code != "TFW0803"] == [] and np.array_equal(out[: len(wanted)], wanted)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "u32"])
def test_a_box_is_added_to_what_there_is(kind: str) -> None:
    import ml_dtypes

    numpy = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "u32": np.uint32}[kind]
    width = 128 // np.dtype(numpy).itemsize
    values = (np.arange(width) % 13).astype(numpy)
    start = np.ones((2, width), numpy)
    fill = INDEX + "add.u64 %d8, %d3, %d9; ld.global.u32 %r5, [%d8]; st.shared.u32 [%r4], %r5;\n"
    reduce = (
        "@%p0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d10, {0, 1}], [%r1];\n" + COMMIT + DONE
    )
    text = tensor_map(kind, (width, 2), (128,), (width, 1)) + fill + READY + reduce
    (out, _, _, _), findings = run(text, [start, ZEROS, MAP, values])
    assert findings == ()
    assert np.array_equal(out[0], start[0]) and np.array_equal(out[1], (values + start[1]).astype(numpy))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"box": (300, 2)}, "TFW0825"), ({"strides": (72,)}, "TFW0825"), ({"box": (3, 2)}, "TFW0825"), ({"swizzle": 1}, "TFW0825"),
        ({"swizzle": 4}, "TFW0825"), ({"swizzle": 200}, "TFW0825"), ({"fill": 2}, "TFW0825"),
        ({"sizes": (32, 9)}, "TFW0801"), ({"sizes": (32, 4, 2), "strides": (128, 512), "box": (32, 2, 1)}, "TFW0812"),
    ],
)
def test_what_the_engine_does_not_take_is_told(changed: dict, code: str) -> None:
    facts = {"sizes": (32, 4), "strides": (128,), "box": (32, 2), "swizzle": 0} | changed
    data = np.zeros((4, 32), np.float32)
    text = tensor_map("f32", **facts) + load(2, (0, 7 if code == "TFW0801" else 0), 256)
    assert code in codes(run(text, [data, np.zeros(64, np.float32), MAP])[1])


@pytest.mark.parametrize(("start", "found"), [((0, 1), set()), ((-16, 0), {"TFW0825"}), ((0, -1), {"TFW0825"})])
def test_a_box_is_stored_from_coordinates_that_are_not_negative(start: tuple[int, int], found: set[str]) -> None:
    """PTX ISA, "Restriction on Tensor Copy instructions"; a load may begin before the array."""
    x, y = start
    store = f"@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d10, {{{x}, {y}}}], [%r1];\n" + COMMIT + DONE
    text = tensor_map("u32", (32, 2), (128,), (32, 1)) + FILL + READY + store
    (out, _, _), findings = run(text, [np.zeros((2, 32), np.uint32), ZEROS, MAP])
    assert codes(findings) == found
    assert found or np.array_equal(out, [ZEROS, DATA + 7])


@pytest.mark.parametrize(("axis", "code", "words"), [(0, "TFW0812", "innermost"), (1, "TFW0825", "every 8th")])
def test_a_map_with_a_step_of_zero_is_told(axis: int, code: str, words: str) -> None:
    text = tensor_map("f32", (32, 4), (128,), (32, 2)) + load(2, (0, 0), 256)
    one = f"mov.u32 %r12, 1;\n@%p0 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d11], {axis}, %r12;"
    assert one in text
    text = text.replace(one, one.replace("%r12, 1;", "%r12, 0;"))
    (found,) = run(text, [np.zeros((4, 32), np.float32), np.zeros(64, np.float32), MAP])[1]
    assert found.code == code and words in found.message


def test_the_step_of_the_innermost_dimension_is_ignored() -> None:
    text = tensor_map("f32", (32, 4), (128,), (32, 2)).replace("mov.u32 %r12, 1;", "mov.u32 %r12, 2;", 1) + load(2, (0, 1), 256)
    data = np.arange(128, dtype=np.float32).reshape(4, 32)
    (_, out, _), findings = run(text, [data, np.zeros(64, np.float32), MAP])
    assert findings == () and np.array_equal(out.reshape(2, 32), data[1:3])


def test_a_map_that_was_written_is_acquired_before_its_use() -> None:
    text = tensor_map("f32", (32, 4), (128,), (32, 2)) + load(2, (0, 0), 256)
    arrays = [np.zeros((4, 32), np.float32), np.zeros(64, np.float32), MAP]
    assert run(text, arrays)[1] == ()
    assert codes(run(text.replace("fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;", ""), arrays)[1]) == {"TFW0818"}


def test_gathers_of_rows_are_refused_on_this_chip() -> None:
    text = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k() { .reg .b64 %d; .reg .b32 %r;
cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r], [%d, {%r, %r, %r, %r, %r}], [%r];
ret; }
"""
    with pytest.raises(CodeError) as refused:
        artifact(text, "k.ptx", CHIP)
    assert refused.value.place is not None and refused.value.place.line == 5
