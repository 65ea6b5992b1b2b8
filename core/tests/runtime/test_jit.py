"""The decorator and its launches: arguments bound and specialised, launch keywords passed on, heuristics and autotune."""


from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.runtime.autotune
from tilefw.api.errors import CompileError, LaunchError, UnsupportedError
from tilefw.runtime import jit as module
from tilefw.runtime.jit import JITFunction, bind, specialize
from tilefw.runtime.launcher import Launcher


@tilefw.jit
def kernel(x_ptr, n, scale, BLOCK: tl.constexpr, FLAG: tl.constexpr = "fast", bias=None):
    pass


@tilefw.jit
def stored(out_ptr, n):
    tl.device_assert(n > 0, "there are some")
    tl.store(out_ptr, n)


@dataclass
class Launched:
    """What a launch would have run."""

    fn: Any
    signature: dict[str, str]
    constexprs: dict[str, Any]
    values: dict[str, Any]
    grid: Any
    keywords: dict[str, Any]
    executor: str = "sim"
    counters: dict[str, int] = field(default_factory=dict)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Launched]:
    """Launches are recorded instead of run; each executed as many instructions as its BLOCK says."""
    seen: list[Launched] = []

    def launch(launcher: Launcher, given: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> Launched:
        fn = launcher.kernel
        bound = dict(zip(fn.arg_names, given, strict=True))
        made = Launched(fn, *specialize(fn, bound, ready=True), grid(bound) if callable(grid) else grid, keywords)
        made.counters = {"instructions": made.constexprs.get("BLOCK", 0)}
        seen.append(made)
        return made

    monkeypatch.setattr(Launcher, "launch", launch)
    return seen


def signature_of(fn: JITFunction, *args: Any, **keywords: Any) -> dict[str, str]:
    bound, rest = bind(fn, args, keywords)
    assert not rest
    return specialize(fn, bound)[0]


X = np.zeros(64, np.float32)


def test_a_launch_passes_everything_on(launches: list[Launched]) -> None:
    kernel[(4, 2)](X, 100, 0.5, BLOCK=128, num_warps=8, target="reference")
    (made,) = launches
    assert made.fn is kernel
    assert made.signature == {"x_ptr": "*fp32:16", "n": "i32", "scale": "fp32"}
    assert made.constexprs == {"BLOCK": 128, "FLAG": "fast", "bias": None}
    assert list(made.values) == ["x_ptr", "n", "scale"] and made.values["x_ptr"].keep[0] is X
    assert made.grid == (4, 2) and made.keywords == {"num_warps": 8, "target": "reference"}


def test_grids_may_be_callables_of_the_bound_arguments(launches: list[Launched]) -> None:
    kernel[lambda meta: (tilefw.cdiv(meta["n"], meta["BLOCK"]),)](X, 100, 0.5, BLOCK=32)
    kernel[7](X, 100, 0.5, BLOCK=32)
    assert [made.grid for made in launches] == [(4,), 7]


@pytest.mark.parametrize(("value", "kind"), [
    (0, "i32:16"), (1, "i32:1"), (2, "i32"), (16, "i32:16"), (2**31 - 1, "i32"), (2**31, "i64:16"),
    (2**63 - 1, "i64"),
    (2**63, "u64:16"), (2**64 - 1, "u64"), (-3, "i32"), (True, "i1"), (False, "i1"), (1.0, "fp32"),
    (np.int64(3), "i32"), (np.float32(3), "fp32"), (np.int32(1), "i32:1"), (np.bool_(True), "i1"),
])
def test_numbers_specialise_as_in_triton(value: Any, kind: str) -> None:
    assert signature_of(kernel, X, value, 0.5, BLOCK=8)["n"] == kind


@pytest.mark.parametrize(("value", "kind"), [(-16, "i32"), (-(2**31), "i32"), (-(2**31) - 16, "i64"), (-(2**63), "i64")])
def test_negative_multiples_of_16_have_code_of_their_own(value: int, kind: str) -> None:
    """Triton's is that of others: but rows that go backwards are nothing for a copy engine."""
    assert signature_of(kernel, X, value, 0.5, BLOCK=8)["n"] == kind


@pytest.mark.parametrize(("value", "plain"), [
    (np.int64(8), 8), (np.uint8(8), 8), (np.bool_(True), True), (np.float32(0.5), 0.5), (np.float16(2), 2.0), (8, 8),
    ("relu", "relu"),
])
def test_numpy_scalars_are_python_numbers_at_compile_time(value: Any, plain: Any) -> None:
    constexprs = specialize(kernel, bind(kernel, (X, 2, 0.5), {"BLOCK": value})[0])[1]
    assert constexprs["BLOCK"] == plain and type(constexprs["BLOCK"]) is type(plain)


def test_scalars_of_ml_dtypes_are_numbers() -> None:
    import ml_dtypes

    for value, kind in ((ml_dtypes.bfloat16(2), "fp32"), (ml_dtypes.float8_e4m3fn(1), "fp32"), (ml_dtypes.int4(3), "i32"),
                        (ml_dtypes.uint4(3), "i32")):
        assert signature_of(kernel, X, value, 0.5, BLOCK=8)["n"] == kind


@pytest.mark.parametrize(("dtype", "kind"), [
    ("float16", "*fp16"), ("float64", "*fp64"), ("int8", "*i8"), ("uint8", "*u8"), ("int64", "*i64"), ("uint32", "*u32"),
    ("bool", "*i1"),
])
def test_arrays_become_pointers_of_their_element_type(dtype: str, kind: str) -> None:
    assert signature_of(kernel, np.zeros(64, dtype), 2, 0.5, BLOCK=8)["x_ptr"] == f"{kind}:16"


def test_arrays_of_ml_dtypes_become_pointers() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name, kind in (("bfloat16", "*bf16"), ("float8_e5m2", "*fp8e5"), ("float8_e4m3fn", "*fp8e4nv")):
        assert signature_of(kernel, np.zeros(64, getattr(ml_dtypes, name)), 2, 0.5, BLOCK=8)["x_ptr"] == f"{kind}:16"


def test_alignment_is_that_of_the_view_in_its_storage() -> None:
    assert signature_of(kernel, X[4:], 2, 0.5, BLOCK=8)["x_ptr"] == "*fp32:16"
    assert signature_of(kernel, X[1:], 2, 0.5, BLOCK=8)["x_ptr"] == "*fp32"


def test_parameters_may_stay_unspecialised() -> None:
    @tilefw.jit(do_not_specialize=["n", 2], do_not_specialize_on_alignment=["x_ptr"])
    def plain(x_ptr, n, m, k):
        pass

    assert signature_of(plain, X, 1, 16, 16) == {"x_ptr": "*fp32", "n": "i32", "m": "i32", "k": "i32:16"}


def test_annotations_fix_types() -> None:
    @tilefw.jit
    def annotated(a: tl.int64, b: "tl.uint8", c: tl.float64, d: tl.const, e: "*i8", f: int, g: "tl.constexpr"):  # noqa: F722, UP037
        pass

    assert signature_of(annotated, 1, 3, 1.0, X, X, 2**40, 5) == {
        "a": "i64", "b": "u8", "c": "fp64", "d": "*kfp32:16", "e": "*i8:16", "f": "i32:16",
    }


def test_functions_types_and_strings_are_compiled_in() -> None:
    for value in (kernel, tl.float16, "relu", tl.constexpr(5)):
        bound, _ = bind(kernel, (X, value, 0.5), {"BLOCK": 8})
        signature, constexprs, values = specialize(kernel, bound)
        plain = value.value if isinstance(value, tl.constexpr) else value
        assert constexprs["n"] is plain and "n" not in signature and "n" not in values


def test_items_of_a_tuple_may_be_compiled_in() -> None:
    bound, _ = bind(kernel, (X, (3, (tl.constexpr(5), None)), 0.5), {"BLOCK": 8})
    signature, constexprs, _ = specialize(kernel, bound)
    assert signature["n.0"] == "i32" and constexprs["n.1.0"] == 5 and constexprs["n.1.1"] is None


@pytest.mark.parametrize(("args", "keywords", "message"), [
    ((X, 2, 0.5), {}, "needs the argument `BLOCK`"),
    ((X, 2), {"BLOCK": 8}, "needs the argument `scale`"),
    ((X, 2, 0.5, 8, "a", None, 3), {}, "takes 6 arguments, not 7"),
    ((X, 2, 0.5), {"BLOCK": 8, "n": 3}, "got the argument `n` twice"),
])
def test_arguments_that_do_not_fit_are_launch_errors(args: tuple[Any, ...], keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message) as caught:
        kernel[(1,)](*args, **keywords)
    assert caught.value.code == "TFW0301"
    assert "BLOCK: constexpr" in (caught.value.note or "")


def test_parameters_for_any_keyword_are_refused_by_name() -> None:
    def named(x_ptr, **options):
        pass

    with pytest.raises(UnsupportedError, match=r"`\*\*options`"):
        tilefw.jit(named)[(1,)](X, 1)


def test_a_misspelt_argument_is_suggested() -> None:
    with pytest.raises(LaunchError) as caught:
        kernel[(1,)](X, 2, 0.5, BLOK=8)
    assert caught.value.help == "did you mean `BLOCK` instead of `BLOK`?"


@pytest.mark.parametrize("value", [[1, 2], {}, object(), np.float32, 1j])
def test_arguments_of_other_types_are_launch_errors(value: Any) -> None:
    with pytest.raises(LaunchError, match=r"cannot take (a|the) .* as `n`") as caught:
        kernel[(1,)](X, value, 0.5, BLOCK=8)
    assert caught.value.code == "TFW0302"


class View(NamedTuple):
    """An array and how to walk it."""

    ptr: Any
    stride: Any
    scale: Any = None


@tilefw.jit
def gather_views(source, into, pairs, N: tl.constexpr, rest=()):
    index = tl.arange(0, N)
    x = tl.load(source.ptr + index * source.stride)
    for i in tl.static_range(len(pairs)):
        ptr, factor = pairs[i]
        x += tl.load(ptr + index) * factor
    if source.scale is not None:
        x *= source.scale
    tl.static_assert(len(rest) == 0 and into[2] is None)
    tl.store(into.ptr + index * into.stride, x)


def test_tuples_are_passed_item_by_item() -> None:
    x, ones, out = np.arange(32, dtype=np.float32), np.ones(16, np.float32), np.zeros(16, np.float32)
    bound, _ = bind(gather_views, (View(x, 2, 0.5), View(out, 1), ((ones, 3), (ones, 16))), {"N": 16})
    signature, constexprs, values = specialize(gather_views, bound)
    assert signature == {
        "source.ptr": "*fp32:16", "source.stride": "i32", "source.scale": "fp32", "into.ptr": "*fp32:16", "into.stride": "i32:1",
        "pairs.0.0": "*fp32:16", "pairs.0.1": "i32", "pairs.1.0": "*fp32:16", "pairs.1.1": "i32:16",
    }
    assert constexprs == {
        "source.*": ("ptr", "stride", "scale"), "into.*": ("ptr", "stride", "scale"), "into.scale": None, "N": 16, "rest": (),
    }
    assert list(values) == list(signature)
    for scale, factor in ((0.5, 0.5), (None, 1.0)):
        gather_views[(1,)](View(x, 2, scale), View(out, 1), ((ones, 3), (ones, 16)), N=16, target="reference")
        assert np.array_equal(out, (x[::2] + 19) * factor)


def test_a_tuple_is_as_fit_as_its_items() -> None:
    with pytest.raises(LaunchError, match=r"cannot take a list as `n\.1`") as caught:
        kernel[(1,)](X, (2, [1]), 0.5, BLOCK=8)
    assert caught.value.code == "TFW0302"
    with pytest.raises(LaunchError, match=r"argument `n.0.0` of kernel `kernel`: 18446744073709551616 does not fit 64 bits"):
        kernel[(1,)](X, ((2**64,), 2), 0.5, BLOCK=8)


def test_an_integer_beyond_64_bits_is_a_launch_error() -> None:
    for value in (2**64, -(2**63) - 1, 10**5000):
        with pytest.raises(LaunchError, match="does not fit 64 bits") as caught:
            kernel[(1,)](X, value, 0.5, BLOCK=8)
        assert isinstance(caught.value, OverflowError)


def test_a_kernel_without_a_grid_is_a_launch_error() -> None:
    with pytest.raises(LaunchError, match="without a grid") as caught:
        kernel(X, 2, 0.5, BLOCK=8)
    assert caught.value.code == "TFW0306"


def test_options_of_the_decorator_are_a_closed_set() -> None:
    with pytest.raises(CompileError, match="no option `do_not_specialise`") as caught:
        tilefw.jit(do_not_specialise=["n"])  # type: ignore[call-overload]
    assert caught.value.help == "did you mean `do_not_specialize`?"
    assert tilefw.jit(noinline=True, version=1, repr=str, launch_metadata=None)(kernel_with_constexpr).noinline


def test_a_constexpr_is_specialised_though_it_is_listed() -> None:
    listed = tilefw.jit(do_not_specialize=["B"], do_not_specialize_on_alignment=[1])(kernel_with_constexpr)
    out = np.zeros(16, np.float32)
    listed[(1,)](out, 4, target="reference")
    assert out.tolist() == [4] * 4 + [0] * 12


def kernel_with_constexpr(x_ptr, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B), B)


