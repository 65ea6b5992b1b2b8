"""Aggregates: classes of the user's with typed fields, whose values kernels make, hand on and call methods of.

A value cannot be changed once it is made; `aggregate_replace` makes another one. Its tensors are its run-time parts, and all
else is known at compile time.
"""

from __future__ import annotations

import inspect
import types
import typing
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from tilefw.api.errors import CompileError
from tilefw.language.composite import CompositeValue
from tilefw.language.constants import constexpr, unwrap
from tilefw.language.markers import on_host
from tilefw.language.tensor import tensor

T = TypeVar("T", bound=type)
_MISSING = object()
_TENSOR = "a tensor"
# The method that an operator of Python calls, between two underscores on each side, and that of comparisons seen from the right.
METHOD_NAMES: Mapping[str, str] = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "<<": "lshift", ">>": "rshift",
    "&": "and", "|": "or", "^": "xor", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
}
MIRRORED: Mapping[str, str] = {"<": "gt", "<=": "ge", ">": "lt", ">=": "le"}


class AggregateType(ABCMeta):
    """The class of aggregates: it looks after values while they are made, and closes them then."""

    __aggregate_annotations__: dict[str, Any]
    __aggregate_fields__: tuple[str, ...]
    __aggregate_defaults__: dict[str, Any]

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        # Code written for Triton hands these on; a constructor gets them if it asks for them.
        hidden = {name: keywords.pop(name, None) for name in ("_semantic", "_generator")}
        wanted = inspect.signature(cls.__init__).parameters
        made: Any = super().__call__(*args, **keywords, **{name: value for name, value in hidden.items() if name in wanted})
        for name in cls.__aggregate_fields__:
            if name not in made.__dict__:
                raise AttributeError(f"constructor for {cls.__name__} did not initialize attribute '{name}'")
        made.__dict__["_closed"] = True
        return made


class Aggregate(CompositeValue, metaclass=AggregateType):
    """A value of a class that `aggregate` made."""

    __triton_aggregate__ = True
    __aggregate_annotations__: dict[str, Any] = {}
    __aggregate_fields__: tuple[str, ...] = ()
    __aggregate_defaults__: dict[str, Any] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        cls = type(self)
        if name not in cls.__aggregate_annotations__:
            raise AttributeError(f"{cls.__name__} has no attribute '{name}'")
        if "_closed" in self.__dict__:
            raise AttributeError(
                f"cannot assign to field '{name}' on immutable aggregate {cls.__name__}; "
                "use aggregate_replace() to construct a modified copy"
            )
        if not isinstance(value, cls.__aggregate_annotations__[name]):
            raise TypeError(f"Expected {cls.__aggregate_annotations__[name]} for attribute '{name}', got {type(value)}")
        vars(self)[name] = value

    def _fields(self) -> dict[str, Any]:
        return {name: opened(self.__dict__[name]) for name in type(self).__aggregate_fields__}

    @property
    def parts(self) -> tuple[Any, ...]:
        return tuple(_tensors(tuple(self._fields().values())))

    @property
    def kind(self) -> object:
        return _skeleton(tuple(self._fields().values()))

    def with_parts(self, parts: tuple[Any, ...]) -> Aggregate:
        made: Any = object.__new__(type(self))
        left = iter(parts)
        made.__dict__.update({name: wrapped(_refilled(value, left)) for name, value in self._fields().items()})
        made.__dict__["_closed"] = True
        return made

    def attributes(self) -> Mapping[str, Any]:
        methods = [name for name in dir(type(self)) if not name.startswith("_") and name not in _OWN]
        return {**{name: getattr(self, name) for name in methods}, **self._fields()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self._fields().items())})"

    __str__ = __repr__


_OWN = frozenset(name for name in dir(Aggregate))


@typing.dataclass_transform(eq_default=False)
def aggregate(cls: T) -> T:
    """Make a class with annotated fields one whose values kernels can make and use.

        @tilefw.aggregate
        class Pair:
            first: tl.tensor
            second: tl.tensor
            scale: tl.constexpr = 2

            @tilefw.jit
            def total(self):
                return (self.first + self.second) * self.scale

    Fields are tensors (`tl.tensor`), values known at compile time (`tl.constexpr`), tuples (`tl.tuple`), tensor descriptors or
    other aggregates. Without an `__init__` the fields are its parameters. Methods are jit functions, constexpr functions, or
    plain Python that runs while the kernel is compiled. A base class must be an aggregate.
    """
    for base in cls.__bases__:
        if base is not object and not isinstance(base, AggregateType):
            raise TypeError(f"Aggregates can only inherit from other aggregates, but got non-aggregate base: {base}")
    annotations, defaults = _declared(cls)
    own = cls.__dict__.get("__init__")
    if getattr(own, "__tilefw_jit__", False):
        raise CompileError(
            f"the constructor of aggregate `{cls.__name__}` is a jit function", "TFW0121",
            help="write it in plain Python, or leave it out and make the values in a static method that is one",
        )
    namespace = {
        "__aggregate_annotations__": annotations, "__aggregate_fields__": tuple(annotations), "__aggregate_defaults__": defaults,
        "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
    }
    if own is None:
        namespace["__init__"] = _initialize
    return AggregateType(cls.__name__, (cls,) if issubclass(cls, Aggregate) else (cls, Aggregate), namespace)  # type: ignore[return-value]


