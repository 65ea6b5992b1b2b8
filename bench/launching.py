"""A launch of a kernel that was compiled before: the Python around the device's own work, in microseconds, beside Triton's.

Nothing runs but in the rows of the target cpu, which are whole launches of one program. Ours ends where the executor takes over, or
with arrays on a card where its driver is called; Triton's ends at its launcher in C. Both have stand-ins there that do nothing.
"""

from __future__ import annotations

import importlib
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

TARGET = "nvidia-sm80"
GOAL = 25.0  # µs of Python before the device's own work
WHOLE_GOAL = 15.0  # µs of a whole launch of one program on the processor
ON_PROCESSOR = "NumPy, whole on cpu"
ELEMENTS = 1024
FEW, MANY = "3 pointers, 1 scalar", "8 pointers, 6 scalars"
_TEXT = {
    FEW: "def few(x, y, out, n, BLOCK: tl.constexpr):\n    tl.store(out, tl.load(x) + tl.load(y) + n)\n",
    MANY: "def many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):\n"
    "    some = tl.load(a) + tl.load(b) + tl.load(c) + tl.load(d)\n"
    "    tl.store(h, some + tl.load(e) + tl.load(f) + tl.load(g) + i + j + k + l + m + n)\n",
}
_NUMBERS = {FEW: (1000,), MANY: (1000, 2048, 7, 4096, 333, 64)}
_CONSTANTS = {FEW: {"BLOCK": 256}, MANY: {"BLOCK": 256, "EVEN": True}}


@dataclass(frozen=True, slots=True)
class Row:
    """One way to launch: the kernel's size, what its arrays are, and whether its arguments are given by name."""

    size: str
    arrays: str
    named: bool

    @property
    def shown(self) -> str:
        return f"{self.size}; {self.arrays}; by {'name' if self.named else 'position'}"


class OnCard:
    """An array that says that it is in a card's memory, by the protocol that CuPy and others have."""

    def __init__(self, number: int) -> None:
        self._said = {
            "shape": (ELEMENTS,), "typestr": "<f4", "data": (4096 * (number + 1), False), "strides": None, "version": 3,
        }

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._said


def measure(rounds: int = 400, launches: int = 10) -> str:
    """A table of the least microseconds of a launch, over rounds in which ours and Triton's take turns."""
    lines = [
        "## A launch of a compiled kernel", "",
        f"Microseconds of Python around the device's own work: the least mean of {launches} launches in {rounds} rounds.", "",
        "| | tilefw µs | Triton µs | ratio | |", "|---|---|---|---|---|",
    ]
    for row in _rows():
        ours, peer = _ours(row), _peer(row) if row.arrays == "PyTorch" else None
        sides = [ours] if peer is None else [ours, peer]
        taken = least(sides, rounds, launches)
        shown = f"{taken[1]:.1f} | {taken[0] / taken[1]:.2f}" if peer is not None else "|"
        goal = WHOLE_GOAL if row.arrays == ON_PROCESSOR else GOAL
        lines.append(f"| {row.shown} | {taken[0]:.1f} | {shown} | {'met' if taken[0] <= goal else '**missed**'} |")
    return "\n".join(lines)


def _rows() -> Iterator[Row]:
    for arrays in ("NumPy", "PyTorch", "on a card", ON_PROCESSOR):
        for size in (FEW, MANY):
            for named in (False, True):
                yield Row(size, arrays, named)


def least(
    sides: list[Callable[[], object]], rounds: int, launches: int, before: Callable[[], object] = lambda: None
) -> list[float]:
    """The least microseconds of each: a busy machine only adds to them. `before` is called before each turn."""
    found = [float("inf")] * len(sides)
    for side in sides * 3:
        side()
    for _ in range(rounds):
        for index, side in enumerate(sides):
            before()
            start = time.perf_counter()
            for _ in range(launches):
                side()
            found[index] = min(found[index], (time.perf_counter() - start) / launches * 1e6)
    return found


def arrays_of(row: Row) -> list[Any]:
    """The arrays of a launch."""
    count = 3 if row.size == FEW else 8
    if row.arrays in ("NumPy", ON_PROCESSOR):
        return [np.zeros(ELEMENTS, np.float32) for _ in range(count)]
    if row.arrays == "PyTorch":
        torch = importlib.import_module("torch")
        return [torch.zeros(ELEMENTS) for _ in range(count)]
    return [OnCard(number) for number in range(count)]


