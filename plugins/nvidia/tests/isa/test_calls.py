"""Functions of a PTX module: calls pass values by `.param` variables, diverge and meet again, and are refused where they have no
flat form."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from chips_here import CHIPS

from isa.machine import launch
from tilefw.api import CodeError, LaunchOptions
from tilefw_nvidia.load import artifact
from tilefw_nvidia.simulate.device import Simulator

THREADS = 96
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
ENTRY = """
.visible .entry k(.param .u64 a0, .param .u64 a1) {
    .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %d<8>;
    mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4;
    ld.param.u64 %d1, [a0]; add.s64 %d1, %d1, %d3; ld.param.u64 %d2, [a1]; add.s64 %d2, %d2, %d3;
    ld.global.s32 %r2, [%d1]; mov.b32 %r3, %r2;
@BODY@
    st.global.s32 [%d2], %r3; ret; }
"""
CALL = """{ .param .b32 x; .param .b32 y; st.param.b32 [x], @IN@; @GUARD@ call (y), @NAME@, (x); ld.param.b32 @OUT@, [y]; }
"""
# Twice a negative number, and three times another, with a branch of its own and two ways back.
SCALED = """
.func (.param .b32 result) scaled(.param .b32 value) {
    .reg .pred %p<2>; .reg .b32 %r<4>;
    ld.param.s32 %r1, [value]; setp.lt.s32 %p1, %r1, 0; @%p1 bra NEGATIVE;
    mul.lo.s32 %r2, %r1, 3; st.param.b32 [result], %r2; ret;
NEGATIVE:
    shl.b32 %r2, %r1, 1; st.param.b32 [result], %r2; ret; }