@on_host
def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """A value of the same aggregate with some fields changed; the others are taken over."""
    if not isinstance(instance, Aggregate):
        raise TypeError(f"aggregate_replace() expects an aggregate instance, got {type(instance)}")
    cls = type(instance)
    for name in changes:
        if name not in cls.__aggregate_fields__:
            raise TypeError(f"{cls.__name__} has no field '{name}'")
    return cls(**{name: changes.get(name, instance.__dict__[name]) for name in cls.__aggregate_fields__})


def _declared(cls: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a class with their types and defaults, those of its bases first."""
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        if isinstance(base, AggregateType):
            annotations.update(base.__aggregate_annotations__)
            defaults.update(base.__aggregate_defaults__)
    hints = typing.get_type_hints(cls)
    for name in inspect.get_annotations(cls):
        annotations[name] = hints[name]
        value = cls.__dict__.get(name, _MISSING)
        if value is not _MISSING and (not callable(value) or isinstance(value, constexpr | CompositeValue)):
            defaults[name] = value
    return annotations, defaults


def _initialize(self: Any, *args: Any, **keywords: Any) -> None:
    """The constructor of a class that has none: its fields are the parameters."""
    cls = type(self)
    names = cls.__aggregate_fields__
    if len(args) > len(names):
        raise TypeError(
            f"{cls.__name__}.__init__() takes {len(names) + 1} positional arguments but {len(args) + 1} were given"
        )
    given = dict(zip(names, args, strict=False))
    for name, value in keywords.items():
        if name in given:
            raise TypeError(f"{cls.__name__}.__init__() got multiple values for argument '{name}'")
        if name not in names:
            raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument '{name}'")
        given[name] = value
    given = {**cls.__aggregate_defaults__, **given}
    for name in names:
        if name not in given:
            raise TypeError(f"{cls.__name__}.__init__() missing required argument: '{name}'")
        setattr(self, name, wrapped(given[name]))


def defines(value: Aggregate, name: str) -> bool:
    """Whether the class of a value, not Python, has a method of this name."""
    return getattr(type(value), name, None) is not getattr(Aggregate, name, None)


def opened(value: Any) -> Any:
    """A value as kernels know it: what is known at compile time is the Python object itself."""
    return _each(unwrap(value), opened) if isinstance(unwrap(value), tuple) else unwrap(value)


def wrapped(value: Any) -> Any:
    """A value as host code knows it: what is known at compile time is a constexpr."""
    if isinstance(value, tuple):
        return _each(value, wrapped)
    return value if isinstance(value, tensor | CompositeValue | constexpr) else constexpr(value)


def _each(items: tuple[Any, ...], function: Callable[[Any], Any]) -> tuple[Any, ...]:
    found = [function(item) for item in items]
    return type(items)(*found) if hasattr(items, "_fields") else tuple(found)


def _tensors(value: Any) -> Iterator[tensor]:
    """The tensors in a value, left to right."""
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, tuple | CompositeValue):
        for item in value.parts if isinstance(value, CompositeValue) else value:
            yield from _tensors(item)


def _refilled(value: Any, tensors: Iterator[Any]) -> Any:
    """The value with other tensors in place of its own, in order."""
    if isinstance(value, tensor):
        return next(tensors)
    if isinstance(value, CompositeValue):
        return value.with_parts(_refilled(value.parts, tensors))
    return _each(value, lambda item: _refilled(item, tensors)) if isinstance(value, tuple) else value


def _skeleton(value: Any) -> object:
    """What is known of a value at compile time: all of it but its tensors."""
    if isinstance(value, tensor):
        return _TENSOR
    if isinstance(value, CompositeValue):
        return type(value), value.kind, _skeleton(value.parts)
    return (type(value), *map(_skeleton, value)) if isinstance(value, tuple) else (type(value), value)


def constants(cls: AggregateType) -> Iterator[tuple[str, Any]]:
    """The attributes of an aggregate class and of its bases that are neither functions nor fields."""
    functions = {name for name, _ in members(cls)}
    for base in cls.__mro__:
        for name, value in vars(base).items():
            full = f"{base.__qualname__}.{name}"
            own = base not in (Aggregate, CompositeValue, object) and full not in functions
            if own and not name.startswith("_") and name not in cls.__aggregate_annotations__:
                yield full, value


def members(cls: AggregateType) -> Iterator[tuple[str, Any]]:
    """The functions of an aggregate class and of its bases, and what it says of its fields: all that its meaning depends on."""
    for base in cls.__mro__:
        for name, value in vars(base).items():
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            known = isinstance(function, types.FunctionType) or hasattr(function, "fn")
            if known and base not in (Aggregate, CompositeValue, object):
                yield f"{base.__qualname__}.{name}", function
