"""`@tilefw.jit` and the functions that it makes: kernels, what kernels call, and helpers of host code.

Nothing here loads xDSL, and NumPy comes only with the user's arrays: a launch that hits the cache stays cheap.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import textwrap
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, overload

from tilefw.api.errors import CompileError, LaunchError
from tilefw.language.constants import unwrap
from tilefw.runtime.arguments.kernel_call import Binder, bind, binder, require_named
from tilefw.runtime.arguments.kernel_parameter import KernelParameter
from tilefw.runtime.arguments.specialization import specialize, without_memory
from tilefw.runtime.autotune import Autotuner, Config, autotune
from tilefw.runtime.debugged import DEBUGGER
from tilefw.runtime.entry_name import Naming, SpecializationProxy, checked_name, specialization

if TYPE_CHECKING:
    from tilefw.frontend.watched import Watched
    from tilefw.runtime.estimates import Estimates
    from tilefw.runtime.launcher import Launcher
    from tilefw.timing.estimate.estimated_time import Estimate

__all__ = [
    "Autotuner", "Config", "ConstexprFunction", "JITFunction", "KernelParameter", "autotune", "bind", "cdiv",
    "constexpr_function", "jit", "next_power_of_2", "specialize",
]


class JITFunction:
    """A kernel, or a function that kernels call. `kernel[grid](…)` launches it; see `jit`."""

    __tilefw_jit__ = True
    __name__: str
    __qualname__: str
    __iter__ = None  # `kernel[grid]` is no sequence: without this Python would ask for grid after grid

    def __init__(
        self,
        fn: types.FunctionType,
        *,
        source: str | None = None,
        do_not_specialize: Iterable[int | str] = (),
        do_not_specialize_on_alignment: Iterable[int | str] = (),
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Naming | None = None,
    ) -> None:
        if not isinstance(fn, types.FunctionType):
            raise CompileError(
                f"@tilefw.jit takes a function made with `def`, not a {type(fn).__name__}", "TFW0101",
                help="stack @tilefw.jit below @tilefw.autotune and @tilefw.heuristics" if hasattr(fn, "fn") else None,
            )
        if not isinstance(source, str | None):
            raise CompileError(f"a kernel's source is a string, not a {type(source).__name__}", "TFW0121")
        self.fn = fn
        self.debug, self.noinline = bool(debug), bool(noinline)
        self.signature = inspect.signature(fn)
        self.do_not_specialize, self.do_not_specialize_on_alignment = [*do_not_specialize], [*do_not_specialize_on_alignment]
        self.params = self._parameters(set(self.do_not_specialize), set(self.do_not_specialize_on_alignment))
        self.arg_names = list(self.signature.parameters)
        nameless = inspect.Parameter.VAR_KEYWORD
        self.nameless = next((str(p) for p in self.signature.parameters.values() if p.kind is nameless), None)
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self._text = source
        self._repr = repr
        self.device_caches: defaultdict[int, tuple[dict[Any, Any], ...]] = defaultdict(lambda: ({}, {}))
        self.module = fn.__module__
        self.__globals__ = fn.__globals__
        functools.update_wrapper(self, fn, updated=())

    def _parameters(self, unspecialized: set[int | str], unaligned: set[int | str]) -> list[KernelParameter]:
        parameters = []
        for index, parameter in enumerate(self.signature.parameters.values()):
            name = parameter.name
            listed = bool(unspecialized & {index, name})
            parameters.append(
                KernelParameter(parameter, index, not listed, not (listed or unaligned & {index, name}), self.fn.__name__)
            )
        return parameters

    @functools.cached_property
    def source(self) -> Any:
        """The kernel's text and syntax tree; raises CompileError TFW0101 where it cannot be found."""
        from tilefw.frontend.source import of_function

        return of_function(self.fn, self._text)

    def cache_key_source(self, watched: Watched | None = None) -> str:
        """What this kernel's code depends on, as one digest: its text and place, its callees', and the globals they read.
        `watched` gains what was looked at."""
        from tilefw.frontend.cachekey import cache_key

        return cache_key(self, watched)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The kernel over a grid: a tuple of one to three extents, one int, or a callable of the bound arguments."""
        if "run" in vars(self) or type(self).run is not _RUN:  # a program's own: tracers wrap it, subclasses define it
            return functools.partial(self.run, grid=grid, warmup=False)
        return functools.partial(self._run, grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        """Launch: `keywords` are the kernel's own parameters and launch keywords. Raises LaunchError, CompileError, CheckError.

        With `warmup` nothing is launched: see there."""
        return self._run(grid, *args, warmup=warmup, **keywords)

    def _run(self, grid: Any, /, *args: Any, warmup: bool = False, **keywords: Any) -> Any:
        """`run`; a call with the grid in front takes half as long."""
        try:
            values, options = self._bind(*args, **keywords)
        except TypeError:
            bound, options = bind(self, args, keywords)  # which says what is wrong
            values = tuple(bound.values())
        if warmup:
            return self.launcher.warm_up(values, grid, options)
        for hook in self.pre_run_hooks:
            hook(*args, **keywords)
        debugger = DEBUGGER.get()
        if debugger is not None:
            return debugger(self, values, grid, options)
        return self.launcher.launch(values, grid, options)

    @functools.cached_property
    def _bind(self) -> Binder:
        """As `bind`, by position; raises TypeError for what does not fit."""
        require_named(self)
        return binder(list(self.signature.parameters.values()))

    @functools.cached_property
    def launcher(self) -> Launcher:
        """What launches the kernel, and keeps what it has learned of earlier launches."""
        from tilefw.runtime.launcher import Launcher

        return Launcher(self)

    @functools.cached_property
    def debug_build(self) -> JITFunction:
        """This kernel with its assertions."""
        made = copy.copy(self)
        for kept in ("_reads", "launcher"):
            made.__dict__.pop(kept, None)
        made.debug = True
        return made

    def repr(self, proxy: SpecializationProxy) -> str:
        """The name of the entry for a specialisation."""
        return self.__name__ if self._repr is None else checked_name(self.__name__, self._repr(proxy))

    def entry_name(self, signature: Mapping[str, str], constexprs: Mapping[str, Any]) -> str:
        """`repr` for what `specialize` gives of a launch. Raises CompileError TFW0121."""
        return self.__name__ if self._repr is None else self.repr(specialization(self.arg_names, signature, constexprs))

    def warmup(self, *args: Any, grid: Any, **keywords: Any) -> Any:
        """Compile for a launch and keep the code in the caches. An element type among `args` (`tl.float32`, `torch.float32`), or
        anything else that has a `dtype` and no memory, stands for an array of it at an address divisible by 16."""
        return self.run(*map(without_memory, args), grid=grid, warmup=True, **keywords)

    def estimate(
        self, known: dict[str, Estimates], args: Sequence[Any], grid: Any, keywords: Mapping[str, Any]
    ) -> Estimate | None:
        """The quick estimate of a launch, which is not compiled for it; None where nobody estimates it. `known` keeps by target
        what several launches have in common. Raises as the front end does, LaunchError for what does not fit."""
        bound, options = bind(self, tuple(args), dict(keywords))
        return self.launcher.estimate(tuple(bound.values()), grid, options, known)

    def preload(self, specialization_data: str) -> Any:
        """Compile the specialisation that `triton.knobs.runtime.jit_cache_hook` heard of in this process or another, and keep the
        code. Raises LaunchError TFW0353 for another kernel's, or another target's, TFW0642 where code is made for one launch."""
        return self.launcher.preload(specialization_data)

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(*args, **keywords)` before each launch."""
        self.pre_run_hooks.append(hook)

    @property
    def src(self) -> str:
        """The kernel's text from its `def` on, without the margin of an outer block."""
        text = textwrap.dedent(self.source.text)
        start = re.search(r"^def\s+\w+\s*\(", text, re.MULTILINE)
        return text[start.start() if start else 0:]

    def _unsafe_update_src(self, new_src: str) -> None:
        """Compile `new_src` from now on in the place of the kernel's own text. Its parameters stay."""
        self._text = new_src
        for kept in ("source", "_reads", "debug_build"):
            self.__dict__.pop(kept, None)

    @property
    def raw_src(self) -> list[str]:
        """The kernel's text with its decorators, by lines."""
        return self.source.text.splitlines(keepends=True)

    @property
    def constexprs(self) -> list[int]:
        """The places of the parameters that are compile-time values."""
        return [parameter.num for parameter in self.params if parameter.is_constexpr]

    def get_capture_scope(self) -> dict[str, Any]:
        """The names that the kernel's text can read: the globals of its module, and what it captures."""
        return {**self.fn.__globals__, **inspect.getclosurevars(self.fn).nonlocals}

    @property
    def cache_key(self) -> str:
        """As `cache_key_source`, under Triton's name."""
        return self.cache_key_source()

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise LaunchError(
            f"kernel `{self.__name__}` was called without a grid",
            "TFW0306",
            help=f"launch it as `{self.__name__}[grid](…)`; other kernels may call it directly",
        )

    def __repr__(self) -> str:
        return f"JITFunction({self.__module__}:{self.__qualname__})"


