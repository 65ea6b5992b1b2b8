"""A function of JAX on a target: traced and compiled once for each structure, shape and type of its arguments, then run."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any
from weakref import WeakSet

import jax
import numpy as np
from jax import dtypes
from jax import numpy as jnp
from jax.core import Tracer

from tilefw.api.errors import UsageError
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.node_session import NodeSession
from tilefw.graph.plan import ModelPlan
from tilefw.graph.session import Session
from tilefw.graph.target_choice import TargetChoice
from tilefw.runtime import config
from tilefw.runtime.config import Resolved, Settings
from tilefw_jax.reader import ModuleReading
from tilefw_jax.transformations import differentiable

_KEYS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}  # makers of random keys by element types

_TRACED_UNDER = (  # settings of JAX that a trace depends on
    "jax_enable_x64", "jax_default_prng_impl", "jax_threefry_partitionable", "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
)


def jit(
    function: Callable[..., Any] | None = None, *, target: str | None = None, static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (), donate_argnums: int | Sequence[int] = (), **execution: Any,
) -> Any:
    """`function` compiled by tilefw; without one, a decorator. Arguments and results are those of `jax.jit(function)`.

    `target` names the target; without it the current one is asked for at each call. `execution` are the settings of a launch:
    executor, checks, budget, numerics, seed. Within `jax.jit` and other transformations the function is a callback; `jax.grad` of
    it computes the gradient on the target too.
    """
    if function is None:
        return partial(
            jit, target=target, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums,
            **execution,
        )
    return TargetFunction(function, target, static_argnums, static_argnames, donate_argnums, execution)


@dataclass(frozen=True, slots=True)
class TracedCall:
    """What is the same in all calls that share machine code: the arguments without their elements."""

    structure: Any  # the tree of the arguments that are not static
    types: tuple[Any, ...]  # of its leaves
    static: tuple[tuple[int | str, Hashable, type[Any]], ...]  # by place or name; of equal ones 1, 1.0 and True are three
    settings: Resolved
    traced_under: tuple[Any, ...]  # what JAX's own settings are


@dataclass(frozen=True, slots=True)
class CompiledCall:
    """The code for such calls, and how its results are made of what a session gives."""

    plan: ModelPlan
    session: Session | NodeSession
    structure: Any
    results: tuple[jax.ShapeDtypeStruct, ...]
    types: tuple[Any, ...]  # of the leaves of the arguments
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    plain: bool  # whether no leaf of the result is a random key

    def run(self, leaves: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        """The leaves of the result, in storage form."""
        given = {name: _stored(leaf, type) for name, leaf, type in zip(self.inputs, leaves, self.types, strict=True)}
        # Results of several devices are whole on each: `jax.shard_map` joins what they have.
        found = self.session.run(given) if isinstance(self.session, Session) else self.session.run(given)[0]
        return [found[name] for name in self.outputs]


class TargetFunction:
    """What `jit` gives. `compiled` counts the variants that were compiled."""

    def __init__(
        self, function: Callable[..., Any], target: str | None, static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str], donate_argnums: int | Sequence[int], execution: Mapping[str, Any],
    ) -> None:
        update_wrapper(self, function)
        self.function, self.target, self.execution = function, target, dict(execution)
        self.static = _static_places(function, _several(static_argnums), _several(static_argnames))
        self.donated = frozenset(_several(donate_argnums))
        self._said: Settings | None = None
        self._traced_calls: dict[tuple[Any, ...], TracedCall] = {}
        self._calls: dict[TracedCall, CompiledCall] = {}
        self._gradients: dict[TracedCall, Callable[..., Any]] = {}
        self._made_for_gradients: WeakSet[TargetFunction] = WeakSet()  # JAX keeps those that its own caches name
        self._lock = threading.RLock()

    @property
    def compiled(self) -> int:
        """How many variants there are."""
        return len(self._calls)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        leaves, call = self._traced(args, keywords)
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return self._differentiable(call)(*leaves)
        found = self.run(call, leaves)
        for place in self.donated:
            for leaf in jax.tree.leaves(args[place]) if -len(args) <= place < len(args) else ():
                if isinstance(leaf, jax.Array):
                    leaf.delete()
        return found

    def plan(self, *args: Any, **keywords: Any) -> ModelPlan:
        """The plan for calls with such arguments, which `tilefw.graph.plan_file.save` keeps in a file."""
        _, call = self._traced(args, keywords)
        return self.compiled_for(call).plan

    def clear_cache(self) -> None:
        """Give the devices their memory back; the next call compiles again."""
        with self._lock:
            for one in self._calls.values():
                one.session.close()
            for gradient in self._made_for_gradients:
                gradient.clear_cache()
            self._traced_calls.clear()
            self._calls.clear()
            self._gradients.clear()

    # A call, step by step ------------------------------------------------------------------------------------------------------

    def _traced(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[list[Any], TracedCall]:
        static = {place: one for place, one in (*enumerate(args), *keywords.items()) if place in self.static}
        for place, one in static.items():
            try:
                hash(one)
            except TypeError as error:
                raise UsageError(f"the static argument {place!r} is not hashable: {error}", code="TFW0366") from None
        given = [None if place in static else one for place, one in enumerate(args)]
        named = {name: one for name, one in keywords.items() if name not in static}
        leaves, structure = jax.tree.flatten((given, named))
        if self._said is None:
            self._said = config.settings(self.target, **self.execution)
        settings = config.resolve(self._said)
        told = tuple((place, one, type(one)) for place, one in static.items())
        under = tuple(getattr(jax.config, name) for name in _TRACED_UNDER)
        quick = (structure, tuple(map(_told_apart, leaves)), told, settings, under)
        call = self._traced_calls.get(quick)
        if call is None:
            call = TracedCall(structure, tuple(map(_type_of, leaves)), told, settings, under)
            if not any(isinstance(leaf, Tracer) for leaf in leaves):
                self._traced_calls[quick] = call
        return leaves, call

    def called(self, call: TracedCall, leaves: Sequence[Any]) -> Any:
        """The function itself for the leaves of its arguments."""
        given, keywords = jax.tree.unflatten(call.structure, leaves)
        static = {place: one for place, one, _ in call.static}
        args = [static.get(place, one) for place, one in enumerate(given)]
        return self.function(*args, **keywords, **{name: one for name, one in static.items() if isinstance(name, str)})

    def compiled_for(self, call: TracedCall) -> CompiledCall:
        """The code for such a call, compiled at the first one."""
        with self._lock:
            if call not in self._calls:
                self._calls[call] = self._compiled(call)
            return self._calls[call]

    def _compiled(self, call: TracedCall) -> CompiledCall:
        traced = jax.jit(lambda *leaves: self.called(call, leaves), keep_unused=True).trace(*call.types)
        lowered = traced.lower(lowering_platforms=("cpu",))  # what JAX runs on itself is no matter
        reading = ModuleReading(lowered.compiler_ir("stablehlo"))
        reading.read()
        target, executor = call.settings.target, self.execution.get("executor")
        plan = compile_graph(reading.graph(TargetChoice(target, executor)), target, executor)
        results, structure = jax.tree.flatten(lowered.out_info)
        types = tuple(jax.ShapeDtypeStruct(one.shape, one.dtype) for one in results)
        places = range(len(call.types)), range(len(types))
        inputs, outputs = (
            tuple(f"{word}{place}" for place in numbers) for word, numbers in zip(("input", "output"), places, strict=True)
        )
        session = NodeSession(plan, **self.execution) if plan.on_node else Session(plan, **self.execution)
        return CompiledCall(plan, session, structure, types, call.types, inputs, outputs, not any(map(_is_key, types)))

    def _differentiable(self, call: TracedCall) -> Callable[..., Any]:
        """The call as a function of its leaves with a gradient, one for all calls of a kind: its gradient is compiled once."""
        with self._lock:
            if call not in self._gradients:
                self._gradients[call] = differentiable(
                    partial(self._callback, call), lambda *leaves: self.called(call, leaves), call.types,
                    partial(self._gradient, call),
                )
            return self._gradients[call]

    def _gradient(self, call: TracedCall, function: Callable[..., Any]) -> TargetFunction:
        """The gradient of such a call, compiled for the same target and closed with this function."""
        found = TargetFunction(function, call.settings.target, (), (), (), self.execution)
        self._made_for_gradients.add(found)
        return found

    def _callback(self, call: TracedCall, *leaves: Any) -> Any:
        """Compiled while JAX traces; JAX's run time then calls what only copies and launches."""
        compiled = self.compiled_for(call)

        def host(*arrays: Any) -> Any:
            now = self._calls.get(call) or self.compiled_for(call)  # compiled again after `clear_cache`; else no lock is waited for
            return jax.tree.unflatten(now.structure, now.run(arrays))

        shapes = jax.tree.unflatten(compiled.structure, compiled.results)
        return jax.pure_callback(host, shapes, *leaves, vmap_method="sequential")

    def run(self, call: TracedCall, leaves: Sequence[Any]) -> Any:
        """The results of one call."""
        compiled = self._calls.get(call) or self.compiled_for(call)
        arrays = compiled.run(leaves)
        # Not where JAX is told to compile nothing, or to take over no array that `device_put` does not name.
        slowly = jax.config.jax_disable_jit or jax.config.jax_transfer_guard_host_to_device not in (None, "allow")
        found: Sequence[Any] = jax.device_put(arrays) if slowly else _taken_over(*arrays)
        if not compiled.plain:
            found = [_as_leaf(array, type) for array, type in zip(found, compiled.results, strict=True)]
        return jax.tree.unflatten(compiled.structure, found)


