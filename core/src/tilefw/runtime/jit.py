"""`@tilefw.jit` and what launches its kernels: binding and specialising arguments, helpers of host code.

Nothing here loads xDSL, and NumPy comes only with the user's arrays: a launch that hits the cache stays cheap.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import re
import textwrap
import types
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, overload

from tilefw.api.errors import CompileError, LaunchError, UnsupportedError
from tilefw.language.constants import constexpr, unwrap
from tilefw.language.dtypes import dtype, pointer_type
from tilefw.runtime.autotune import Autotuner, Config, autotune
from tilefw.runtime.entry_name import Naming, SpecializationProxy, checked_name, specialization
from tilefw.runtime.python_number import IntegerTooLargeError, python_number, python_value

if TYPE_CHECKING:
    from tilefw.frontend.watched import Watched
    from tilefw.runtime.arguments.arrays import HostArray
    from tilefw.runtime.arguments.device_arrays import DeviceArray
    from tilefw.runtime.known_launches import KnownLaunch
    from tilefw.runtime.launch_site import LaunchSite

__all__ = [
    "Autotuner", "Config", "ConstexprFunction", "JITFunction", "KernelParameter", "autotune", "bind", "cdiv",
    "constexpr_function", "jit", "next_power_of_2", "specialize",
]

_CONSTEXPR = "constexpr"
_DESCRIPTOR = "TensorDescriptor"  # of any library: Triton's own serves as well
# What Triton's annotations of run-time parameters say, by their spelling.
_ANNOTATIONS = {"int": "i32", "float": "fp32", "bool": "i1"}


class KernelParameter:
    """One parameter of a jit function, the `num`-th: how its argument is specialised."""

    __slots__ = ("align", "annotation", "default", "is_const", "is_constexpr", "name", "num", "specialize")

    def __init__(self, parameter: inspect.Parameter, num: int, specialize: bool, align: bool) -> None:
        words = _annotation(parameter.annotation)
        self.name, self.num = parameter.name, num
        self.default = parameter.default
        self.is_constexpr = _CONSTEXPR in words
        self.is_const = not self.is_constexpr and ("const" in words or words.startswith("*k"))
        self.annotation = "" if self.is_constexpr else _signature_type(words)
        self.specialize = specialize
        self.align = align

    @property
    def has_default(self) -> bool:
        return self.default is not inspect.Parameter.empty

    def item(self, name: str) -> KernelParameter:
        """This parameter as that of one item of its tuple, which has a dotted name."""
        if name == self.name:
            return self
        made = copy.copy(self)
        made.name = name
        return made


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, str):
        # Under `from __future__ import annotations` a quoted annotation arrives with its quotes.
        words = annotation.strip("'\"")
        return words.rpartition(".")[2] if words.replace(".", "").isidentifier() else words
    if isinstance(annotation, pointer_type):
        return f"*{'k' if annotation.const else ''}{annotation.element_ty}"
    return annotation.name if isinstance(annotation, dtype) else getattr(annotation, "__name__", str(annotation))


def _signature_type(words: str) -> str:
    """The signature's spelling of an annotation that names a type; empty for one that names none."""
    from tilefw.api.dtypes import dtype as find

    words = _ANNOTATIONS.get(words, words)
    stars = "*k" if words.startswith("*k") else "*" if words.startswith("*") else ""
    try:
        return stars + signature_name(find(words.removeprefix(stars)).name)
    except KeyError:
        return ""


def signature_name(name: str) -> str:
    """An element type in Triton's signatures: `i32` for `int32`, `u8` for `uint8`, `fp32` as it is."""
    for long, short in (("uint", "u"), ("int", "i")):
        if name.startswith(long):
            return short + name[len(long):]
    return name