def call(kernel: Any, row: Row, arrays: list[Any], **keywords: Any) -> Callable[[], object]:
    """A launch of the row's kernel on these arrays."""
    args = [*arrays, *_NUMBERS[row.size]]
    constants = _CONSTANTS[row.size]
    grid = (1,) if row.arrays == ON_PROCESSOR else (4,)
    if not row.named:
        return lambda: kernel[grid](*args, **constants, num_warps=4, **keywords)
    named = dict(zip(kernel.arg_names, args, strict=False))
    return lambda: kernel[grid](**named, **constants, num_warps=4, **keywords)


def kernel_of(jit: Any, language: Any, size: str, name: str) -> Any:
    """The kernel in a module of its own, from which compilers read its text."""
    import linecache

    module: Any = types.ModuleType(f"launched_{name}")
    module.tl = language
    path = f"<{module.__name__}>"
    linecache.cache[path] = (len(_TEXT[size]), None, _TEXT[size].splitlines(True), path)
    sys.modules[module.__name__] = module
    exec(compile(_TEXT[size], path, "exec"), module.__dict__)
    return jit(next(value for value in vars(module).values() if isinstance(value, types.FunctionType)))


def _ours(row: Row) -> Callable[[], object]:
    import tilefw
    import tilefw.language
    from tilefw.api.device import LaunchReport
    from tilefw.runtime.executor import Executor
    from tilefw.runtime.plugins.loader import find_target

    target = find_target(TARGET)
    target.executors.pop("hw", None)
    kernel = kernel_of(tilefw.jit, tilefw.language, row.size, "tilefw")
    if row.arrays == "on a card":
        target.executors["hw"] = Executor(_card())
        return call(kernel, row, arrays_of(row), target=TARGET, executor="hw")
    if row.arrays == ON_PROCESSOR:
        return call(kernel, row, arrays_of(row), target="cpu")
    report = LaunchReport()
    target.executors["sim"] = executor = Executor(target.backend.simulator())
    executor.run = lambda *args, **keywords: report
    return call(kernel, row, arrays_of(row), target=TARGET)


def _card() -> Any:
    """A card whose driver answers at once."""
    from tilefw.api.hardware import Card, CardInfo, CardProgram, Driver

    answers = {
        "current": 0, "owner": 0, "load": 1, "function": 2, "new_event": 3, "happened": True, "seconds": 0.0, "reaches": True,
        "prepare": lambda: None,
    }
    methods = {name: partial(_answered, answers.get(name)) for name in Driver.__abstractmethods__}
    driver = type("Idle", (Driver,), {name: _method(answer) for name, answer in methods.items()})()
    card = type("IdleCard", (Card,), {"program": lambda self, artifact: CardProgram(b"", {})})
    return card(TARGET, driver, CardInfo(0, "idle", "sm_80", 1 << 40))


def _answered(answer: Any) -> Any:
    return answer


def _method(answered: Callable[[], Any]) -> Callable[..., Any]:
    answer = answered()
    return lambda self, *args: answer


def _peer(row: Row) -> Callable[[], object] | None:
    """Triton's launch with its driver's functions replaced, None where Triton is not installed."""
    try:
        import triton
        import triton.language
    except ImportError:
        return None
    _stand_in(triton)
    return call(kernel_of(triton.jit, triton.language, row.size, "triton"), row, arrays_of(row))


def _stand_in(triton: Any) -> None:
    """A driver with one card on which nothing runs; its launcher in C takes what it is given."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia import driver as nvidia

    class Utils:
        launch = staticmethod(lambda *args: None)
        unload_module = staticmethod(lambda *args: None)
        load_binary = staticmethod(lambda *args: (1, 2, 32, 0, 1024))
        get_device_properties = staticmethod(lambda device: {"max_shared_mem": 1 << 18, "multiprocessor_count": 108})

    class Idle:
        utils = Utils()
        launcher_cls = nvidia.CudaLauncher

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return 0

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", 80, 32)

        def allocate_default_profile_scratch(self, *args: Any) -> None:
            return None

    nvidia.annotate_arguments = lambda signature: ()
    nvidia.make_kernel_signature = lambda signature: b""
    nvidia.wrap_handle_tensordesc = lambda launcher, signature, described: launcher
    triton.runtime.driver.set_active(Idle())


if __name__ == "__main__":
    print(measure())
