"""The functions of `tilefw.language.distributed`: loads of the node context, pointers moved to a peer's heap, atomics with scope.

Nothing here is a new access: what a target serves of loads, stores and atomics, it serves of peers' memory too. An array of a
symmetric heap is as far from the beginning of each rank's heap, so that its peer's copy is as far away as the heaps are.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import BINARY, COMPARISONS, add, compare, offset, stretched, subtract
from tilefw.frontend.block_pointers import BlockPointer
from tilefw.frontend.builder import Builder, element_of
from tilefw.frontend.builtins import atomics, memory
from tilefw.frontend.builtins.atomics import SCOPES
from tilefw.frontend.builtins.reduction import any_of
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, to_value
from tilefw.frontend.teams import NOBODY, TeamValue, checked_team, listed, strided, within
from tilefw.frontend.tensor_descriptors import DescriptorValue
from tilefw.frontend.values import RuntimeValue, describe, lowered, named
from tilefw.node_context import BARRIER, HEAP_ALIGNMENT, HEAP_BASES, HIDDEN, MULTICAST_BASE, NUM_RANKS, PARAMETER, RANK
from tilefw.tile.dialect.atomic_ops import FENCE_ORDERS
from tilefw.tile.dialect.multicast_op import STORED, multicast_elements

meaning = Meanings()

_UPDATES = {"set": "atomic_xchg", "add": "atomic_add"}
_REDUCTIONS = ("add", "max", "min", "and", "or", "xor")
_UPDATE_ORDERS = ("relaxed", "release")
# Ranks that a barrier signals by one access: more than most nodes have, no more than a wave of any chip has lanes.
_TOLD_AT_ONCE = 32
_OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


# -- ranks and addresses


@meaning("distributed.rank")
def rank(b: Builder, team: Any) -> RuntimeValue:
    own = _number(b, "rank", RANK)
    return own if team is None else checked_team(team).number(b, own)


@meaning("distributed.num_ranks")
def num_ranks(b: Builder, team: Any) -> RuntimeValue:
    return _number(b, "num_ranks", NUM_RANKS) if team is None else checked_team(team).size


@meaning("distributed.team")
def team(b: Builder, first: Any, stride: Any, size: Any, parent: Any) -> TeamValue:
    whole = None if parent is None else checked_team(parent)
    if size is None:
        # As many as there are from the first on, whichever way the stride goes.
        end = _number(b, "num_ranks", NUM_RANKS) if whole is None else whole.size
        made = strided(b, first, stride, 1)
        start, step = made.ranks
        last = b.row("select", compare(b, ">", step, 0), subtract(b, end, 1), b.constant(0, tl.int32))
        size = add(b, BINARY["//"](b, subtract(b, last, start), step), 1)
    made = strided(b, first, stride, size)
    return made if whole is None else within(b, whole, made)


@meaning("distributed.team_of")
def team_of(b: Builder, ranks: Any) -> TeamValue:
    return listed(b, ranks)


@meaning("distributed.world_rank")
def world_rank(b: Builder, team: Any, rank: Any) -> RuntimeValue:
    return checked_team(team).world_rank(b, _one_rank(b, rank))


@meaning("distributed.team_rank")
def team_rank(b: Builder, team: Any, rank: Any) -> RuntimeValue:
    return checked_team(team).number(b, _one_rank(b, rank))


def _one_rank(b: Builder, rank: Any) -> RuntimeValue:
    """An int32. Raises CompileError (TFW0201) for anything but an integer."""
    found = to_value(b, rank)
    if found.shape or not found.dtype.is_int():
        raise CompileError(f"a rank is one integer, not {named(rank)}", "TFW0201")
    number = cast(b, found, tl.int32)
    if found.dtype.primitive_bitwidth <= 32:
        return number
    # A number beyond 32 bits is no rank, and must not become one by losing its upper half.
    return b.row("select", compare(b, "==", cast(b, number, found.dtype), found), number, b.constant(NOBODY, tl.int32))


def _number(b: Builder, name: str, word: int) -> RuntimeValue:
    return b.at_entry(name, lambda: cast(b, _word(b, b.constant(word, tl.int64)), tl.int32))


def _word(b: Builder, index: RuntimeValue) -> RuntimeValue:
    """A word of the node context."""
    context = b.hidden_argument(HIDDEN, PARAMETER, tl.pointer_type(tl.int64))
    return b.load(offset(b, context, index), None, None, "", "", False)


def _heap_base(b: Builder, of: RuntimeValue) -> RuntimeValue:
    # Of 32 bits without a sign, so that a negative rank is an address behind the context as other wrong ones are.
    number = cast(b, cast(b, of, tl.uint32), tl.int64)
    return _word(b, add(b, number, b.constant(HEAP_BASES, tl.int64)))


def _own_base(b: Builder) -> RuntimeValue:
    return b.at_entry("heap_base", lambda: _heap_base(b, _number(b, "rank", RANK)))


@meaning("distributed.at")
def at(b: Builder, pointer: Any, rank: Any) -> Any:
    if isinstance(pointer, BlockPointer | DescriptorValue):
        return replace(pointer, base=_moved(b, pointer.base, rank))
    return _moved(b, memory.checked_pointer(pointer, "distributed.at"), rank)


def _moved(b: Builder, pointer: RuntimeValue, rank: Any) -> RuntimeValue:
    """A pointer, or a tile of them, to the same place in a peer's heap."""
    peer = _one_rank(b, rank)
    if isinstance(rank, int) and rank < 0:
        raise CompileError(f"rank {rank} is none: they count from 0", "TFW0875", help="the last one is tld.num_ranks() - 1")
    return _in_heap_of(b, pointer, peer)