class JITFunction:
    """A kernel, or a function that kernels call. `kernel[grid](…)` launches it; see `jit`."""

    __tilefw_jit__ = True
    __name__: str
    __qualname__: str

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
        self.params = self._parameters(set(do_not_specialize), set(do_not_specialize_on_alignment))
        self.arg_names = list(self.signature.parameters)
        nameless = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.nameless = next((str(p) for p in self.signature.parameters.values() if p.kind in nameless), None)
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self.launch_sites: dict[Hashable, LaunchSite] = {}  # of launches so far
        self.known_launches: dict[Hashable, KnownLaunch] = {}
        self._text = source
        self._repr = repr
        self.device_caches: defaultdict[int, tuple[dict[Any, Any], ...]] = defaultdict(lambda: ({}, {}))
        functools.update_wrapper(self, fn, updated=())

    def _parameters(self, unspecialized: set[int | str], unaligned: set[int | str]) -> list[KernelParameter]:
        parameters = []
        for index, parameter in enumerate(self.signature.parameters.values()):
            name = parameter.name
            listed = bool(unspecialized & {index, name})
            made = KernelParameter(parameter, index, not listed, not (listed or unaligned & {index, name}))
            if made.is_constexpr and not (made.specialize and made.align):
                raise CompileError(
                    f"parameter `{name}` is constexpr and listed in do_not_specialize",
                    "TFW0121",
                    help="a constexpr is always specialised",
                )
            parameters.append(made)
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
        return functools.partial(self.run, grid=grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        """Launch: `keywords` are the kernel's own parameters and launch keywords. Raises LaunchError, CompileError, CheckError.

        With `warmup` nothing is launched: see there."""
        if not self.debug and (keywords.get("debug") or os.environ.get("TRITON_DEBUG", "0") not in ("", "0")):
            return self._debug_build.run(*args, grid=grid, warmup=warmup, **keywords)
        bound, options = bind(self, args, keywords)
        if not warmup:
            for hook in self.pre_run_hooks:
                hook(*args, **keywords)
        signature, constexprs, values = specialize(self, bound, ready=True)
        if callable(grid):
            grid = grid(bound)
        if warmup:
            from tilefw.runtime.launch import warm_up

            return warm_up(self, signature, constexprs, values, grid, options)
        from tilefw.runtime.launch import launch

        return launch(self, signature, constexprs, values, grid, options)

    @functools.cached_property
    def _debug_build(self) -> JITFunction:
        """This kernel with its assertions."""
        made = copy.copy(self)
        made.__dict__.pop("_reads", None)
        made.launch_sites, made.known_launches = {}, {}
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
        return self.run(*map(_without_memory, args), grid=grid, warmup=True, **keywords)

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
        for kept in ("source", "_reads"):
            self.__dict__.pop(kept, None)

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


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array that is only its element type, for `warmup`; `dtype` is written as in signatures."""

    dtype: str


def _without_memory(value: Any) -> Any:
    """An argument of `warmup`: an ArrayType for what stands for an array; anything else as it is."""
    kind = type(value)
    if isinstance(value, dtype) and not isinstance(value, pointer_type):
        return ArrayType(signature_name(value.name))
    if kind.__module__ == "torch" and kind.__qualname__ == "dtype":
        return ArrayType(_signature_type(str(value).removeprefix("torch.")))
    described = getattr(value, "dtype", None)
    if described is not None and hasattr(value, "wrap_dtype"):
        return _without_memory(described)
    return value


class ConstexprFunction:
    """A plain Python function that kernels may call while they are compiled; see `constexpr_function`."""

    __tilefw_constexpr_function__ = True

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
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


def bind(kernel: JITFunction, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments by parameter, in order, and the keywords that are none of the kernel's; raises LaunchError TFW0301."""
    if kernel.nameless is not None:
        message = f"kernel `{kernel.__name__}` cannot have the parameter `{kernel.nameless}`"
        raise UnsupportedError(message, "TFW0102", help="name each parameter")
    bound: dict[str, Any] = {}
    others = dict(keywords)
    count = len(args)
    if count > len(kernel.params):
        raise _mistake(kernel, f"takes {len(kernel.params)} arguments, not {count}")
    for index, parameter in enumerate(kernel.params):
        name = parameter.name
        if index < count:
            if name in keywords:
                raise _mistake(kernel, f"got the argument `{name}` twice")
            bound[name] = args[index]
        elif name in keywords:
            bound[name] = others.pop(name)
        elif parameter.has_default:
            bound[name] = parameter.default
        else:
            raise _missing(kernel, name, others)
    return bound, others


def _mistake(kernel: JITFunction, message: str, help: str | None = None) -> LaunchError:
    shown = ", ".join(f"{p.name}: constexpr" if p.is_constexpr else p.name for p in kernel.params)
    return LaunchError(f"kernel `{kernel.__name__}` {message}", "TFW0301", note=f"its parameters are ({shown})", help=help)


def _missing(kernel: JITFunction, name: str, keywords: Mapping[str, Any]) -> LaunchError:
    near = get_close_matches(name, list(keywords), 1, 0.75)
    help = f"did you mean `{name}` instead of `{near[0]}`?" if near else None
    return _mistake(kernel, f"needs the argument `{name}`", help)


def specialize(
    kernel: JITFunction, bound: Mapping[str, Any], *, ready: bool = False
) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
    """A launch's signature, its compile-time values, and its run-time values; raises LaunchError TFW0302 or TFW0303.

    None, element types, functions, strings and what is wrapped in `tl.constexpr` are compile-time values wherever they stand,
    as are constexpr parameters. The items of a tuple are told one by one, as `pair.0` and `pair.1`; those of a named one by its
    fields, which `pair.*` lists. With `ready`, arrays among the values are what `array_argument` makes of them.
    """
    signature: dict[str, str] = {}
    constexprs: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for parameter in kernel.params:
        given = bound[parameter.name]
        if parameter.is_constexpr:
            constexprs[parameter.name] = given if type(given) is int else python_value(unwrap(given))
            continue
        for name, value in items_of(parameter.name, given) if _has_items(given) else ((parameter.name, given),):
            known = value is None or isinstance(value, (tuple, constexpr))
            kind, passed = (None, value) if known else _argument(kernel, parameter.item(name), value)
            if kind is None:
                constexprs[name] = python_value(unwrap(value))
            else:
                signature[name] = kind
                values[name] = passed if ready else value
    return signature, constexprs, values


def _has_items(value: Any) -> bool:
    return isinstance(value, tuple) or type(value).__name__ == _DESCRIPTOR


def items_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """An argument under its parameter's name; a tuple item by item, each under a dotted name of its own, and so a descriptor."""
    if type(value).__name__ == _DESCRIPTOR:
        yield f"{name}.*", constexpr("tensor_descriptor")
        for field, item in _fields_of_descriptor(value):
            yield from items_of(f"{name}.{field}", item)
        return
    if not isinstance(value, tuple) or not value:
        yield name, value
        return
    fields = getattr(value, "_fields", None)
    if fields is not None:
        yield f"{name}.*", tuple(fields)
    for field, item in zip(fields or range(len(value)), value, strict=True):
        yield from items_of(f"{name}.{field}", item)


def _fields_of_descriptor(value: Any) -> Iterator[tuple[str, Any]]:
    """What the parts of a host's tensor descriptor are: run-time values, and compile-time values wrapped as such."""
    yield "base", value.base
    yield "shape", tuple(map(int, value.shape))
    yield "strides", (*map(int, value.strides[:-1]), constexpr(1))
    yield "block_shape", constexpr(tuple(map(int, value.block_shape)))
    yield "padding", constexpr(value.padding)
    yield "round_f32_to_tf32", constexpr(bool(value.round_f32_to_tf32))


def _argument(kernel: JITFunction, parameter: KernelParameter, value: Any) -> tuple[str | None, Any]:
    """The signature entry of one argument, None for a value that is compiled in; and the value, an array as an argument."""
    kind = type(value)
    if kind is int:
        return _integer_type(kernel, parameter, value), value
    # What most arguments are: nothing else is asked of them.
    if kind.__name__ in ("ndarray", "Tensor", "TypedArray") or hasattr(kind, "__cuda_array_interface__"):
        return _array(kernel, parameter, value)
    if isinstance(value, bool):
        return parameter.annotation or "i1", value
    if isinstance(value, ArrayType):
        return f"*{'k' if parameter.is_const else ''}{value.dtype}{':16' if parameter.align else ''}", value
    if isinstance(value, int):
        return _integer_type(kernel, parameter, value), value
    if isinstance(value, float):
        return parameter.annotation or "fp32", value
    if isinstance(value, str | dtype | JITFunction | ConstexprFunction):
        return None, value
    if isinstance(value, list | dict | set):
        help = "pass a tuple, or make it a tl.constexpr parameter"
        raise _unfit(kernel, parameter, f"a {type(value).__name__}", help)
    number = python_number(value)  # NumPy's scalars also say that they are arrays, and so do its classes
    if number is not None:
        return _argument(kernel, parameter, number)[0], value
    return _array(kernel, parameter, value)


def _integer_type(kernel: JITFunction, parameter: KernelParameter, value: int) -> str:
    kind = parameter.annotation
    if not kind:
        if not -(2**63) <= value < 2**64:
            raise IntegerTooLargeError(
                f"argument `{parameter.name}` of kernel `{kernel.__name__}`: {_shown(value)} does not fit 64 bits", "TFW0303"
            )
        kind = "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    if kind.startswith(("fp", "bf", "*")) or kind == "i1" or not parameter.specialize:
        return kind
    # A constant 1 is a Python number in the kernel, and would lose the type that an annotation gives it.
    if value == 1 and not parameter.annotation:
        return f"{kind}:1"
    return f"{kind}:16" if parameter.align and value % 16 == 0 else kind


def _shown(value: int) -> str:
    # Python writes no integers of more than some thousand digits.
    return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"


def _array(kernel: JITFunction, parameter: KernelParameter, value: Any) -> tuple[str, HostArray | DeviceArray]:
    from tilefw.runtime.arguments.arrays import array_argument, is_array

    if type(value) in (object, complex) or isinstance(value, type) or not is_array(value):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise _unfit(kernel, parameter, what, "arguments are arrays, numbers, None and tl.constexpr values")
    array = array_argument(value, f"argument `{parameter.name}` of kernel `{kernel.__name__}`")
    kind = parameter.annotation if parameter.annotation.startswith("*") else (
        f"*{'k' if parameter.is_const else ''}{signature_name(array.dtype.name)}"
    )
    aligned = parameter.specialize and parameter.align and array.offset % 16 == 0
    return f"{kind}:16" if aligned else kind, array


def _unfit(kernel: JITFunction, parameter: KernelParameter, what: str, help: str) -> LaunchError:
    return LaunchError(f"kernel `{kernel.__name__}` cannot take {what} as `{parameter.name}`", "TFW0302", help=help)


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """x / y rounded up, for positive integers."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below `n`; 0 for 0, as in Triton."""
    return 0 if n == 0 else 1 << max(0, n - 1).bit_length()
