"""`tilefw.autotune`: run every configuration once per key and keep the cheapest, as Triton does; classes and names are Triton's.

On a card the time of the device decides. On a simulator it is the model of time, where the target has one that knows all
candidates, and else what the launch executed and moved (tuning_cost.py): the seconds of a simulator say nothing of the chip.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from numbers import Number
from typing import Any
from warnings import warn

from tilefw.api.errors import CapacityError, CompileError, LaunchError
from tilefw.runtime.arguments.kernel_call import by_position, place_of_variadic
from tilefw.runtime.config import resolve, settings, tunes
from tilefw.runtime.debugged import DEBUGGER
from tilefw.runtime.tuned_choices import KEPT, any_kept, kept, key_of_problem, plain
from tilefw.runtime.tuning_cost import Price, judged, price

_RUNS_ON_A_CARD = 5  # the first, which finds caches cold, counts only where it is the fastest
_LAUNCH_KEYWORDS = ("num_warps", "num_ctas", "num_stages", "maxnreg")
_PRINT = "TRITON_PRINT_AUTOTUNING"  # Triton's own variable, which users of `autotune` know


class Config:
    """One configuration: `kwargs` are meta-parameters of the kernel, the others launch keywords.

    `pre_hook` is called before each launch, and before TILEFW_AUTOTUNE=first compiles, with the dict of all arguments by name.
    None leaves a keyword to the target's default.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int | None = None,
        num_stages: int | None = None,
        num_ctas: int | None = None,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
    ) -> None:
        if ir_override is not None:
            raise LaunchError("a configuration cannot bring IR of Triton's (ir_override)", "TFW0305", help="leave it out")
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = None

    def all_kwargs(self) -> dict[str, Any]:
        """Meta-parameters and the launch keywords that are set."""
        return self.kwargs | {name: value for name in _LAUNCH_KEYWORDS if (value := getattr(self, name)) is not None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and (self.all_kwargs(), self.pre_hook) == (other.all_kwargs(), other.pre_hook)

    def __hash__(self) -> int:
        return hash((*self.all_kwargs().items(), self.pre_hook))

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    def __repr__(self) -> str:
        return f"Config({self})"


class _Underway(threading.local):
    """What one thread's launch of a tuned kernel has under way."""

    def __init__(self) -> None:
        self.nargs: dict[str, Any] | None = None
        self.problems: list[str] = []
        self.restore_copies: dict[str, Any] = {}
        self.prices: dict[Config, Price] = {}


class Autotuner:
    """A kernel with configurations to choose from. Subclasses may override `run`, `prune_configs` and `_bench`, as with Triton.

    `best_config` is the last choice, `cache` the choice of each key, `configs_timings` what each candidate of the last tuning cost:
    `chosen_by` says what that is: seconds of a card or of the model of time, or what tuning_cost.py counts. A choice that `tilefw
    tune` has kept needs no tuning. `nargs` holds the positional arguments by name during a launch.
    `nargs`, `problems` and `restore_copies` are each thread's own, so that several threads may launch and tune one kernel.
    """

    __iter__ = None  # `kernel[grid]` is no sequence: without this Python would ask for grid after grid

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: int | None = None,
        rep: int | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
    ) -> None:
        self.fn = fn
        self.base_fn = fn
        while hasattr(self.base_fn, "fn"):
            self.base_fn = self.base_fn.fn
        self.arg_names: list[str] = list(arg_names)
        self._variadic = place_of_variadic(fn)
        self.__name__: str = fn.__name__
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.early_config_prune = (prune_configs_by or {}).get("early_config_prune")
        self.perf_model = (prune_configs_by or {}).get("perf_model")
        self.configs_top_k = (prune_configs_by or {}).get("top_k", 1.0)
        # Subclasses call the hooks and `_bench`, and put hooks of their own where the user gave none.
        self.pre_hook, self.post_hook, self.do_bench = pre_hook or self._prepare_arrays, post_hook or self._restore_arrays, do_bench
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self._underway = _Underway()
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.best_config: Config | None = None
        self.configs_timings: dict[Config, float] = {}
        self.chosen_by = ""
        for option, names in (("reset_to_zero", self.reset_to_zero), ("restore_value", self.restore_value)):
            for name in self._unknown(names):
                raise LaunchError(self._names_unknown(option, name), "TFW0304", help=self._meant(name))
        for name in self._unknown(self.keys):  # Triton before 3.9 drops it without a word, and programs have such keys
            warn("; ".join(filter(None, (self._names_unknown("key", name), self._meant(name)))), stacklevel=3)

    @property
    def nargs(self) -> dict[str, Any] | None:
        return self._underway.nargs

    @nargs.setter
    def nargs(self, named: dict[str, Any] | None) -> None:
        self._underway.nargs = named

    @property
    def problems(self) -> list[str]:
        return self._underway.problems

    @problems.setter
    def problems(self, problems: list[str]) -> None:
        self._underway.problems = problems

    @property
    def restore_copies(self) -> dict[str, Any]:
        return self._underway.restore_copies

    @restore_copies.setter
    def restore_copies(self, copies: dict[str, Any]) -> None:
        self._underway.restore_copies = copies

    def _unknown(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self.arg_names]

    def _names_unknown(self, option: str, name: str) -> str:
        return f"autotune's {option} names `{name}`, which kernel `{self.__name__}` does not have"

    def _meant(self, name: str) -> str | None:
        near = get_close_matches(name, self.arg_names, 1)
        return f"did you mean `{near[0]}`?" if near else None

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **keywords: self.run(*args, grid=grid, **keywords)

    def run(self, *args: Any, grid: Any, **keywords: Any) -> Any:
        """Launch with the best configuration for these arguments; tunes first for a key that was not seen yet."""
        named, underway = by_position(self.arg_names, self._variadic, args), self._underway
        # A hook of a launch, or a signal's handler, may make this one: what is under way of that stays.
        outer = underway.nargs, underway.problems, underway.restore_copies
        underway.nargs = named
        try:
            self._check_conflicts(named.keys() | keywords.keys())
            config = self.configs[0] if len(self.configs) == 1 else self._choose(args, grid, keywords)
            self.best_config = config
            return self._launch(config, args, grid, keywords)
        finally:
            underway.nargs, underway.problems, underway.restore_copies = outer

    def warmup(self, *args: Any, grid: Any, **keywords: Any) -> list[Any]:
        """Compile every configuration that pruning leaves, without a launch."""
        outer, self.nargs = self.nargs, by_position(self.arg_names, self._variadic, args)
        try:
            return [
                self.fn.warmup(*args, grid=grid, **keywords, **config.all_kwargs()) for config in self.prune_configs(keywords)
            ]
        finally:
            self.nargs = outer

    def _check_conflicts(self, given: set[str]) -> None:
        hints = given.intersection(_LAUNCH_KEYWORDS)  # mostly none; at each launch, so without a dict for each configuration
        if not hints and all(config.kwargs.keys().isdisjoint(given) for config in self.configs):
            return
        conflicts = sorted({name for config in self.configs for name in config.all_kwargs()} & given)
        if conflicts:
            words = f"the launch of `{self.__name__}` sets {', '.join(conflicts)}, which autotune chooses"
            raise LaunchError(words, "TFW0305", help="leave them out")

    def _named(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        return {**(self.nargs or {}), **keywords}

    def _choose(self, args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> Config:
        named = self._named(keywords)
        key = (*(_key_part(named.get(name)) for name in self.keys), *_dtypes(named.values()), keywords.get("target"))
        measured = tunes() and DEBUGGER.get() is None  # nothing of a debugged launch tells what it costs
        if not measured:  # what was not measured does not stand for what is
            key = (*key, "first")
        if key not in self.cache:
            candidates = self.prune_configs(keywords)
            found = self._kept(candidates, named, keywords)
            if len(candidates) == 1 or found is not None:
                self.cache[key] = candidates[0] if found is None else found
            elif measured:
                self.cache[key] = self._tune(key, candidates, args, grid, keywords)
            else:
                self.cache[key] = self._first(candidates, args, grid, keywords)
        return self.cache[key]

    def _kept(self, candidates: list[Config], named: Mapping[str, Any], keywords: Mapping[str, Any]) -> Config | None:
        """The candidate that `tilefw tune` has chosen for the problem, if it has."""
        if not any_kept():
            return None
        resolved = resolve(settings(keywords.get("target")))
        arrays = {name: value for name, value in named.items() if hasattr(value, "dtype") and not isinstance(value, Number)}
        types = {name: str(array.dtype).rpartition(".")[2] for name, array in arrays.items()}
        keys = {name: named[name] for name in self.keys if name in named and name not in arrays}
        choice = kept(key_of_problem(self.fn, resolved.target, keys, types))
        if choice is None:
            return None
        found = next((config for config in candidates if plain(config.all_kwargs()) == choice), None)
        self.chosen_by = self.chosen_by if found is None else KEPT
        return found

    def _first(self, candidates: list[Config], args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> Config:
        """The first candidate that compiles and fits."""
        problems: list[str] = []
        for candidate in candidates:
            try:
                self._prepare(candidate, keywords)
                self.fn.warmup(*args, grid=grid, **keywords, **candidate.all_kwargs())
                return candidate
            except (CompileError, CapacityError) as error:
                problems.append(f"{candidate}: {error.message}")
        raise self._none_compiles(problems)

    def _none_compiles(self, problems: Sequence[str]) -> LaunchError:
        return LaunchError(f"every configuration of `{self.__name__}` failed to compile", "TFW0305", note="\n".join(problems))

    def prune_configs(self, keywords: Mapping[str, Any]) -> list[Config]:
        """The configurations worth a run; raises LaunchError TFW0305 where none is left."""
        configs = self.configs
        if self.early_config_prune:
            configs = list(self.early_config_prune(configs, self.nargs, **keywords))
        if self.perf_model:
            share, named = self.configs_top_k, self._named(keywords)
            count = max(1, int(len(configs) * share)) if isinstance(share, float) and share <= 1.0 else int(share)
            model = self.perf_model
            configs = sorted(configs, key=lambda config: model(**{**named, **config.all_kwargs()}))[:count]
        if not configs:
            raise LaunchError(f"no configuration of `{self.__name__}` is left after pruning", "TFW0305")
        return configs

    def _tune(
        self, key: tuple[Any, ...], candidates: list[Config], args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]
    ) -> Config:
        """The cheapest candidate."""
        self.problems, self._underway.prices, began = [], {}, time.perf_counter()
        likely = self._likely(candidates, args, grid, keywords)
        timings = {config: self._bench(*args, config=config, grid=grid, **keywords) for config in likely}
        if len(self.problems) == len(likely):  # none of them compiles: the others may
            others = [config for config in candidates if config not in likely]
            timings |= {config: self._bench(*args, config=config, grid=grid, **keywords) for config in others}
            likely = [*likely, *others]
        timings, self.chosen_by = judged(timings, self._underway.prices)
        self.configs_timings = timings
        if len(self.problems) == len(likely):
            raise self._none_compiles(self.problems)
        best = min(timings, key=timings.__getitem__)
        self.pre_hook({**self._named(keywords), **best.all_kwargs()}, reset_only=True)
        if os.environ.get(_PRINT) == "1":
            took = f"took {time.perf_counter() - began:.2f} s, {len(likely)} of {len(candidates)} candidates run"
            print(f"autotuning of {self.__name__} for {key} {took}; best by {self.chosen_by}: {best}")
        return best

    def _likely(self, candidates: list[Config], args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> list[Config]:
        """The candidates that are worth a run: on a simulator the best by estimates, unless somebody else measures, or a hook may
        change what is launched."""
        from tilefw.runtime.likely_configs import likely

        measured_elsewhere = self.do_bench is not None or type(self)._bench is not Autotuner._bench
        if measured_elsewhere or self.pre_hook != self._prepare_arrays:
            return candidates
        return likely(self.fn, candidates, args, grid, keywords)

    def _bench(self, *args: Any, config: Config, grid: Any, **keywords: Any) -> float:
        """What `config` costs; with a `do_bench` of the user's, the middle of what that gives. What does not compile or fit costs
        infinitely much, and `problems` gains the reason."""
        try:
            return self._price(config, args, grid, keywords)
        except (CompileError, CapacityError) as error:
            self.problems.append(f"{config}: {error.message}")
            return float("inf")

    def _price(self, config: Config, args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> float:
        if self.do_bench is not None:
            found = self.do_bench(lambda: self._launch_once(config, args, grid, keywords), quantiles=(0.5, 0.2, 0.8))
            return found[0] if isinstance(found, list | tuple) else found
        price, executor = self._bench_once(config, args, grid, keywords)
        for _ in range(_RUNS_ON_A_CARD - 1 if executor == "hw" else 0):
            price = min(price, self._bench_once(config, args, grid, keywords)[0])
        return price

    def _bench_once(self, config: Config, args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> tuple[float, str]:
        """What one launch cost, and which executor ran it. The model of time finds the arrays as the hook behind it leaves them."""
        result = self._launch_once(config, args, grid, keywords)
        if result is None:  # a hook has taken it over
            return float("inf"), ""
        found = self._underway.prices[config] = price(result)
        return found.value, result.executor

    def _launch_once(self, config: Config, args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> Any:
        """A launch between its hooks."""
        everything, failure = {**self._named(keywords), **config.all_kwargs()}, None
        self.pre_hook(everything)
        try:
            return self._launch(config, args, grid, keywords)
        except Exception as error:
            failure = error
            raise
        finally:
            self.post_hook(everything, exception=failure)

    def _prepare_arrays(self, named: Mapping[str, Any], reset_only: bool = False) -> None:
        """The hook before a launch where the user gave none; with `reset_only` no hook comes after the launch."""
        for name in self.reset_to_zero:
            if named.get(name) is not None:
                _assign(named[name], (0,) * len(_arrays(named[name])))
        if not reset_only:
            self.restore_copies = {name: _copy(named[name]) for name in self.restore_value if named.get(name) is not None}

    def _restore_arrays(self, named: Mapping[str, Any], exception: Exception | None = None) -> None:
        """The hook behind a launch where the user gave none."""
        for name, value in self.restore_copies.items():
            _assign(named[name], _arrays(value))
        self.restore_copies = {}

    def _launch(self, config: Config, args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> Any:
        self._prepare(config, keywords)
        return self.fn.run(*args, grid=grid, **{"warmup": False, **keywords}, **config.all_kwargs())

    def _prepare(self, config: Config, keywords: dict[str, Any]) -> None:
        if config.pre_hook is not None:
            config.pre_hook(self._named(keywords) | config.all_kwargs())


def _key_part(value: Any) -> Any:
    """A value of the key; an array counts by its shape, a tuple by its items."""
    if hasattr(value, "shape"):
        return tuple(value.shape)
    return tuple(map(_key_part, value)) if isinstance(value, tuple) else value


def _arrays(value: Any) -> Sequence[Any]:
    """An argument that is no tuple, or the arrays that a tuple has."""
    if not isinstance(value, tuple):
        return (value,)
    return [array for item in value for array in _arrays(item) if hasattr(array, "__setitem__")]


def _dtypes(values: Iterable[Any]) -> list[str]:
    """The names of the types of the arrays, in their order."""
    items = [item for value in values for item in (_arrays(value) if isinstance(value, tuple) else (value,))]
    found = [dtype for item in items if (dtype := getattr(item, "dtype", None)) is not None]
    try:
        return list(map(_dtype_name, found))
    except TypeError:  # a type of somebody's own, without a hash
        return list(map(str, found))


@lru_cache(maxsize=256)
def _dtype_name(dtype: Any) -> str:
    """NumPy takes some µs to spell a type, and every launch of a tuned kernel asks for those of all arrays."""
    return str(dtype)


def _copy(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_copy, _arrays(value)))
    return value.clone() if hasattr(value, "clone") else value.copy()


def _assign(given: Any, values: Sequence[Any]) -> None:
    for array, value in zip(_arrays(given), values, strict=True):
        array[...] = value


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
) -> Callable[[Any], Autotuner]:
    """Choose among `configs` whenever the values of the arguments named in `key`, or any dtype, are new.

    Candidates run on the launch's executor: each five times on a card, whose fastest time counts; once on a simulator, where the
    model of time says, or else executed instructions and traffic, and of more than two only the best by quick estimates, where the
    chip has them. `reset_to_zero` and `restore_value` name arrays that a run
    would spoil for the next. `prune_configs_by` may have `early_config_prune(configs, named_args, **keywords)`,
    `perf_model(**args)` and `top_k` (a share or a number). `do_bench(call, quantiles)` measures instead of us. `warmup`, `rep`,
    `use_cuda_graph` and `cache_results` are taken for Triton's sake.
    """
    return lambda fn: Autotuner(
        fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook, prune_configs_by, warmup, rep,
        use_cuda_graph, do_bench, cache_results,
    )