def _in_heap_of(b: Builder, pointer: RuntimeValue, peer: RuntimeValue) -> RuntimeValue:
    """The same place in a peer's heap; of a tile of peers, a pointer for each."""
    _check_rank(b, peer)
    mine = _own_base(b)
    size = max(element_of(pointer).primitive_bitwidth // 8, 1)
    distance = subtract(b, _heap_base(b, peer), mine)
    if size > 1:
        distance = BINARY[">>"](b, distance, size.bit_length() - 1)
    b.hint(distance, "tile.divisible", (HEAP_ALIGNMENT // size,))
    return offset(b, pointer, distance)


def _check_rank(b: Builder, peer: RuntimeValue) -> None:
    """In a debug build a rank that is none ends the program."""
    if b.debug:
        wrong = BINARY["|"](b, compare(b, "<", peer, 0), compare(b, ">=", peer, num_ranks(b, None)))
        b.trap_where(any_of(b, "distributed.at", wrong), "a rank from 0 to below num_ranks is wanted")


# -- accesses


@meaning("distributed.load")
def load(b: Builder, pointer: Any, rank: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any) -> RuntimeValue:
    return memory.load(b, at(b, pointer, rank), mask, other, cache_modifier, eviction_policy, False, (), None)


@meaning("distributed.store")
def store(b: Builder, pointer: Any, value: Any, rank: Any, mask: Any, cache_modifier: Any, eviction_policy: Any) -> None:
    memory.store(b, at(b, pointer, rank), value, mask, cache_modifier, eviction_policy, ())


def _of_peer(function: str) -> Callable[..., Any]:
    """An atomic access of `tl`, on a peer's copy: its parameters with `rank` put in, which `scope` follows as the last."""
    names = list(inspect.signature(getattr(tld, function)).parameters)
    own = list(inspect.signature(getattr(tl, function)).parameters)

    def build(b: Builder, *given: Any) -> Any:
        values = dict(zip(names, given, strict=True))
        values["pointer"], values["scope"] = at(b, values["pointer"], values.pop("rank")), _scope(values["scope"])
        return atomics.meaning.of[function](b, *[values[name] for name in own])

    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("b", *names)]
    )
    return build


for _name in tld.ATOMICS:
    meaning(f"distributed.{_name}")(_of_peer(_name))


# -- all ranks' copies at once


@meaning("distributed.multicast_load_reduce")
def multicast_load_reduce(b: Builder, pointer: Any, op: Any, mask: Any, other: Any) -> RuntimeValue:
    at = memory.checked_pointer(pointer, "distributed.multicast_load_reduce")
    if other is not None and mask is None:
        raise CompileError("`other` has a meaning with a mask alone", "TFW0221")
    shape = memory.shape_of_access(at, (("mask", mask), ("other", other)))
    missing = memory.fitted(b, 0 if other is None else other, element_of(at), shape)
    return _multicast(b, "load", _kind(b, op, at, "load"), at, missing, mask, shape, "relaxed", "sys")


@meaning("distributed.multicast_store")
def multicast_store(b: Builder, pointer: Any, value: Any, mask: Any) -> None:
    _multicast_write(b, "store", STORED, pointer, value, mask, "relaxed", "sys")


@meaning("distributed.multicast_reduce")
def multicast_reduce(b: Builder, pointer: Any, value: Any, op: Any, mask: Any, sem: Any, scope: Any) -> None:
    if sem not in _UPDATE_ORDERS or isinstance(sem, RuntimeValue):
        raise CompileError(f"sem is one of {', '.join(map(repr, _UPDATE_ORDERS))}, not {describe(sem)}", "TFW0221")
    at = memory.checked_pointer(pointer, "distributed.multicast_reduce")
    _multicast_write(b, "update", _kind(b, op, at, "update"), pointer, value, mask, sem, _scope(scope))


def _multicast_write(
    b: Builder, action: str, kind: str, pointer: Any, value: Any, mask: Any, order: str, scope: str
) -> None:
    at = memory.checked_pointer(pointer, f"distributed.multicast_{action}")
    if at.dtype.is_const():
        raise memory.read_only(at)
    shape = memory.shape_of_access(at, (("value", value), ("mask", mask)))
    _multicast(b, action, kind, at, memory.fitted(b, value, element_of(at), shape), mask, shape, order, scope)


def _multicast(
    b: Builder, action: str, kind: str, pointer: RuntimeValue, value: RuntimeValue, mask: Any, shape: tuple[int, ...], order: str,
    scope: str,
) -> RuntimeValue:
    """The op at the multicast addresses of a pointer into this rank's heap."""
    element = element_of(pointer)
    if lowered(element) not in multicast_elements(action, kind):
        raise CompileError(
            f"tld's multicast accesses do not combine {element} so" if action != "store" else
            f"tld.multicast_store is not there for {element}", "TFW0220",
            help="integers have 32 or 64 bits, floats 16, 32 or 64; bitwise operations are of integers, and updates of 16 bits add",
        )
    size, base = element.primitive_bitwidth // 8, b.at_entry("multicast", lambda: _word(b, b.constant(MULTICAST_BASE, tl.int64)))
    distance = BINARY[">>"](b, subtract(b, base, _own_base(b)), size.bit_length() - 1)
    b.hint(distance, "tile.divisible", (HEAP_ALIGNMENT // size,))
    context = b.hidden_argument(HIDDEN, PARAMETER, tl.pointer_type(tl.int64))
    fitted = None if mask is None else memory.fitted_mask(b, mask, shape)
    at = offset(b, pointer, distance)
    return b.multicast(action, kind, at, value, context, fitted, order, SCOPES[scope])


def _kind(b: Builder, op: Any, pointer: RuntimeValue, action: str) -> str:
    """The kind of tile IR of a reduction by name. Raises CompileError (TFW0221) where there is no such one."""
    if isinstance(op, RuntimeValue) or op not in _REDUCTIONS:
        raise CompileError(f"op is one of {', '.join(map(repr, _REDUCTIONS))}, not {describe(op)}", "TFW0221")
    element = element_of(pointer)
    sign = "f" if element.is_floating() else "s" if element.is_int_signed() else "u"
    return f"{op}{sign}" if op in ("max", "min") else op


@meaning("distributed.put")
def put(b: Builder, source: Any, destination: Any, rank: Any, mask: Any, wait: Any, boundary_check: Any) -> None:
    _copy(b, source, at(b, destination, rank), mask, wait, boundary_check)


@meaning("distributed.get")
def get(b: Builder, source: Any, destination: Any, rank: Any, mask: Any, wait: Any, boundary_check: Any) -> None:
    _copy(b, at(b, source, rank), destination, mask, wait, boundary_check)


def _copy(b: Builder, source: Any, destination: Any, mask: Any, wait: Any, boundary_check: Any) -> None:
    """A tile from where pointers lead to where others do, by the program or, where it does not wait, by whom it leaves it to."""
    if not isinstance(wait, bool):
        raise CompileError(f"`wait` of a put or a get is True or False, not {describe(wait)}", "TFW0221")
    with contextlib.nullcontext() if wait else b.asynchronous():
        value = memory.load(b, source, mask, None, "", "", False, boundary_check, None)
        memory.store(b, destination, value, mask, "", "", boundary_check)


# -- signals


@meaning("distributed.signal")
def signal(b: Builder, pointer: Any, rank: Any, value: Any, op: Any, sem: Any, scope: Any) -> None:
    if op not in _UPDATES or isinstance(op, RuntimeValue):
        raise CompileError(f"op is one of {', '.join(map(repr, _UPDATES))}, not {describe(op)}", "TFW0221")
    words = _words(pointer, "signal")
    value = _fitted_word(b, value, element_of(words))
    before = atomics.meaning.of[_UPDATES[op]](b, at(b, words, rank), value, None, sem, _scope(scope))
    if b.debug and op == "add":
        more, wrapped = compare(b, ">=", value, 0), compare(b, "<", add(b, before, value), before)
        b.trap_where(compare(b, "==", more, wrapped), "a signal wraps: its word cannot hold what is added to it")


@meaning("distributed.put_signal")
def put_signal(
    b: Builder, source: Any, destination: Any, pointer: Any, rank: Any, value: Any, op: Any, mask: Any, strong: Any
) -> None:
    if not isinstance(strong, bool):
        raise CompileError(f"`strong` of tld.put_signal is True or False, not {describe(strong)}", "TFW0221")
    if strong:
        quiet(b)
    put(b, source, destination, rank, mask, True, ())
    signal(b, pointer, rank, value, op, "release", "sys")


@meaning("distributed.wait")
def wait(b: Builder, pointer: Any, count: Any, value: Any, comparison: Any, sem: Any, scope: Any) -> RuntimeValue:
    words, number = _words(pointer, "wait"), to_value(b, count)
    if comparison not in _OPPOSITES or isinstance(comparison, RuntimeValue):
        known = ", ".join(map(repr, _OPPOSITES))
        raise CompileError(f"comparison is one of {known}, not {describe(comparison)}", "TFW0221")
    if isinstance(count, int) and count < 1:
        raise CompileError(f"tld.wait waits for one word or more, not for {count}", "TFW0221")
    element = element_of(words)
    awaited, row = _fitted_word(b, value, element), COMPARISONS[_OPPOSITES[comparison]](element)

    def one(word: RuntimeValue) -> None:
        # Nothing is carried through the loop, so that one thread waits and has nothing to tell the others.
        load = atomics.meaning.of["atomic_load"]
        b.until([], lambda: (b.compare(row, load(b, word, None, sem, _scope(scope)), awaited), []))

    def step(index: RuntimeValue) -> tuple[RuntimeValue, list[RuntimeValue]]:
        one(offset(b, words, index))
        following = add(b, index, 1)
        return compare(b, "<", following, number), [following]

    if count == 1:
        one(words)
    else:
        b.until([b.constant(0, tl.int32)], step)
    return b.constant(1, tl.int32)


@meaning("distributed.consume")
def consume(b: Builder, value: Any, token: Any) -> Any:
    if not isinstance(token, RuntimeValue) or token.shape or not token.dtype.is_int():
        raise CompileError(f"a token is what tld.wait gives, not {describe(token)}", "TFW0201")
    return value


# -- order


@meaning("distributed.fence")
def fence(b: Builder, sem: Any, scope: Any) -> None:
    if sem not in FENCE_ORDERS or isinstance(sem, RuntimeValue):
        raise CompileError(f"sem is one of {', '.join(map(repr, FENCE_ORDERS))}, not {describe(sem)}", "TFW0221")
    b.fence(sem, SCOPES[_scope(scope)])


@meaning("distributed.quiet")
def quiet(b: Builder) -> None:
    b.fence("acq_rel", "system")


@meaning("distributed.barrier")
def barrier(b: Builder, pointer: Any, team: Any) -> None:
    if pointer is None:
        if team is not None:
            raise CompileError("the node's own barrier is of all ranks", "TFW0201", help="give two words of the heap for a team")
        pointer = cast(b, add(b, _own_base(b), b.constant(BARRIER, tl.int64)), tl.pointer_type(tl.int64))
    barrier_wait(b, pointer, barrier_arrive(b, pointer, team))


@meaning("distributed.barrier_arrive")
def barrier_arrive(b: Builder, pointer: Any, team: Any) -> RuntimeValue:
    words = _words(pointer, "barrier")
    members = strided(b, 0, 1, num_ranks(b, None)) if team is None else checked_team(team)
    if b.debug and team is not None:
        b.trap_where(compare(b, "<", rank(b, members), 0), "a barrier of a team, by a rank that is not of it")
    mine = offset(b, words, 1)
    epoch = add(b, b.load(mine, None, None, "", "", False), 1)
    b.store(mine, epoch, None, "", "")

    lanes = b.iota(0, _TOLD_AT_ONCE)

    def step(first: RuntimeValue) -> tuple[RuntimeValue, list[RuntimeValue]]:
        # A lane a member, all at once: one behind another, each release would wait for what the one before it says to be there.
        index = add(b, lanes, first)
        inside = compare(b, "<", index, members.size)
        member = members.member(b, b.row("select", inside, index, stretched(b, first, index.shape)))
        atomics.meaning.of["atomic_add"](b, _in_heap_of(b, words, member), 1, inside, "release", "sys")
        following = add(b, first, _TOLD_AT_ONCE)
        return compare(b, "<", following, members.size), [following]

    b.until([b.constant(0, tl.int32)], step)
    return BINARY["*"](b, epoch, cast(b, members.size, epoch.dtype))


@meaning("distributed.barrier_wait")
def barrier_wait(b: Builder, pointer: Any, token: Any) -> None:
    words, awaited = _words(pointer, "barrier"), consume(b, token, token)

    def ahead() -> tuple[RuntimeValue, list[RuntimeValue]]:
        # By the difference, which is right on both sides of the largest number.
        arrived = atomics.meaning.of["atomic_load"](b, words, None, "acquire", "sys")
        return compare(b, "<", subtract(b, arrived, awaited), 0), []

    b.until([], ahead)


def _fitted_word(b: Builder, value: Any, element: tl.dtype) -> RuntimeValue:
    """A signal's value in the type of its word. Raises CompileError (TFW0208) for a number that the word cannot hold."""
    bits, signed = element.primitive_bitwidth, element.is_int_signed()
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if isinstance(value, int) and not low <= value < high:
        raise CompileError(f"{value} is no value of a signal's word of {element}", "TFW0208", help="make the words of int64")
    return memory.fitted(b, value, element, ())


def _words(pointer: Any, function: str) -> RuntimeValue:
    """The pointer to a signal's words."""
    found = memory.checked_pointer(pointer, f"distributed.{function}")
    element = element_of(found)
    if found.shape or not element.is_int() or element.primitive_bitwidth not in (32, 64):
        raise CompileError(f"tld.{function} takes a pointer to int32 or int64, not {named(pointer)}", "TFW0220")
    return found


def _scope(scope: Any) -> str:
    """The scope as it was given. Raises CompileError (TFW0221) where there is no such scope."""
    if isinstance(scope, RuntimeValue) or scope not in SCOPES:
        raise CompileError(
            f"scope is one of {', '.join(map(repr, SCOPES))}, not {describe(scope)}", "TFW0221",
            help="leave `scope` out for the system",
        )
    return scope