def test_debug_builds_are_asked_for_at_launch() -> None:
    made = [stored.warmup(X, 2, grid=(1,), target="reference", debug=debug) for debug in (True, False)]
    assert ["assert" in one.artifact.text for one in made] == [True, False]
    assert stored.debug_build.debug and not stored.debug


def test_heuristics_compute_in_order(launches: list[Launched]) -> None:
    tuned = tilefw.heuristics({
        "BLOCK": lambda args: tilefw.next_power_of_2(args["n"]), "FLAG": lambda args: "even" if args["BLOCK"] % 2 == 0 else "odd",
    })(kernel)
    tuned[lambda meta: (meta["BLOCK"],)](X, 100, scale=0.5)
    assert launches[0].constexprs == {"BLOCK": 128, "FLAG": "even", "bias": None} and launches[0].grid == (128,)
    tuned = tilefw.heuristics({"num_warps": lambda args: 2, "waves_per_eu": lambda args: 3})(kernel)
    tuned[(1,)](X, 100, 0.5, BLOCK=8)
    assert launches[1].keywords == {"num_warps": 2, "waves_per_eu": 3}
    with pytest.raises(LaunchError, match="heuristics for `BLOK`") as caught:
        tilefw.heuristics({"BLOK": len})(kernel)
    assert caught.value.help == "did you mean `BLOCK`?"