_RUN = JITFunction.run  # as this module has it, whatever a program sets later


class ConstexprFunction:
    """A plain Python function that kernels may call while they are compiled; see `constexpr_function`."""

    __tilefw_constexpr_function__ = True

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.__globals__ = getattr(fn, "__globals__", {})  # which what is not written in Python has not
        functools.update_wrapper(self, fn, updated=())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method of an aggregate: the value comes first."""
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.fn(*map(unwrap, args), **{name: unwrap(value) for name, value in keywords.items()})


def constexpr_function(fn: Callable[..., Any]) -> ConstexprFunction:
    """Let kernels call `fn` on compile-time values; its result is a compile-time value too."""
    return ConstexprFunction(fn)


@overload
def jit(fn: Callable[..., Any], /) -> JITFunction: ...
@overload
def jit(
    *,
    source: str | None = None,
    do_not_specialize: Iterable[int | str] = (),
    do_not_specialize_on_alignment: Iterable[int | str] = (),
    debug: bool | None = None,
    noinline: bool | None = None,
    version: object = None,
    repr: Naming | None = None,
    launch_metadata: object = None,
) -> Callable[[Callable[..., Any]], JITFunction]: ...
def jit(fn: Any = None, /, **options: Any) -> Any:
    """Make a function a kernel, or a function that kernels call.

    `do_not_specialize` names parameters (or their positions) of which no value is compiled in, `…_on_alignment` those of
    which only divisibility by 16 is not. `source` is the function's text where no file has it (then its lines count from
    1). `noinline` is a hint; `version` and `launch_metadata` are accepted for Triton's sake.
    `repr` names the machine code's entry: a function of a specialisation with its `constants` and `signature`.
    """
    for ignored in ("version", "launch_metadata"):
        options.pop(ignored, None)
    known = ("source", "do_not_specialize", "do_not_specialize_on_alignment", "debug", "noinline", "repr")
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise CompileError(f"tilefw.jit has no option `{name}`", "TFW0121", help=f"did you mean `{near[0]}`?" if near else None)
    options = {name: value for name, value in options.items() if value is not None}
    return JITFunction(fn, **options) if fn is not None else lambda function: JITFunction(function, **options)


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """x / y rounded up, for positive integers."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below `n`; 0 for 0, as in Triton."""
    return 0 if n == 0 else 1 << max(0, n - 1).bit_length()
