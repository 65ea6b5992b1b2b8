"""How a processor rounds, flushes and traps, which is its caller's choice: an entry sets its own, and gives the caller's back.

PyTorch's `torch.set_flush_denormal(True)`, `fesetround` and libraries that are linked with `-ffast-math` leave a thread with other
modes. A kernel's results do not depend on them: subnormal numbers count, sums round to the nearest, and nothing traps.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw_cpu.processor import Processor


@dataclass(frozen=True, slots=True)
class FloatingModes:
    """Text of LLVM IR. `declared` are the intrinsics by name; `keep` stands in a function's first block, before `own`; `back` gives
    back what was kept, wherever the first block has run. No arithmetic may share a block with `own`, which does not order it."""

    declared: tuple[tuple[str, str], ...] = ()
    keep: str = ""
    own: str = ""
    back: str = ""

    def declarations(self) -> dict[str, str]:
        """The declarations, by name."""
        return dict(self.declared)


# MXCSR: all exceptions masked, to the nearest, neither FTZ nor DAZ (Intel SDM, volume 1, 10.2.3: its value after a reset).
_MXCSR = 0x1F80
# FPCR: to the nearest, no flushing, NaNs pass, no traps (Arm ARM, C5.2.8): its value after a reset.
_FPCR = 0
_MODES = {
    "x86_64": FloatingModes(
        (
            ("llvm.x86.sse.stmxcsr", "declare void @llvm.x86.sse.stmxcsr(ptr)"),
            ("llvm.x86.sse.ldmxcsr", "declare void @llvm.x86.sse.ldmxcsr(ptr)"),
        ),
        "  %modes = alloca [2 x i32]\n  call void @llvm.x86.sse.stmxcsr(ptr %modes)\n",
        f"  %modes.own = getelementptr i32, ptr %modes, i64 1\n  store i32 {_MXCSR}, ptr %modes.own\n"
        "  call void @llvm.x86.sse.ldmxcsr(ptr %modes.own)\n",
        "  call void @llvm.x86.sse.ldmxcsr(ptr %modes)\n",
    ),
    "aarch64": FloatingModes(
        (
            ("llvm.aarch64.get.fpcr", "declare i64 @llvm.aarch64.get.fpcr()"),
            ("llvm.aarch64.set.fpcr", "declare void @llvm.aarch64.set.fpcr(i64)"),
        ),
        # In memory: a register need not survive the jump that comes back from a fault.
        "  %modes = alloca i64\n  %modes.then = call i64 @llvm.aarch64.get.fpcr()\n  store volatile i64 %modes.then, ptr %modes\n",
        f"  call void @llvm.aarch64.set.fpcr(i64 {_FPCR})\n",
        "  %modes.back = load volatile i64, ptr %modes\n  call void @llvm.aarch64.set.fpcr(i64 %modes.back)\n",
    ),
}


def floating_modes(processor: Processor) -> FloatingModes:
    """Those of a processor; without text where its register of modes is not known."""
    return _MODES.get(processor.triple.split("-")[0], FloatingModes())