def configs(*blocks: int, **options: Any) -> list[tilefw.Config]:
    return [tilefw.Config({"BLOCK": block}, **options) for block in blocks]


def test_autotune_keeps_the_cheapest_for_each_key(launches: list[Launched]) -> None:
    tuned = tilefw.autotune(configs(64, 16, 32, num_warps=2), key=["n"])(kernel)
    tuned[(1,)](X, 5, 0.5)
    assert [made.constexprs["BLOCK"] for made in launches] == [64, 16, 32, 16]
    assert launches[-1].keywords == {"num_warps": 2} and tuned.best_config is tuned.configs[1]
    tuned[(1,)](X, 5, 0.5)
    assert len(launches) == 5
    tuned[(1,)](X, 6, 0.5)
    assert len(launches) == 9
    tuned[(1,)](X.astype(np.float16), 6, 0.5)
    assert len(launches) == 13


def test_autotune_resets_and_restores(launches: list[Launched]) -> None:
    x, y, calls = np.ones(4, np.float32), np.ones(4, np.float32), []
    spoiling = configs(2, 1)
    for config in spoiling:
        config.pre_hook = lambda args: (calls.append((args["BLOCK"], y.tolist())), args["y_ptr"].fill(9))

    @tilefw.autotune(spoiling, key=[], reset_to_zero=["x_ptr"], restore_value=["y_ptr"])
    @tilefw.jit
    def two(x_ptr, y_ptr, BLOCK: tl.constexpr):
        pass

    two[(1,)](x, y)
    assert calls == [(2, [1] * 4), (1, [1] * 4), (1, [1] * 4)]
    assert x.tolist() == [0] * 4 and y.tolist() == [9] * 4 and two.restore_copies == {}