"""


def call(name: str, source: str, destination: str, guard: str = "") -> str:
    text = CALL.replace("@NAME@", name).replace("@IN@", source).replace("@OUT@", destination)
    return text.replace("@GUARD@", guard)


def module(functions: str, body: str) -> str:
    return HEAD + functions + ENTRY.replace("@BODY@", body)


def results(text: str, values: np.ndarray) -> tuple[np.ndarray, tuple]:
    buffers, findings = launch(text, [values, np.zeros_like(values)], 1, len(values))
    return np.frombuffer(buffers[1], values.dtype), findings


VALUES = np.arange(-48, 48, dtype=np.int32)
SCALED_VALUES = np.where(VALUES < 0, VALUES * 2, VALUES * 3)


def test_lanes_that_part_in_a_function_meet_behind_the_call() -> None:
    """The barrier behind the call is reached by whole waves, or it is a finding."""
    got, findings = results(module(SCALED, call("scaled", "%r2", "%r3") + "bar.sync 0;"), VALUES)
    assert findings == ()
    np.testing.assert_array_equal(got, SCALED_VALUES)


def test_each_call_has_registers_and_parameters_of_its_own() -> None:
    body = call("scaled", "%r2", "%r4") + call("scaled", "%r4", "%r3") + "add.s32 %r3, %r3, %r4;"
    got, findings = results(module(SCALED, body), VALUES)
    assert findings == ()
    np.testing.assert_array_equal(got, np.where(VALUES < 0, VALUES * 2 + VALUES * 4, VALUES * 3 + VALUES * 9))


def test_a_guarded_call_is_made_by_the_lanes_of_its_guard() -> None:
    body = """setp.gt.s32 %p1, %r2, 10;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %r2; st.param.b32 [y], 7;
    @%p1 call (y), scaled, (x); ld.param.b32 %r3, [y]; }"""
    got, findings = results(module(SCALED, body), VALUES)
    assert findings == ()
    np.testing.assert_array_equal(got, np.where(VALUES > 10, VALUES * 3, 7))


def test_functions_call_functions_and_structs_pass_by_value() -> None:
    functions = SCALED + """
    .func (.param .align 8 .b8 out[8]) both(.param .align 8 .b8 in[8]) {
        .reg .b32 %r<6>;
        ld.param.b32 %r1, [in]; ld.param.b32 %r2, [in+4];
        { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), scaled, (x); ld.param.b32 %r3, [y]; }
        st.param.v2.b32 [out], {%r2, %r3}; ret; }
    """
    body = """{ .param .align 8 .b8 x[8]; .param .align 8 .b8 y[8]; st.param.v2.b32 [x], {%r2, 1000};
    call.uni (y), both, (x); ld.param.b32 %r4, [y]; ld.param.b32 %r5, [y+4]; } add.s32 %r3, %r4, %r5;"""
    got, findings = results(module(functions, body), VALUES)
    assert findings == ()
    np.testing.assert_array_equal(got, SCALED_VALUES + 1000)


def test_shared_memory_of_a_function_is_there_once_for_all_its_calls() -> None:
    functions = """
    .func (.param .b32 result) neighbour(.param .b32 value) {
        .shared .align 4 .b8 row[384]; .reg .b32 %r<8>;
        ld.param.b32 %r1, [value]; mov.u32 %r2, %tid.x; mov.u32 %r3, row; shl.b32 %r4, %r2, 2; add.s32 %r4, %r3, %r4;
        bar.sync 0; st.shared.b32 [%r4], %r1; bar.sync 0;
        xor.b32 %r5, %r2, 1; shl.b32 %r5, %r5, 2; add.s32 %r5, %r3, %r5; ld.shared.b32 %r6, [%r5];
        st.param.b32 [result], %r6; ret; }
    """
    text = module(functions, call("neighbour", "%r2", "%r3") + call("neighbour", "%r3", "%r3"))
    got, findings = results(text, VALUES)
    assert findings == ()
    np.testing.assert_array_equal(got, VALUES)
    assert artifact(text, "k.ptx", CHIPS[0]).entries[0].shared_bytes == 384


def test_a_finding_in_a_function_has_the_line_and_the_call_that_led_there() -> None:
    functions = '.file 1 "user.cu"\n' + """
    .func (.param .b32 result) wild(.param .b32 value) {
        .reg .b32 %r<4>; .reg .b64 %d<2>;
        .loc 1 7 5
        mov.u64 %d1, 64; ld.global.b32 %r1, [%d1]; st.param.b32 [result], %r1; ret; }
    """
    _, (finding,) = results(module(functions, ".loc 1 20 9\n" + call("wild", "%r2", "%r3")), VALUES)
    assert (finding.source.file, finding.source.line, finding.source.function) == ("user.cu", 7, "wild")
    assert finding.source.caller.line == 20


def test_what_is_declared_and_never_called_hinders_nothing() -> None:
    functions = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n.func loops() { call.uni loops; ret; }\n"
    got, findings = results(module(functions, ""), VALUES)
    assert findings == ()
    np.testing.assert_array_equal(got, VALUES)


def test_a_failed_assertion_of_the_device_is_a_finding() -> None:
    functions = ".extern .func __assertfail(.param .b64 m);\n"
    body = "setp.eq.s32 %p1, %r2, 5;\n{ .param .b64 m; st.param.b64 [m], 0; @%p1 call.uni __assertfail, (m); }"
    _, (finding,) = results(module(functions, body), VALUES)
    assert "an assertion failed" in finding.message
    assert finding.lane == int(np.flatnonzero(VALUES == 5)[0]) % 32


@pytest.mark.parametrize("name", ["vprintf", "malloc", "free"])
@pytest.mark.parametrize("reached", [True, False])
def test_a_call_of_the_device_runtime_is_a_finding_where_it_is_executed(name: str, reached: bool) -> None:
    functions = f".extern .func (.param .b64 r) {name}(.param .b64 a);\n"
    body = f"setp.eq.s32 %p1, %r2, {5 if reached else 500};\n"
    body += f"{{ .param .b64 a; .param .b64 r; st.param.b64 [a], 0; @%p1 call.uni (r), {name}, (a); }}"
    got, findings = results(module(functions, body), VALUES)
    assert [f.message.partition(" is called")[0] for f in findings] == ([name] if reached else [])
    if not reached:
        np.testing.assert_array_equal(got, VALUES)


def test_a_function_of_the_runtime_that_the_module_defines_is_called() -> None:
    got, findings = results(module(SCALED.replace("scaled", "malloc"), call("malloc", "%r2", "%r3")), VALUES)
    assert findings == ()
    np.testing.assert_array_equal(got, SCALED_VALUES)


@pytest.mark.parametrize("first", [True, False])
def test_an_entry_that_is_not_served_leaves_the_others_of_its_module(first: bool) -> None:
    recursive = ".func loops() { call.uni loops; ret; }\n.visible .entry bad() { call.uni loops; ret; }\n"
    good = ENTRY.replace("@BODY@", "")
    for chip in CHIPS:
        loaded = artifact(HEAD + (recursive + good if first else good + recursive), "two.ptx", chip)
        assert {entry.name for entry in loaded.entries} == {"k", "bad"}
        device = Simulator(chip)
        with pytest.raises(CodeError, match="loops calls loops"):
            device.launch(device.load(loaded), "bad", (1, 1, 1), (), LaunchOptions(block=(32, 1, 1)))
        with pytest.raises(CodeError, match="loops calls loops"):
            artifact(HEAD + recursive, "one.ptx", chip)


@pytest.mark.parametrize(
    ("functions", "body", "code", "message"),
    [
        (".func f() { call.uni g; ret; } .func g() { call.uni f; ret; }", "call.uni f;", "TFW0712", "f calls g calls f"),
        ("", "call.uni f;", "TFW0714", "function f is not declared"),
        (".extern .func f();", "call.uni f;", "TFW0712", "f has no body in this module"),
        (".func f() { ret; }", "p: .callprototype _ (); call %d1, (), p;", "TFW0712", "a call through an address"),
        (SCALED, "call.uni scaled;", "TFW0713", "the function has 1 results, the call gives 0"),
        (SCALED, call("scaled", "%r2", "%r3").replace("(y)", "(z)"), "TFW0714", "z is not a .param variable"),
        (SCALED, call("scaled", "%r2", "%r3").replace(".b32 x;", ".b64 x;"), "TFW0713", "x has 8 bytes"),
        (SCALED, "call (scaled;", "TFW0710", "a call is `call (result), function"),
        (SCALED, "st.param.b32 [a0], %r2;", "TFW0713", "a0 is a parameter of the entry"),
    ],
)
def test_calls_that_have_no_flat_form_are_refused(functions: str, body: str, code: str, message: str) -> None:
    with pytest.raises(CodeError) as caught:
        artifact(module(functions, body), "k.ptx", CHIPS[0])
    assert (caught.value.code, message in caught.value.message) == (code, True), caught.value


def test_an_alias_is_another_str_its_function() -> None:
    text = module(SCALED + ".alias other, scaled;\n", call("other", "%r2", "%r3"))
    got, _ = results(text, VALUES)
    np.testing.assert_array_equal(got, SCALED_VALUES)


LLVM = r"""
target triple = "nvptx64-nvidia-cuda"
define internal i32 @collatz(i32 %n) noinline {
  br label %head
head:
  %x = phi i32 [ %n, %0 ], [ %next, %step ]
  %count = phi i32 [ 0, %0 ], [ %more, %step ]
  %done = icmp eq i32 %x, 1
  br i1 %done, label %end, label %step
step:
  %odd = and i32 %x, 1
  %is_odd = icmp ne i32 %odd, 0
  %half = lshr i32 %x, 1
  %three = mul i32 %x, 3
  %up = add i32 %three, 1
  %next = select i1 %is_odd, i32 %up, i32 %half
  %more = add i32 %count, 1
  br label %head
end:
  ret i32 %count
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %from = getelementptr i32, ptr addrspace(1) %in, i32 %tid
  %n = load i32, ptr addrspace(1) %from
  %steps = call i32 @collatz(i32 %n)
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %steps, ptr addrspace(1) %to
  ret void
}
"""


@pytest.mark.skipif(shutil.which("llc-22") is None, reason="llc-22 is not installed: apt-get install llvm-22")
def test_calls_as_llvm_writes_them() -> None:
    command = ["llc-22", "-mtriple=nvptx64-nvidia-cuda", "-mcpu=sm_80", "-O2", "-o", "-"]
    text = subprocess.run(command, input=LLVM, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "call" in text
    values = np.arange(1, THREADS + 1, dtype=np.int32)
    got, findings = results(text, values)
    assert findings == ()

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n * 3 + 1 if n % 2 else n // 2)

    np.testing.assert_array_equal(got, [steps(int(n)) for n in values])
