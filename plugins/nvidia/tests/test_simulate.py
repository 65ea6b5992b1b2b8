"""The PTX device: handwritten PTX runs, each fault is reported with its line, and malformed launches are refused."""

from __future__ import annotations

import numpy as np
import pytest
from chips_here import OLDEST

from tilefw.api import (
    ALL_CHECKS,
    Artifact,
    BufferView,
    CodeError,
    Entry,
    LaunchError,
    LaunchOptions,
    LaunchReport,
    Parameter,
    Scalar,
)
from tilefw_nvidia.simulate.device import Simulator

HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"
REGISTERS = ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .f32 %f<8>;\n"


def artifact(text: str, entries: tuple[Entry, ...] = ()) -> Artifact:
    return Artifact("nvidia-sm80", "ptx", text, entries, metadata={"source_name": "hand.ptx"})


def kernel(body: str, *, pointers: int = 1, extra: str = "", directives: str = "", top: str = "") -> str:
    parameters = [f".param .u64 p{i}" for i in range(pointers)] + ([extra] if extra else [])
    loads = "".join(f"ld.param.u64 %d{i}, [p{i}];\n" for i in range(pointers))
    return f"{HEAD}{top}\n.visible .entry k({', '.join(parameters)}) {directives}\n{{\n{REGISTERS}{loads}{body}\n}}\n"


def run(
    text: str, *arrays: np.ndarray, grid: tuple[int, ...] = (1,), scalars: tuple[Scalar, ...] = (), block: int = 32,
    **options: object,
) -> tuple[LaunchReport, list[np.ndarray]]:
    device = Simulator(OLDEST)
    handles = []
    for number, array in enumerate(arrays):
        handle = device.allocate(array.nbytes, label=f"buffer{number}")
        device.write(handle, array)
        handles.append(handle)
    merged = {"block": (block, 1, 1), "checks": ALL_CHECKS, **options}
    report = device.launch(
        device.load(artifact(text)), "k", grid, [*(BufferView(h) for h in handles), *scalars],
        LaunchOptions(**merged),  # type: ignore[arg-type]
    )
    return report, [np.frombuffer(device.read(h, a.nbytes), a.dtype) for h, a in zip(handles, arrays, strict=True)]


ADDRESS = """
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d8, %r0, 4, %d0;
"""


def test_a_handwritten_kernel_runs_with_scalars():
    text = kernel(ADDRESS + """
        ld.param.f32 %f1, [s];
        ld.global.f32 %f0, [%d8];
        fma.rn.f32 %f0, %f0, %f1, 0f3F800000;
        st.global.f32 [%d8], %f0;
        ret;""", extra=".param .f32 s")
    x = np.arange(32, dtype=np.float32)
    report, (out,) = run(text, x, scalars=(Scalar(2.5, "fp32"),))
    assert report.findings == () and (out == x * 2.5 + 1).all()


def test_dynamic_shared_memory_lies_behind_the_static():
    text = kernel(ADDRESS + """
        mov.u32 %r1, fixed;
        mov.u32 %r2, moving;
        sub.u32 %r3, %r2, %r1;
        st.global.u32 [%d8], %r3;
        mad.lo.u32 %r4, %r0, 4, %r2;
        st.shared.u32 [%r4], %r0;
        ld.shared.u32 %r5, [%r4];
        ret;""", top=".shared .align 4 .b8 fixed[20];\n.extern .shared .align 16 .b8 moving[];")
    report, (out,) = run(text, np.zeros(32, np.uint32), dynamic_shared=128)
    assert report.findings == () and out[0] == 32
    report, _ = run(text, np.zeros(32, np.uint32), dynamic_shared=64)
    assert [f.check for f in report.findings] == ["bounds"]


def test_generic_addresses_find_shared_and_local_memory():
    text = kernel("""
        .local .align 4 .b8 own[8];
        mov.u32 %r0, %tid.x;
        mad.wide.u32 %d8, %r0, 4, %d0;
        mov.u64 %d2, both;
        cvta.shared.u64 %d2, %d2;
        mad.wide.u32 %d2, %r0, 4, %d2;
        st.u32 [%d2], %r0;
        mov.u64 %d3, own;
        cvta.local.u64 %d3, %d3;
        add.u32 %r1, %r0, 100;
        st.u32 [%d3], %r1;
        ld.u32 %r2, [%d2];
        ld.u32 %r3, [%d3];
        add.u32 %r2, %r2, %r3;
        st.u32 [%d8], %r2;
        ret;""", top=".shared .align 4 .b8 both[128];")
    report, (out,) = run(text, np.zeros(32, np.uint32))
    assert report.findings == () and out.tolist() == [100 + 2 * i for i in range(32)]


