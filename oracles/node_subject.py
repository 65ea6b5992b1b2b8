"""Machine code of a node's collective as the subject of a mutation campaign: all ranks run the changed code, NumPy judges.

Memory is weak and its order adversarial by seed, beside all checks. A site of a meeting at an end of a collective is seen by other
launches alone, and proved so; `meeting.middle` (`oracles.meeting_subject`) is a meeting whose sites have no proof. Of the kernels
that do more than meet, what they do more is tried.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import tilefw
from oracles.mutations import verdicts
from oracles.node_cases import KERNELS, MEETING_TRIED, NodeCase, node_case
from oracles.site import Site, within
from oracles.subject import Run
from tilefw.api import CheckError
from tilefw.api.artifact import Artifact
from tilefw.distributed.node import DeviceNode
from tilefw.distributed.rank_launch import RankLaunch
from tilefw.kernels.distributed import meeting
from tilefw.runtime.plugins.loader import find_target

CHECKS = "all,weak_memory"
node_verdicts = functools.partial(verdicts, proved=1)
"""Of what is proved equivalent, most is the same meeting in many collectives."""
NEXT = "//; the next kernel"  # between the texts of a form's kernels; a comment of either syntax
_FILE = re.compile(r'^\s*\.file (?P<number>\d+) "(?P<path>[^"]+)"', re.MULTILINE)
_PLACE = re.compile(r"^\s*\.loc (?P<file>\d+) (?P<line>\d+)")
_ACCESS = re.compile(r"^\s*(@\S+ )?(?P<store>st\.global|multimem\.(?:st|red)|red\.|atom\.|buffer_store|global_store|global_atomic)|"
                     r"^\s*(@\S+ )?(ld\.global|multimem\.ld_reduce|cp\.async|buffer_load|global_load)")
_OF_WORKGROUPS = ("barrier", "commit", "wait", "weaken")  # what a workgroup does for itself as well
_TALK = "tld."
_ORDERS = re.compile(r"^\s*(bar\.|fence|s_barrier|buffer_inv|buffer_wbl2)")
_LEARNS = re.compile(r"^\s*(fence|buffer_inv)")
BEFORE = "the ranks meet before their work: launches begin when all ranks' inputs are there, so that nothing of this launch is " \
    "ordered by it, only what an earlier launch of the ranks does; nothing is stored before it"
BEHIND = "the ranks meet behind their work: results are read when all launches have ended, so that nothing of this launch is " \
    "ordered by it, only what a later launch of the ranks does; nothing is accessed behind it"


@dataclass(frozen=True)
class JudgedNode:
    """Whose code is broken: a target, what arguments go by, the sites of a text, and proofs of what changes nothing in a kernel."""

    target: str
    corpus: str
    sites: Callable[[str], Sequence[Site]]
    proof: Callable[[str, Site], str]


class RecordedNode(DeviceNode):
    """A node whose launches run the code that is put in the place of theirs, and which keeps what they would run."""

    def __init__(self, target: str, ranks: int, code: Mapping[str, Artifact]) -> None:
        super().__init__(target, ranks)
        self.code, self.artifacts = code, dict[str, Artifact]()

    def _ready(
        self, rank: int, kernel: Any, grid: Any, args: Sequence[Any], keywords: Mapping[str, Any] | None = None
    ) -> RankLaunch:
        one = super()._ready(rank, kernel, grid, args, keywords)
        artifact = one.made.compiled.artifact
        self.artifacts.setdefault(artifact.text, artifact)
        changed = self.code.get(artifact.text)
        if changed is None:
            return one
        return replace(one, made=replace(one.made, compiled=replace(one.made.compiled, artifact=changed)))


class NodeSubject:
    """A form of a collective, `all_reduce.ring`: the code of all of its kernels, one behind the other, on its case."""

    launches = 1

    def __init__(self, name: str, judged: JudgedNode, case: NodeCase | None = None) -> None:
        self.name, self.corpus, self._judged = name, judged.corpus, judged
        kernel, self._form = name.split(".")
        self._one, self._case = KERNELS[kernel], case or node_case(kernel, self._form)
        self._inputs = self._case.draw(np.random.default_rng(1), self._case.ranks)
        node = RecordedNode(judged.target, self._case.ranks, {})
        self._launched(node, 0, "none")
        self._artifacts = list(node.artifacts.values())
        self.text = f"{NEXT}\n".join(artifact.text for artifact in self._artifacts)

    def sites(self) -> list[Site]:
        found = sorted(self._judged.sites(self.text), key=lambda site: site.line)
        return [site for site in found if (self._one.name in MEETING_TRIED or not self._meets(site)) and self._says(site)]

    def proof(self, site: Site) -> str:
        return self._at_an_end(site) or self._proved(site)

    def parse(self, text: str) -> dict[str, Artifact]:
        """By its own text, each kernel that the text changes."""
        backend, changed = find_target(self._judged.target).backend, {}
        for own, part in zip(self._artifacts, text.split(f"{NEXT}\n"), strict=True):
            if part != own.text:
                changed[own.text] = replace(own, text=part, binary=backend.parse(part, self.name).binary)
        return changed

    def run(self, launch: int, code: Mapping[str, Artifact], seed: int, budget: int | None) -> Run:
        node = RecordedNode(self._judged.target, self._case.ranks, code)
        try:
            with tilefw.target(self._judged.target, budget=budget):
                found = self._launched(node, seed, CHECKS)
        except CheckError as error:
            return Run(tuple(error.findings))
        findings = tuple(finding for result in node.results for finding in result.diagnostics)
        wrong = self._one.wrong(found, self._inputs)
        instructions = sum(result.counters["instructions"] for result in node.results)
        return Run(findings, f"beyond the bounds on the ranks {wrong}" if wrong else "", instructions)

    def _launched(self, node: DeviceNode, seed: int, checks: str) -> Any:
        arrays = [node.array(list(values)) for values in self._inputs]
        return self._one.run(node, *arrays, self._form, seed=seed, checks=checks, **self._case.launch)

    def _at_an_end(self, site: Site) -> str:
        """What says that a site belongs to where all ranks meet before or behind all that a kernel does."""
        if not self._meets(site):
            return ""
        line = site.line - 1
        lines, places = self._places
        begin = max((n + 1 for n in range(line) if lines[n] == NEXT), default=0)
        end = next((n for n in range(line, len(lines)) if lines[n] == NEXT), len(lines))
        others = [(n, found) for n in range(begin, end) if places[n] not in _meeting() and (found := _ACCESS.match(lines[n]))]
        if all(n > line for n, found in others if found["store"]):
            return BEFORE
        return BEHIND if all(n < line for n, _ in others) else ""

    def _meets(self, site: Site) -> bool:
        """Whether it is of the function with which all ranks meet."""
        _, places = self._places
        return places[site.line - 1] in _meeting()

    def _says(self, site: Site) -> bool:
        """Whether its line of the source says something to other ranks, or what one wave has learnt of them is told to the others
        there; barriers and waits of a product or a load do not."""
        lines, places = self._places
        place = places[site.line - 1]
        if site.kind not in _OF_WORKGROUPS or place is None or place[0] == meeting.__file__ or _TALK in _source(*place):
            return True
        before = next((line for line in reversed(lines[: site.line - 1]) if _ORDERS.match(line) or _ACCESS.match(line)), "")
        return site.kind == "barrier" and _LEARNS.match(before) is not None

    def _proved(self, site: Site) -> str:
        """What the rules of the instruction set prove in the site's kernel alone."""
        lines, _ = self._places
        begin = max((n + 1 for n in range(site.line - 1) if lines[n] == NEXT), default=0)
        end = next((n for n in range(site.line, len(lines)) if lines[n] == NEXT), len(lines))
        return self._judged.proof("\n".join(lines[begin:end]) + "\n", within(site, begin, end))

    @functools.cached_property
    def _places(self) -> tuple[list[str], list[tuple[str, int] | None]]:
        """The lines of the text, and the file and line of the source of each."""
        lines, place, places, files = self.text.splitlines(), None, list[tuple[str, int] | None](), dict[str, str]()
        for number, line in enumerate(lines):
            if number == 0 or line == NEXT:
                place, rest = None, "\n".join(lines[number + 1 :]).split(NEXT)[0]
                files = {found["number"]: found["path"] for found in _FILE.finditer(rest)}
            if found := _PLACE.match(line):
                place = files.get(found["file"], ""), int(found["line"])
            places.append(place)
        return lines, places


@functools.cache
def _source(path: str, line: int) -> str:
    """The statement that begins at a line of a file, of a loop or a branch its head alone."""
    text = Path(path).read_text("utf-8")
    simple = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt) and not hasattr(node, "body"))
    return next((ast.unparse(node) for node in simple if node.lineno == line), text.splitlines()[line - 1])


@functools.cache
def _meeting() -> frozenset[tuple[str, int]]:
    """The lines of the function with which all ranks meet."""
    path = meeting.__file__
    functions = [node for node in ast.parse(Path(path).read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    meet = next(function for function in functions if function.name == "meet")
    assert meet.end_lineno is not None
    return frozenset((path, line) for line in range(meet.lineno, meet.end_lineno + 1))
