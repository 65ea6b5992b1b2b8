"""`tilefw.autotune`: run every configuration once per key, keep the fastest by the executor's own time, as Triton does."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from tilefw.api.errors import CompileError, LaunchError
from tilefw.runtime.device_times import EXECUTE

_RUNS_ON_A_CARD = 5  # the first, which finds caches cold, counts only where it is the fastest


class Config:
    """One configuration: `kwargs` are meta-parameters of the kernel, the others launch keywords.

    `pre_hook` is called before each launch with the dict of all arguments by name. None leaves a keyword to the target's
    default.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int | None = None,
        num_stages: int | None = None,
        num_ctas: int | None = None,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        """Meta-parameters and the launch keywords that are set."""
        keywords = {name: getattr(self, name) for name in ("num_warps", "num_ctas", "num_stages", "maxnreg")}
        return {**self.kwargs, **{name: value for name, value in keywords.items() if value is not None}}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    def __repr__(self) -> str:
        return f"Config({self})"


class Autotuner:
    """A kernel with configurations to choose from; `best_config` is the last choice, `timings` the seconds of the last tuning."""

    def __init__(
        self,
        fn: Any,
        configs: Sequence[Config],
        key: Sequence[str],
        prune_configs_by: Mapping[str, Any],
        reset_to_zero: Sequence[str],
        restore_value: Sequence[str],
        pre_hook: Callable[..., Any] | None,
        post_hook: Callable[..., Any] | None,
    ) -> None:
        self.fn = fn
        self.arg_names: list[str] = fn.arg_names
        self.__name__: str = fn.__name__
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self.reset_to_zero, self.restore_value = list(reset_to_zero), list(restore_value)
        self.prune_configs_by = dict(prune_configs_by)
        self.pre_hook, self.post_hook = pre_hook, post_hook
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.best_config: Config | None = None
        self.timings: dict[Config, float] = {}
        for option, names in (("key", self.keys), ("reset_to_zero", self.reset_to_zero), ("restore_value", self.restore_value)):
            self._check_names(option, names)

    def _check_names(self, option: str, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.arg_names:
                near = get_close_matches(name, self.arg_names, 1)
                raise LaunchError(
                    f"autotune's {option} names `{name}`, which kernel `{self.__name__}` does not have", "TFW0304",
                    help=f"did you mean `{near[0]}`?" if near else None,
                )

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid=grid)

    def run(self, *args: Any, grid: Any, **keywords: Any) -> Any:
        """Launch with the best configuration for these arguments; tunes first for a key that was not seen yet."""
        named = {**dict(zip(self.arg_names, args, strict=False)), **keywords}
        self._check_conflicts(named)
        config = self.configs[0] if len(self.configs) == 1 else self._choose(named, args, grid, keywords)
        self.best_config = config
        return self._launch(config, named, args, grid, keywords)

    def _check_conflicts(self, named: Mapping[str, Any]) -> None:
        conflicts = sorted({name for config in self.configs for name in config.all_kwargs()} & named.keys())
        if conflicts:
            words = f"the launch of `{self.__name__}` sets {', '.join(conflicts)}, which autotune chooses"
            raise LaunchError(words, "TFW0305", help="leave them out")

    def _choose(self, named: dict[str, Any], args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> Config:
        dtypes = [str(value.dtype) for value in named.values() if hasattr(value, "dtype")]
        key = (*(_key_part(named.get(name)) for name in self.keys), *dtypes, keywords.get("target"))
        if key not in self.cache:
            candidates = self._pruned(named, keywords)
            self.cache[key] = candidates[0] if len(candidates) == 1 else self._tune(candidates, named, args, grid, keywords)
        return self.cache[key]

    def _pruned(self, named: dict[str, Any], keywords: dict[str, Any]) -> list[Config]:
        configs = self.configs
        if early := self.prune_configs_by.get("early_config_prune"):
            configs = list(early(configs, named, **keywords))
        if model := self.prune_configs_by.get("perf_model"):
            share = self.prune_configs_by.get("top_k", 1.0)
            count = max(1, int(len(configs) * share)) if isinstance(share, float) and share <= 1.0 else int(share)
            configs = sorted(configs, key=lambda config: model(**{**named, **config.all_kwargs()}))[:count]
        if not configs:
            raise LaunchError(f"no configuration of `{self.__name__}` is left after pruning", "TFW0305")
        return configs

    def _tune(
        self, candidates: list[Config], named: dict[str, Any], args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]
    ) -> Config:
        """The fastest candidate. One that does not compile is out; arrays to restore get back what they held."""
        self.timings, problems = {}, []
        for config in candidates:
            kept = {name: _copy(named[name]) for name in self.restore_value if named.get(name) is not None}
            try:
                self.timings[config] = self._measure(config, named, args, grid, keywords)
            except CompileError as error:
                problems.append(f"{config}: {error.message}")
            finally:
                for name, value in kept.items():
                    _assign(named[name], value)
        if not self.timings:
            raise LaunchError(f"every configuration of `{self.__name__}` failed to compile", "TFW0305", note="\n".join(problems))
        self._reset(named)
        return min(self.timings, key=self.timings.__getitem__)

    def _measure(
        self, config: Config, named: dict[str, Any], args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]
    ) -> float:
        seconds, executor = self._measure_once(config, named, args, grid, keywords)
        for _ in range(_RUNS_ON_A_CARD - 1 if executor == "hw" else 0):
            seconds = min(seconds, self._measure_once(config, named, args, grid, keywords)[0])
        return seconds

    def _measure_once(
        self, config: Config, named: dict[str, Any], args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]
    ) -> tuple[float, str]:
        """The executor's seconds of one launch, and which executor it was."""
        everything, failure = {**named, **config.all_kwargs()}, None
        self._reset(named)
        if self.pre_hook is not None:
            self.pre_hook(everything)
        try:
            result = self._launch(config, named, args, grid, keywords)
            return result.times.get(EXECUTE, 0.0), result.executor
        except Exception as error:
            failure = error
            raise
        finally:
            if self.post_hook is not None:
                self.post_hook(everything, exception=failure)

    def _reset(self, named: dict[str, Any]) -> None:
        for name in self.reset_to_zero:
            if named.get(name) is not None:
                _assign(named[name], 0)

    def _launch(self, config: Config, named: dict[str, Any], args: tuple[Any, ...], grid: Any, keywords: dict[str, Any]) -> Any:
        if config.pre_hook is not None:
            config.pre_hook({**named, **config.all_kwargs()})
        return self.fn.run(*args, grid=grid, **keywords, **config.all_kwargs())


def _key_part(value: Any) -> Any:
    """A value of the key; an array counts by its shape."""
    return tuple(value.shape) if hasattr(value, "shape") else value


def _copy(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else array.copy()


def _assign(array: Any, value: Any) -> None:
    array[...] = value


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
) -> Callable[[Any], Autotuner]:
    """Choose among `configs` by measurement whenever the values of the arguments named in `key`, or any dtype, are new.

    Each candidate runs on the launch's executor, whose own seconds count: five times on a card, of which the fastest counts, once
    on a simulator, whose time is not the chip's. `reset_to_zero` and `restore_value` name arrays that a run would spoil for the
    next. `prune_configs_by` may have `early_config_prune(configs, named_args, **keywords)`, `perf_model(**args)` and `top_k` (a
    share or a number).
    """
    return lambda fn: Autotuner(
        fn, configs, key, prune_configs_by or {}, reset_to_zero or (), restore_value or (), pre_hook, post_hook
    )