def test_global_variables_keep_their_values_between_entries_of_a_module():
    body = "mov.u64 %d1, total; atom.global.add.u32 %r1, [%d1], 1; st.global.u32 [%d0], %r1; ret;"
    other = kernel(body).split("\n", 4)[4].replace("entry k(", "entry k2(").replace("p0", "q0")
    text = kernel(body, top=".global .align 4 .u32 total = 5;") + other
    device = Simulator(OLDEST)
    handle = device.allocate(4)
    module = device.load(artifact(text))
    for entry, want in (("k", 5), ("k2", 6), ("k", 7)):
        device.launch(module, entry, (1,), [BufferView(handle)], LaunchOptions(block=(1, 1, 1)))
        assert np.frombuffer(device.read(handle, 4), np.uint32)[0] == want


def test_divergent_lanes_rejoin_before_they_shuffle():
    text = kernel(ADDRESS + """
        setp.lt.u32 %p0, %r0, 7;
        @%p0 bra SHORT;
        mul.lo.u32 %r1, %r0, 3;
        bra.uni JOIN;
    SHORT:
        mov.u32 %r1, 1000;
    JOIN:
        shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
        st.global.u32 [%d8], %r2;
        ret;""")
    report, (out,) = run(text, np.zeros(32, np.uint32))
    values = [1000 if i < 7 else 3 * i for i in range(32)]
    assert report.findings == () and out.tolist() == [values[i ^ 1] for i in range(32)]


LOCATED = HEAD + """.visible .entry k(.param .u64 p0)
{
    .reg .b32 %r<2>; .reg .b64 %d<3>;
    .loc 1 41 7
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d1, %r0, 4, %d0;
    .loc 1 42 9
    ld.global.u32 %r1, [%d1];
    ret;
}
.file 1 "kernel.py"
"""


def test_a_finding_leads_to_the_instruction_and_to_the_users_line():
    report, _ = run(LOCATED, np.zeros(20, np.uint32))
    (finding,) = report.findings
    assert finding.code == "TFW0801" and finding.instruction == "ld.global.u32 %r1, [%d1]"
    assert finding.code_place is not None and (finding.code_place.file, finding.code_place.line) == ("hand.ptx", 12)
    assert finding.source is not None and (finding.source.file, finding.source.line) == ("kernel.py", 42)
    assert (finding.wave, finding.lane, finding.count) == (0, 20, 12) and "buffer0" in finding.message


COPIES = """
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 4, %r1;
    cp.async.ca.shared.global [%r2], [%d8], 4;
    cp.async.commit_group;
    {wait}
    {barrier}
    xor.b32 %r3, %r0, 32;
    mad.lo.u32 %r4, %r3, 4, %r1;
    ld.shared.u32 %r5, [%r4];
    mad.wide.u32 %d9, %r0, 4, %d1;
    st.global.u32 [%d9], %r5;
    ret;
"""


@pytest.mark.parametrize(("wait", "barrier", "checks"), [
    ("cp.async.wait_group 0;", "bar.sync 0;", set()),
    # Bytes that have not arrived are also bytes that were never written.
    ("", "bar.sync 0;", {"pending", "leftovers", "initialisation"}),
    ("cp.async.wait_group 1;", "bar.sync 0;", {"pending", "leftovers", "initialisation"}),
    ("cp.async.wait_all;", "", {"races"}),
])
def test_copies_need_their_wait_and_their_barrier(wait, barrier, checks):
    text = kernel(ADDRESS + COPIES.format(wait=wait, barrier=barrier), pointers=2, top=".shared .align 16 .b8 tile[256];")
    x = np.arange(64, dtype=np.uint32)
    report, (_, out) = run(text, x, np.zeros(64, np.uint32), block=64)
    assert {f.check for f in report.findings} == checks
    if not checks:
        assert (out == x ^ 32).all()


PARTIAL_COPY = """
    st.global.u32 [%d8], %r0;
    {barrier}
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 4, %r1;
    xor.b32 %r3, %r0, 32;
    mad.wide.u32 %d9, %r3, 4, %d0;
    cp.async.ca.shared.global [%r2], [%d9], 4, {amount};
    cp.async.wait_all;
    ret;
"""


@pytest.mark.parametrize("amount", [4, 2, 3])
def test_a_copy_of_a_part_reads_its_source_as_a_whole_one_does(amount):
    top = ".shared .align 16 .b8 tile[256];"
    for barrier, checks in (("bar.sync 0;", set()), ("", {"races"})):
        text = kernel(ADDRESS + PARTIAL_COPY.format(barrier=barrier, amount=amount), top=top)
        report, _ = run(text, np.zeros(64, np.uint32), block=64)
        assert {f.check for f in report.findings} == checks


