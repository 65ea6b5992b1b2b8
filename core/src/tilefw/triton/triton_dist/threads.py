"""What the threads of a program do apart, as a loop over them: kernels of Triton-distributed read their thread's number.

A tile program has no threads. Its scalars are one thread's, number 0, which is right where a kernel lets one thread act
(`if tid(0) == 0`). Any other statement whose head depends on the number is carried out for one thread after the other:

    if tid(0) < ranks:              for thread in range(min(ranks, threads)):
        signal(flag + tid(0))   ->      if thread < ranks:
                                            signal(flag + thread)

Waits in such a loop are one after the other, too. Pairwise rendezvous end so, as each thread announces before it waits.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable
from typing import Any

from tilefw.api.errors import UnsupportedError

_THREAD = "thread_of_program"
COUNT = "tilefw_threads"
"""The name by which loops read how many threads there are: the module of the kernel has it."""

_BARRIERS = ("__syncthreads", "debug_barrier", "sync_grid")
_TOGETHER = ("_warp", "_wave", "_sync", "_block", "_wg")  # ends of names of what several threads do together
_PREDICATES = ("_is_cta_master",)  # functions that say whether the thread is number 0
_WITHOUT_EFFECT = ("cast", "constexpr", "to", "full", "zeros")
# What gives the same however often and whenever it is computed, so that each thread's loop may compute it anew.
_COMPUTED = (
    *_WITHOUT_EFFECT, "tid", "ntid", "num_threads", "num_warps", "threads_per_warp", "symm_at", "rank", "num_ranks", "cdiv",
    "min", "max", "minimum", "maximum", "where",
)
_READS = ("ld", "ld_acquire", "ld_b32", "load")
_OF_LEADER = ("arrive_inc", "wait_eq")  # they are given the number, and let thread 0 act
_OF_A_THREAD = (
    "signal_op", "signal_wait_until", "int_p", "st", "store", "st_b32", "atomic_add", "atomic_cas", "red_release", "notify",
)


def over_threads(function: ast.FunctionDef) -> ast.FunctionDef | None:
    """The function without threads, or None where it has none."""
    if not any(_is_of_thread(node) or _is_region(node) for node in ast.walk(function)):
        return None
    if function.name in _PREDICATES:
        return None
    made, threads = copy.deepcopy(function), _Threads()
    threads.stored.update(argument.arg for argument in function.args.args)
    made.body = threads.block(made.body)
    threads.check_kept(made)
    return ast.fix_missing_locations(made)


class _Threads:
    """A walk through a function's statements. `of` is what each name is that depends on the thread, by the thread's number; None
    where that depends on the way by which the statement was reached. `stored` are all names that have been stored so far."""

    def __init__(self) -> None:
        self.of: dict[str, ast.expr | None] = {}
        self.stored: set[str] = set()
        self.kept = 0
        self.loops: list[ast.For] = []

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return [made for statement in statements for made in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.With) and any(_is_region(item.context_expr) for item in node.items):
            return self._region(node)
        self._check_stores(node)
        if isinstance(node, ast.With):
            node.body = self.block(node.body)
            return [node]
        if isinstance(node, ast.If | ast.While | ast.For):
            return [self._compound(node)]
        self.stored.update(_stores(node))
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            return self._assignment(node)
        if isinstance(node, ast.Expr) and self._depends(node.value) and (word := _called(node.value)) not in _OF_LEADER:
            if word not in _OF_A_THREAD:
                raise _refused(node, f"`{ast.unparse(node)}`, which gives a thread's number to a function of all threads,")
            return [self._loop(node, node.value)]
        if isinstance(node, ast.AugAssign | ast.Return) and node.value is not None and self._depends(node):
            raise _refused(node, f"`{ast.unparse(node)}`, a value that differs from thread to thread,")
        return [node]

    def _compound(self, node: ast.If | ast.While | ast.For) -> ast.stmt:
        head = node.iter if isinstance(node, ast.For) else node.test
        if not self._depends(head):
            self._branches(node) if isinstance(node, ast.If) else self._turns(node)
        elif self._is_leader(head) and self._is_of_others(node):
            self._leader(node)
        else:
            return self._loop(node, head)
        return node

    def _branches(self, node: ast.If) -> None:
        """Each branch begins with what was known before; behind them is known what both say."""
        of, stored = dict(self.of), set(self.stored)
        node.body = self.block(node.body)
        other, self.of, self.stored = (self.of, self.stored), of, stored
        node.orelse = self.block(node.orelse)
        self._join(*other)

    def _turns(self, node: ast.For | ast.While) -> None:
        """A turn begins with what is known before the loop and behind a turn."""
        if isinstance(node, ast.For):
            self._change(_stores(node.target))
        first = copy.deepcopy(self)
        first.block(copy.deepcopy(node.body))
        self._join(first.of, first.stored)
        of, stored = dict(self.of), set(self.stored)
        node.body = self.block(node.body)
        self._join(of, stored)
        node.orelse = self.block(node.orelse)

    def _join(self, of: dict[str, ast.expr | None], stored: set[str]) -> None:
        """What is known where this way and another one meet. A name that one of them has never stored comes by the other."""
        for name in {*self.of, *of}:
            here, there = self.of.get(name), of.get(name)
            if name not in of and name not in stored:
                there = here
            elif name not in self.of and name not in self.stored:
                here = there
            same = here is not None and there is not None and ast.dump(here) == ast.dump(there)
            self.of[name] = here if same else None
        self.stored |= stored

    def _leader(self, node: ast.If | ast.While | ast.For) -> None:
        """Thread 0 acts alone, and by its own values: those that the program has."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return):
                raise _refused(inner, "the end of one thread")
        self._change(_stores(node))

    def _change(self, stored: list[str]) -> None:
        """Names have new values, of which those that depend on the thread are known no longer."""
        self.stored.update(stored)
        for name, expression in self.of.items():
            if name in stored or (expression is not None and not _names(expression).isdisjoint(stored)):
                self.of[name] = None

    def _check_stores(self, node: ast.stmt) -> None:
        """What a name of a thread was made of stays as it was."""
        if isinstance(node, ast.If | ast.While):
            return
        targets = _stores(node)
        for name, expression in self.of.items():
            for part in _names(expression) if expression is not None else ():
                if part in targets and name not in targets:
                    raise _refused(node, f"`{part}`, of which `{name}` of each thread is made, and which changes,")

    def check_kept(self, function: ast.FunctionDef) -> None:
        """What a thread stores in a name ends with the loop."""
        inside = [part for loop in self.loops for part in ast.walk(loop)]
        within = set(map(id, inside))
        private = {name for loop in self.loops for name in _stores(loop)}
        outside = [part for part in ast.walk(function) if isinstance(part, ast.Name) and id(part) not in within]
        stored = {part.id for part in outside if isinstance(part.ctx, ast.Store)} | {a.arg for a in function.args.args}
        for part in outside:
            if part.id in private and (part.id not in stored or isinstance(part.ctx, ast.Load)):
                raise _refused(part, f"`{part.id}`, which threads store apart and the program reads,")

    def _region(self, node: ast.With) -> list[ast.stmt]:
        """`with dl.simt_exec_region() as (thread, threads)`."""
        names = node.items[0].optional_vars
        if not isinstance(names, ast.Tuple) or not all(isinstance(name, ast.Name) for name in names.elts):
            raise _refused(node, "a region of threads without names for its thread and their number")
        thread, threads = (name.id for name in names.elts if isinstance(name, ast.Name))
        self.of[thread] = _name(_THREAD)
        begin = ast.parse(f"{thread} = 0\n{threads} = {COUNT}").body
        return [*begin, *self.block(node.body)]

    def _assignment(self, node: ast.Assign | ast.AnnAssign) -> list[ast.stmt]:
        """A name that depends on the thread is kept as what it is made of, and has the value of thread 0."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        assert value is not None
        if self._is_unclear(value):
            self.of.update(dict.fromkeys(_stores(node)))
            return [node]
        if not self._depends(value):
            for target in targets:
                if isinstance(target, ast.Name):
                    self.of.pop(target.id, None)
            return [node]
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            raise _refused(node, "an assignment of several values of a thread")
        for part in ast.walk(value):
            word = _called(part)
            if word in (*_OF_A_THREAD, *_READS) or word.startswith("atomic"):
                raise _refused(node, f"`{ast.unparse(node)}`, what each thread reads for later,")
        name, before = targets[0].id, []
        expression = self._for_thread(value)
        if name in _names(expression):
            self.kept += 1
            earlier = f"{name}_before_{self.kept}"
            before = ast.parse(f"{earlier} = {name}").body
            expression = _Substitution({name: _name(earlier)}).visit(expression)
        self.of[name] = expression
        return [*before, node]

    def _loop(self, node: ast.stmt, head: ast.expr) -> ast.stmt:
        """The statement for one thread after the other."""
        for inner in ast.walk(node):
            word = _called(inner)
            if word in _BARRIERS or word.endswith(_TOGETHER):
                raise _refused(inner, f"{word} by threads that are apart")
            if isinstance(inner, ast.Return | ast.AugAssign):
                raise _refused(inner, "a value that a thread keeps for later")
            if isinstance(inner, ast.Name) and inner.id in self.of:
                self._check_anew(inner)
        whole = isinstance(node, ast.If) and bool(node.orelse)  # whom the condition leaves out acts too
        least = None if whole else self._limit(head)
        limit = _name(COUNT) if least is None else ast.Call(_name("min"), [least, _name(COUNT)], [])
        made = ast.For(
            target=ast.Name(_THREAD, ast.Store()), iter=ast.Call(_name("range"), [ast.Constant(0), limit], []),
            body=[self._for_thread(node)], orelse=[], lineno=node.lineno,
        )
        self.loops.append(made)
        return made

    def _check_anew(self, name: ast.Name) -> None:
        """A name of a thread, in its loop: computed there anew."""
        expression = self.of[name.id]
        if isinstance(name.ctx, ast.Store):
            raise _refused(name, f"`{name.id}`, which a thread keeps for later,")
        if expression is None:
            raise self._unclear(name, name.id)
        if any(isinstance(part, ast.Call) and _called(part) not in _COMPUTED for part in ast.walk(expression)):
            raise _refused(name, f"`{name.id}`, which each thread would compute anew,")

    def _is_unclear(self, value: ast.expr) -> bool:
        return any(name in self.of and self.of[name] is None for name in _names(value))

    def _unclear(self, node: ast.AST, name: str) -> UnsupportedError:
        return _refused(node, f"`{name}`, which differs from thread to thread on some of the ways to here,")

    def _limit(self, head: ast.expr) -> ast.expr | None:
        """`n`, where only threads below n do something: of `thread < n`, alone or with further conditions."""
        for part in head.values if isinstance(head, ast.BoolOp) and isinstance(head.op, ast.And) else [head]:
            if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Lt):
                left, right = self._for_thread(part.left), part.comparators[0]
                if isinstance(left, ast.Name) and left.id == _THREAD and not self._depends(right):
                    return copy.deepcopy(right)
        return None

    def _is_of_others(self, node: ast.If | ast.While | ast.For) -> bool:
        """Whether the second branch only gives the other threads values of what the first one gives thread 0."""
        parts = [part for part in ast.walk(ast.Module(node.body, [])) if isinstance(part, ast.Name)]
        names = {part.id for part in parts if isinstance(part.ctx, ast.Store)}
        return all(
            isinstance(other, ast.Assign) and all(isinstance(target, ast.Name) and target.id in names for target in other.targets)
            and all(_called(part) in ("", *_WITHOUT_EFFECT) for part in ast.walk(other.value))
            for other in node.orelse
        )

    def _is_leader(self, head: ast.expr) -> bool:
        parts = head.values if isinstance(head, ast.BoolOp) and isinstance(head.op, ast.And) else [head]
        for part in parts:
            part = self._for_thread(part)
            if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq):
                left, right = part.left, part.comparators[0]
                if isinstance(left, ast.Name) and left.id == _THREAD and isinstance(right, ast.Constant) and right.value == 0:
                    return True
        return False

    def _depends(self, node: ast.AST) -> bool:
        names = _names(node) & self.of.keys()
        for name in names:
            if self.of[name] is None:
                raise self._unclear(node, name)
        return bool(names) or any(map(_is_of_thread, ast.walk(node)))

    def _for_thread(self, node: ast.AST) -> Any:
        """A copy in which each name of a thread is what it is made of."""
        known = {name: expression for name, expression in self.of.items() if expression is not None}
        return _Substitution(known).visit(copy.deepcopy(node))


class _Substitution(ast.NodeTransformer):
    """Names by expressions, and the number of the thread by its name."""

    def __init__(self, of: dict[str, ast.expr]) -> None:
        self.of = of

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _called(node) in _PREDICATES:
            return ast.Compare(_name(_THREAD), [ast.Eq()], [ast.Constant(0)])
        return _name(_THREAD) if _is_number(node) else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self.of[node.id]) if node.id in self.of and isinstance(node.ctx, ast.Load) else node


def _is_number(node: ast.AST) -> bool:
    """`tid(0)`, `tid(axis=0)`."""
    if not isinstance(node, ast.Call) or _called(node) != "tid":
        return False
    given: Iterable[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
    return any(isinstance(value, ast.Constant) and value.value == 0 for value in given)


def _is_of_thread(node: ast.AST) -> bool:
    return _is_number(node) or _called(node) in _PREDICATES


def _is_region(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "simt_exec_region"


def _called(node: ast.AST) -> str:
    """The last word of the function of a call."""
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _stores(node: ast.AST) -> list[str]:
    """The names that a statement stores, and those within it."""
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def _name(word: str) -> ast.Name:
    return ast.Name(word, ast.Load())


def _refused(node: ast.AST, what: str) -> UnsupportedError:
    return UnsupportedError(f"line {getattr(node, 'lineno', 0)}: {what} is not served", "TFW0103")
