"""`triton.testing`: comparisons, and benchmarks, which measure on a card only.

Seconds of a simulator are not a chip's. `do_bench` runs its function once on one and gives the host's milliseconds; a
`perf_report` is not run there at all, and says so.
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from tilefw.api.errors import UnsupportedError
from tilefw.triton import chip

_MODES: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min, "max": max, "mean": statistics.fmean, "median": statistics.median,
}


def do_bench(
    fn: Callable[[], Any], warmup: int = 25, rep: int = 100, grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None, return_mode: str = "mean",
) -> Any:
    """Milliseconds of `fn`: one run on a simulator, whose host's clock is read; `warmup` and `rep` are Triton's, in milliseconds.

    With `quantiles` a list (of one number, once for each), with `return_mode="all"` a list of all runs.
    """
    times = _times(fn, warmup, rep, grad_to_none)
    if quantiles is not None:
        found = [_quantile(times, share) for share in quantiles]
        return found if len(found) > 1 else found[0]
    return times if return_mode == "all" else _MODES[return_mode](times)


def do_bench_cudagraph(
    fn: Callable[[], Any], rep: int = 20, grad_to_none: Any = None, quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """As `do_bench`: no launches are captured."""
    return do_bench(fn, rep=rep, grad_to_none=grad_to_none, quantiles=quantiles, return_mode=return_mode)


def on_simulator() -> bool:
    """Whether launches go to a simulator now."""
    from tilefw.runtime.config import resolve
    from tilefw.runtime.executor import unsaid
    from tilefw.runtime.plugins.loader import find_target

    said = resolve()
    return (unsaid(find_target(said.target).info) if said.executor == "default" else said.executor) != "hw"


def _times(fn: Callable[[], Any], warmup: float, rep: float, grad_to_none: Any) -> list[float]:
    if on_simulator():
        return [_milliseconds(fn, grad_to_none)]
    for _ in range(max(1, int(warmup / max(_milliseconds(fn, grad_to_none), 1e-3)))):
        fn()
    first = _milliseconds(fn, grad_to_none)
    return [_milliseconds(fn, grad_to_none) for _ in range(max(1, int(rep / max(first, 1e-3))))]


def _milliseconds(fn: Callable[[], Any], grad_to_none: Any) -> float:
    for tensor in grad_to_none or ():
        tensor.grad = None
    began = time.perf_counter()
    fn()
    if "torch" in sys.modules and not on_simulator():
        sys.modules["torch"].cuda.synchronize()  # launches on a card are not complete when they return
    return 1000 * (time.perf_counter() - began)


def _quantile(times: Sequence[float], share: float) -> float:
    """Linear between the two nearest, as `numpy.quantile`."""
    ordered, at = sorted(times), share * (len(times) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Raise AssertionError where two arrays differ by more than `atol` (0.01) and `rtol` (0), as Triton's own does."""
    import numpy as np

    left, right = (_as_numpy(value) for value in (x, y))
    if left.size > 1 or right.size > 1:
        np.testing.assert_allclose(
            left, right, atol=1e-2 if atol is None else atol, rtol=0.0 if rtol is None else rtol, equal_nan=True, err_msg=err_msg
        )
    elif not np.allclose(left, right, atol=1e-2 if atol is None else atol, rtol=0.0 if rtol is None else rtol):
        raise AssertionError(f"{err_msg} {left} is not close to {right} (atol={atol}, rtol={rtol})")


def _as_numpy(value: Any) -> Any:
    import numpy as np

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    return np.asarray(value)


@dataclass
class Benchmark:
    """What a `perf_report` measures: `line_vals` over `x_vals`, with `args` for the rest; the fields are Triton's."""

    x_names: list[str]
    x_vals: list[Any]
    line_arg: str
    line_vals: list[Any]
    line_names: list[str]
    plot_name: str
    args: dict[str, Any]
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None
    color: Any = field(default=None, repr=False)


class Mark:
    """A function with its benchmarks; `run` measures them."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks
        functools.update_wrapper(cast(Any, self), fn)

    def run(
        self, show_plots: bool = False, print_data: bool = False, save_path: str = "", return_df: bool = False, **keywords: Any
    ) -> Any:
        """The tables of all benchmarks as lists of rows, printed with `print_data`. On a simulator: one line each on standard
        error, and no rows. Plots are not drawn."""
        single = hasattr(self.benchmarks, "plot_name")  # Triton's own Benchmark too, where its compiler is kept
        benchmarks: list[Any] = [self.benchmarks] if single else list(cast(Any, self.benchmarks))
        tables = [_measured(self.fn, bench, print_data, keywords) for bench in benchmarks]
        return (tables[0] if single else tables) if return_df else None


def _measured(fn: Callable[..., Any], bench: Any, print_data: bool, keywords: dict[str, Any]) -> list[list[Any]]:
    if on_simulator():
        print(f"{bench.plot_name}: not measured, {chip.summary()} is simulated", file=sys.stderr)
        return []
    rows = []
    for x in bench.x_vals:
        values = x if isinstance(x, list | tuple) else [x] * len(bench.x_names)
        named = dict(zip(bench.x_names, values, strict=True))
        rows.append([x, *(fn(**named, **{bench.line_arg: y}, **bench.args, **keywords) for y in bench.line_vals)])
    if print_data:
        print(f"{bench.plot_name}:")
        for row in [[", ".join(bench.x_names), *bench.line_names], *rows]:
            print("  " + "  ".join(str(cell) for cell in row))
    return rows


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Make a function of one measurement a report over `benchmarks`."""
    return lambda fn: Mark(fn, benchmarks)


def get_dram_gbps(device: Any = None) -> float:
    """Refused: nothing here knows the bandwidth of the target's memory."""
    raise UnsupportedError("the bandwidth of the device's memory is not known", "TFW0103")


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: Any = None) -> float:
    """Refused: nothing here knows the clock of the target."""
    raise UnsupportedError("the rate of the device's matrix units is not known", "TFW0103")


def __getattr__(name: str) -> Any:
    if name == "runtime":  # Triton's `testing` imports it, and programs take it from there
        from tilefw.triton import importing

        return (sys.modules if importing.installed() else importing.private_modules())["triton.runtime"]
    raise AttributeError(f"triton.testing has no name {name!r}")