READERS_AND_A_WRITER = """
    mov.u32 %r10, %ctaid.x;
    setp.eq.u32 %p0, %r10, 3;
    @%p0 bra writer;
    ld.global.u32 %r3, [%d8];
    mad.wide.u32 %d9, %r10, 4, %d1;
    st.global.u32 [%d9+16], %r3;
    setp.eq.u32 %p1, %r0, 0;
    setp.lt.and.u32 %p1, %r10, {readers}, %p1;
    @%p1 red.release.gpu.global.add.u32 [%d1], 1;
    ret;
writer:
    ld.acquire.gpu.global.u32 %r3, [%d1];
    setp.lt.u32 %p2, %r3, {readers};
    @%p2 bra writer;
    st.global.u32 [%d8], %r0;
    ret;
"""


@pytest.mark.parametrize(("readers", "checks"), [(3, set()), (2, {"races"})])
def test_what_several_workgroups_have_read_is_stored_to_behind_a_release_of_each(readers, checks):
    """Three read; so many of them release."""
    text = kernel(ADDRESS + READERS_AND_A_WRITER.format(readers=readers), pointers=2)
    report, _ = run(text, np.ones(32, np.uint32), np.zeros(8, np.uint32), grid=(4,))
    assert {f.check for f in report.findings} == checks


def test_an_endless_kernel_ends_by_its_budget():
    report, _ = run(kernel("L: bra L;", pointers=0), budget=100_000)
    assert [f.code for f in report.findings] == ["TFW0810"]


def test_a_required_block_size_is_taken_from_the_code_and_held():
    text = kernel("ret;", pointers=0, directives=".reqntid 64")
    report, _ = run(text, block=64)
    assert report.counters["instructions"] == 64
    device = Simulator(OLDEST)
    assert device.launch(device.load(artifact(text)), "k", (2,), [], LaunchOptions()).counters["instructions"] == 128
    with pytest.raises(LaunchError, match="needs workgroups"):
        run(text, block=32)


REFUSED = [
    ({"grid": (0,)}, "TFW0343"), ({"grid": (1, 70000)}, "TFW0343"), ({"grid": (1, 1, 1, 1)}, "TFW0343"),
    ({"block": 2048}, "TFW0342"), ({"block": 0}, "TFW0342"), ({"dynamic_shared": 1 << 20}, "TFW0344"),
    ({"dynamic_shared": -4}, "TFW0344"),
]


@pytest.mark.parametrize(("options", "code"), REFUSED)
def test_launches_that_do_not_fit_the_chip_are_refused(options, code):
    with pytest.raises(LaunchError) as error:
        run(kernel("ret;", pointers=0), **options)
    assert error.value.code == code


def test_arguments_that_do_not_fit_the_entry_are_refused():
    device = Simulator(OLDEST)
    module = device.load(artifact(kernel("ret;", extra=".param .u32 n")))
    handle = device.allocate(16)
    options = LaunchOptions(block=(1, 1, 1))
    for arguments in (
        [BufferView(handle)], [BufferView(handle), Scalar(1 << 40, "int64")], [BufferView(handle), Scalar(1.5, "fp64")],
        [BufferView(handle), BufferView(handle)], [BufferView(handle), Scalar(1, "decimal")],
    ):
        with pytest.raises(LaunchError) as error:
            device.launch(module, "k", (1,), arguments, options)
        assert error.value.code == "TFW0347"
    with pytest.raises(LaunchError, match="no entry 'q'"):
        device.launch(module, "q", (1,), [], options)
    with pytest.raises(LaunchError, match="handle 99"):
        device.launch(module, "k", (1,), [BufferView(99), Scalar(1, "int32")], options)
    assert device.launch(module, "k", (1,), [BufferView(0), Scalar(-1, "int32")], options).findings == ()


def test_copies_outside_an_allocation_are_refused():
    device = Simulator(OLDEST)
    handle = device.allocate(16)
    for offset in (-1, 9):
        with pytest.raises(LaunchError):
            device.write(handle, bytes(8), offset)
    with pytest.raises(LaunchError):
        device.read(handle, 17)
    device.free(handle)
    with pytest.raises(LaunchError):
        device.read(handle, 1)


def test_code_of_another_format_is_refused():
    with pytest.raises(CodeError, match="the format 'ptx'"):
        Simulator(OLDEST).load(Artifact("nvidia-sm80", "tile", "", ()))


def test_the_artifact_says_the_block_where_the_code_does_not():
    entry = Entry("k", (Parameter("p0", "pointer", "fp32", 0, 8, 8),), (96, 1, 1))
    device = Simulator(OLDEST)
    module = device.load(artifact(kernel("ret;", pointers=0), (entry,)))
    assert device.launch(module, "k", (1,), [], LaunchOptions()).counters["instructions"] == 96