def test_threads_that_tune_one_kernel_leave_each_others_arrays_alone(launches: list[Launched]) -> None:
    together = threading.Barrier(2, timeout=20)
    both = configs(2, 1)
    for config in both:
        config.pre_hook = lambda args: (together.wait(), args["x_ptr"].fill(9))

    @tilefw.autotune(both, key=["n"], restore_value=["x_ptr"])
    @tilefw.jit
    def one(x_ptr, n, BLOCK: tl.constexpr):
        pass

    arrays = [np.full(4, number, np.float32) for number in range(2)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda n: one.run(arrays[n], n, grid=(1,)), range(2)))
    assert [made.values["x_ptr"].keep[0] is arrays[0] for made in launches].count(True) == 3
    assert all(array.tolist() == [9] * 4 for array in arrays) and len(one.cache) == 2
    assert one.nargs is None


def test_a_hook_may_launch_the_kernel_that_is_tuned(launches: list[Launched]) -> None:
    seen, both = [], configs(2, 1)

    def launch_again(args: dict[str, Any]) -> None:
        seen.append((args["n"], args["x_ptr"].tolist()))
        args["x_ptr"].fill(9)
        if args["n"] == 0:
            tuned[(1,)](np.zeros(4, np.float32), len(seen), 0.5)

    both[0].pre_hook = both[1].pre_hook = launch_again
    tuned = tilefw.autotune(both, key=["n"], restore_value=["x_ptr"])(kernel)
    tuned[(1,)](np.ones(4, np.float32), 0, 0.5)
    assert [values for n, values in seen if n == 0] == [[1] * 4] * 3 and tuned.nargs is None