@jax.jit
def _taken_over(*arrays: Any) -> Any:
    """Arrays of JAX, by the shortest way to them: memory of the right alignment, which a session's outputs have, is not copied."""
    return arrays


def _stored(leaf: Any, type: Any) -> np.ndarray[Any, Any]:
    """The elements of an argument: an array of JAX that lies in the host's memory is not copied."""
    if _is_key(type):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf).astype(type.dtype, copy=False)


def _as_leaf(array: jax.Array, type: Any) -> jax.Array:
    """A random key of the data that a result has; any other result as it is."""
    return jax.random.wrap_key_data(array, impl=_KEYS[type.dtype.name]) if _is_key(type) else array


def _is_key(type: Any) -> bool:
    """Whether the elements are random keys, whose type is no number's."""
    return not isinstance(type.dtype, np.dtype) and jnp.issubdtype(type.dtype, dtypes.prng_key)


def _told_apart(leaf: Any) -> Any:
    """What arguments of one type have in common, found faster than the type: their abstract value, or shape and element type."""
    found = getattr(leaf, "aval", None)
    if found is not None:
        return found
    return (leaf.shape, leaf.dtype) if type(leaf) is np.ndarray else _type_of(leaf)  # JAX refuses some classes of arrays


def _type_of(leaf: Any) -> Any:
    """Shape, element type and weakness of an argument. Raises UsageError TFW0366 for what is no array."""
    try:
        found = jax.typeof(leaf)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"an argument of type {type(leaf).__name__} is no array of JAX", code="TFW0366", note=str(error),
            help="name it in static_argnums or static_argnames if the function needs it when it is traced",
        ) from None
    return jax.ShapeDtypeStruct(found.shape, found.dtype, weak_type=found.weak_type)


def _several(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, int | str) else tuple(given)


def _static_places(function: Callable[..., Any], numbers: Sequence[int], names: Sequence[str]) -> frozenset[int | str]:
    """Static arguments by place and by name: each can be passed both ways."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of functions written in C
        parameters = []
    numbers = [number % len(parameters) if parameters and number < 0 else number for number in numbers]
    found: set[int | str] = {*numbers, *names}
    found.update(parameters[number] for number in numbers if number < len(parameters))
    found.update(parameters.index(name) for name in names if name in parameters)
    return frozenset(found)