def test_hooks_of_the_user_stand_in_the_place_of_autotunes(launches: list[Launched]) -> None:
    x, calls = np.ones(4, np.float32), []

    def before(args: dict[str, Any], reset_only: bool = False) -> None:
        calls.append("reset" if reset_only else "before")

    @tilefw.autotune(configs(2, 1), key=[], reset_to_zero=["x_ptr"], pre_hook=before,
                     post_hook=lambda args, exception: calls.append(exception))
    @tilefw.jit
    def two(x_ptr, BLOCK: tl.constexpr):
        pass

    two[(1,)](x)
    assert calls == ["before", None, "before", None, "reset"] and x.tolist() == [1] * 4


def test_a_subclass_of_the_autotuner_may_choose_by_itself(launches: list[Launched]) -> None:
    class Last(tilefw.runtime.autotune.Autotuner):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            if not self.user_defined_pre_hook and not self.user_defined_post_hook:
                self.post_hook = lambda args, exception: self.restore_copies.clear()

        def run(self, *args: Any, **keywords: Any) -> Any:
            self.cache = dict.fromkeys([(args[1], str(args[0].dtype), None)], self.configs[-1])
            return super().run(*args, **keywords)

    tuned = Last(kernel, kernel.arg_names, configs(8, 16), ["n"], None, None)
    tuned[(1,)](X, 5, 0.5)
    assert [made.constexprs["BLOCK"] for made in launches] == [16] and tuned.base_fn is kernel.fn
    assert tuned.restore_copies == {}


def test_autotune_asks_the_users_own_measure(launches: list[Launched]) -> None:
    def do_bench(call: Any, quantiles: Any) -> list[float]:
        call()
        return [-launches[-1].constexprs["BLOCK"], 0, 0]

    tuned = tilefw.autotune(configs(8, 32, 16), key=["n"], do_bench=do_bench, warmup=1, rep=2, cache_results=True)(kernel)
    tuned[(1,)](X, 5, 0.5)
    assert tuned.best_config == tilefw.Config({"BLOCK": 32}) and len(launches) == 4
    assert sorted(tuned.configs_timings.values()) == [-32, -16, -8]
    assert tuned.chosen_by == "a measure of the caller's", "nothing else prices the launches"


def test_autotune_prunes(launches: list[Launched]) -> None:
    tuned = tilefw.autotune(
        configs(64, 32, 16, 8), key=["n"],
        prune_configs_by={
            "early_config_prune": lambda configs, args, **keywords: [c for c in configs if c.kwargs["BLOCK"] > 8],
            "perf_model": lambda **args: -args["BLOCK"], "top_k": 2,
        },
    )(kernel)
    tuned[(1,)](X, 5, 0.5)
    assert [made.constexprs["BLOCK"] for made in launches] == [64, 32, 32]


def test_autotune_refuses_what_it_cannot_do(launches: list[Launched], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LaunchError, match="names `m`"):
        tilefw.autotune(configs(8), key=["n"], restore_value=["m"])(kernel)
    with pytest.warns(UserWarning, match="key names `m`"):  # Triton before 3.9 drops it, and programs have such keys
        tilefw.autotune(configs(8), key=["m"])(kernel)
    tuned = tilefw.autotune(configs(8, 16), key=["n"])(kernel)
    with pytest.raises(LaunchError, match="sets BLOCK, which autotune chooses"):
        tuned[(1,)](X, 5, 0.5, BLOCK=4)

    def fail(*args: Any) -> None:
        raise CompileError("no")

    monkeypatch.setattr(Launcher, "launch", fail)
    with pytest.raises(LaunchError, match="every configuration"):
        tuned[(1,)](X, 5, 0.5)


def test_autotune_takes_the_first_that_compiles_where_the_user_says_so(
    launches: list[Launched], monkeypatch: pytest.MonkeyPatch
) -> None:
    def warm_up(launcher: Launcher, given: Any, grid: Any, keywords: Any) -> None:
        if given[launcher.kernel.arg_names.index("BLOCK")] == 64:
            raise CompileError("no")

    monkeypatch.setenv("TILEFW_AUTOTUNE", "first")
    monkeypatch.setattr(Launcher, "warm_up", warm_up)
    tuned = tilefw.autotune(configs(64, 32, 16), key=["n"])(kernel)
    tuned[(1,)](X, 5, 0.5)
    assert [made.constexprs["BLOCK"] for made in launches] == [32]
    with pytest.raises(LaunchError, match="every configuration"):
        tilefw.autotune(configs(64, 64), key=["n"])(kernel)[(1,)](X, 5, 0.5)
    monkeypatch.delenv("TILEFW_AUTOTUNE")
    tuned[(1,)](X, 5, 0.5)  # now it is measured
    assert tuned.best_config is tuned.configs[2]


def test_the_first_that_compiles_is_compiled_after_its_hook(launches: list[Launched], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    prepared = configs(32, 16, pre_hook=lambda args: calls.append(f"hook of {args['BLOCK']}"))
    monkeypatch.setenv("TILEFW_AUTOTUNE", "first")
    monkeypatch.setattr(Launcher, "warm_up", lambda *given: calls.append("compiled"))
    tilefw.autotune(prepared, key=["n"])(kernel)[(1,)](X, 5, 0.5)
    assert calls == ["hook of 32", "compiled", "hook of 32"] and len(launches) == 1


def test_host_helpers() -> None:
    assert [tilefw.cdiv(n, 8) for n in (1, 8, 9)] == [1, 1, 2]
    assert [tilefw.next_power_of_2(n) for n in (0, 1, 2, 3, 4, 5, 1000)] == [0, 1, 2, 4, 4, 8, 1024]
    assert module.constexpr_function(lambda x: x + 1)(tl.constexpr(2)) == 3
    assert module.constexpr_function(math.gcd)(tl.constexpr(12), 18) == 6


def test_decorating_and_binding_load_neither_xdsl_nor_numpy() -> None:
    program = (
        "import sys, tilefw, tilefw.language as tl\n"
        "from tilefw.runtime.jit import bind, specialize\n"
        "@tilefw.jit\n"
        "def kernel(x_ptr, n, BLOCK: tl.constexpr): pass\n"
        "specialize(kernel, bind(kernel, (None, 5), {'BLOCK': 8})[0])\n"
        "print([m for m in ('xdsl', 'numpy') if m in sys.modules])\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_names_of_triton_are_there() -> None:
    jit: Callable[..., Any] = tilefw.jit
    assert kernel.__name__ == "kernel" and kernel.arg_names[:2] == ["x_ptr", "n"] and callable(jit)
    assert "test_jit" in repr(kernel) and kernel.fn.__name__ == "kernel"


def test_a_kernel_and_what_its_launch_gives_are_no_sequences(launches: list[Launched]) -> None:
    launchables: list[Any] = [stored, tilefw.autotune(configs(8), key=[])(kernel), tilefw.heuristics({"n": len})(kernel)]
    for launchable in launchables:
        with pytest.raises(TypeError, match="is not iterable"):
            list(launchable)
    with pytest.raises(TypeError, match="is not iterable"):
        list(stored.warmup(X, 1, grid=(1,), target="reference"))


def test_a_launch_goes_through_a_run_that_the_program_has_put_in_place(
    launches: list[Launched], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Traced(JITFunction):
        def run(self, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
            seen.append(("subclass", grid, warmup))
            return super().run(*args, grid=grid, warmup=warmup, **keywords)

    def wrapped(self: JITFunction, *args: Any, **keywords: Any) -> Any:
        seen.append(("class", keywords["grid"], keywords["warmup"]))
        return run(self, *args, **keywords)

    seen: list[Any] = []
    run = JITFunction.run
    Traced(kernel.fn)[(2,)](X, 1, 1.0, BLOCK=8, target="reference")
    monkeypatch.setattr(JITFunction, "run", wrapped)
    kernel[(3,)](X, 1, 1.0, BLOCK=8, target="reference")
    tilefw.autotune([tilefw.Config({"BLOCK": 8})], key=[])(kernel)[(4,)](X, 1, 1.0, target="reference")
    tilefw.heuristics({"BLOCK": lambda _: 8})(kernel)[(5,)](X, 1, 1.0, target="reference")
    assert seen == [("subclass", (2,), False), *(("class", (grid,), False) for grid in (3, 4, 5))]
    assert len(launches) == 4
