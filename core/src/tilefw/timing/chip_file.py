"""A chip's numbers for the model of time, read from a YAML file: each with its unit, its range and its public source.

    chip: toy
    figures:
      clock: {value: 1410, unit: MHz, low: 1350, high: 1410, kind: manual, source: "the toy's data sheet, boost clock"}

`kind` says what the source is: a vendor's `manual`, a published `measurement`, another `model`, a value `fitted` to points that the
source names, or an `assumption`. `like: NAME` takes the figures that are not given from another file beside it. Files of systems of
devices (`tilefw.distributed.links`) have the same form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from typing import NoReturn

import yaml

from tilefw.api.errors import CodeError, UnsupportedError
from tilefw.located_yaml import Grammar, LocatedYaml

_CODE = "TFW0665"
_GRAMMAR = Grammar("chip files", malformed=_CODE, refused=_CODE, characters=200_000, depth=4)
KINDS = ("manual", "measurement", "model", "fitted", "assumption")
UNITS = ("MHz", "cycles", "bytes", "bytes/cycle", "GB/s", "us", "count", "share", "operations/cycle")
_SLOWER_WHEN_MORE = ("cycles", "us")
_FIELDS = ("value", "unit", "low", "high", "kind", "source")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: `low` and `high` bound where the source leaves it."""

    value: float
    unit: str
    low: float
    high: float
    kind: str
    source: str


@dataclass(frozen=True)
class ChipFigures:
    """The numbers of one chip by name. Whoever asks for one that is not there gets the name of the file and of the number."""

    file: str
    chip: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    like: str = ""

    def __getitem__(self, name: str) -> float:
        """The value; raises CodeError TFW0665."""
        return self.figure(name).value

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def figure(self, name: str) -> Figure:
        """The number with its source; raises CodeError TFW0665 where the file has none of that name."""
        found = self.figures.get(name)
        if found is None:
            help = f"add `{name}: {{value: …, unit: …, kind: …, source: …}}`"
            raise CodeError(f"{self.file} has no figure '{name}'", code=_CODE, help=help)
        return found

    def without(self, name: str) -> ChipFigures:
        """All numbers but one."""
        return ChipFigures(self.file, self.chip, {n: f for n, f in self.figures.items() if n != name})

    def scaled(self, name: str, factor: float) -> ChipFigures:
        """All numbers, one of them times `factor`."""
        old = self.figure(name)
        new = replace(old, value=old.value * factor, low=old.low * factor, high=old.high * factor)
        return ChipFigures(self.file, self.chip, {**self.figures, name: new})

    def fast(self) -> ChipFigures:
        """Every figure at the end of its range at which the chip is fastest."""
        return self._at(lambda f: f.low if f.unit in _SLOWER_WHEN_MORE else f.high)

    def slow(self) -> ChipFigures:
        """Every figure at the end of its range at which the chip is slowest."""
        return self._at(lambda f: f.high if f.unit in _SLOWER_WHEN_MORE else f.low)

    def _at(self, end: Callable[[Figure], float]) -> ChipFigures:
        return ChipFigures(self.file, self.chip, {name: replace(f, value=end(f)) for name, f in self.figures.items()})


@lru_cache(maxsize=32)
def read_chip_file(text: str, file: str, subject: str = "chip") -> ChipFigures:
    """The figures in the text of a chip file, or of another `subject`'s. Raises CodeError TFW0665 at the line that is missing
    something or makes no sense."""
    located = LocatedYaml(file, text, _GRAMMAR)
    root = located.root()
    if not isinstance(root, yaml.MappingNode):
        located.fail(root, f"a {subject} file is a mapping with `{subject}` and `figures`")
    words, figures = {subject: "", "like": ""}, {}
    for name, key, value in located.items(root):
        if name in words and isinstance(value, yaml.ScalarNode):
            words[name] = value.value
        elif name == "figures" and isinstance(value, yaml.MappingNode):
            figures = {word: _figure(located, word, at, node) for word, at, node in located.items(value)}
        else:
            located.fail(key, f"'{name}' is neither `{subject}` nor `like` (a name) nor `figures` (a mapping)")
    if not words[subject] or not figures:
        located.fail(root, f"the file has no `{'figures' if words[subject] else subject}`")
    return ChipFigures(file, words[subject], figures, words["like"])


def packaged_figures(package: str, chip: str, target: str) -> ChipFigures:
    """The figures of the file that a plugin's package has for a chip: `CHIP.yaml` in it. Raises UnsupportedError TFW0666 where
    there is none, CodeError TFW0665."""
    found = _packaged(package, chip)
    if found is None:
        raise UnsupportedError(f"{target} has no model of time", code="TFW0666", note=f"{package} has no {chip}.yaml")
    return _with_the_rest(found, package, chip, "chip")


def packaged_system(package: str, system: str) -> ChipFigures | None:
    """The figures of `SYSTEM.yaml` in a plugin's package of systems of devices; raises CodeError TFW0665."""
    found = _packaged(package, system, "system")
    return None if found is None else _with_the_rest(found, package, system, "system")


def _with_the_rest(found: ChipFigures, package: str, first: str, subject: str) -> ChipFigures:
    read = [first]
    while name := found.like:
        if name in read:
            raise CodeError(f"{read[-1]}.yaml is like '{name}', which is like it", code=_CODE)
        rest = _packaged(package, name, subject)
        if rest is None:
            raise CodeError(f"{read[-1]}.yaml is like '{name}', which {package} does not have", code=_CODE)
        read.append(name)
        found = ChipFigures(found.file, found.chip, {**rest.figures, **found.figures}, rest.like)
    return found


def _packaged(package: str, name: str, subject: str = "chip") -> ChipFigures | None:
    file = files(package) / f"{name}.yaml"
    return read_chip_file(file.read_text(encoding="utf-8"), file.name, subject) if file.is_file() else None


def _figure(located: LocatedYaml, name: str, at: yaml.Node, node: yaml.Node) -> Figure:
    if not isinstance(node, yaml.MappingNode):
        located.fail(at, f"'{name}' is not a mapping with value, unit, kind and source")
    given: dict[str, yaml.Node] = {}
    for word, key, value in located.items(node):
        if word not in _FIELDS:
            located.fail(key, f"'{word}' is not part of a figure", help=f"a figure has {', '.join(_FIELDS)}")
        given[word] = value
    for word in ("value", "unit", "kind", "source"):
        if word not in given:
            located.fail(at, f"'{name}' has no {word}")
    value = _number(located, name, "value", given["value"])
    low = _number(located, name, "low", given["low"]) if "low" in given else value
    high = _number(located, name, "high", given["high"]) if "high" in given else value
    if not low <= value <= high:
        located.fail(given["value"], f"'{name}' is {value:g}, which is not between {low:g} and {high:g}")
    unit, kind = (_word(located, name, given[word], known) for word, known in (("unit", UNITS), ("kind", KINDS)))
    source = getattr(given["source"], "value", "")
    if not isinstance(source, str) or not source.strip():
        located.fail(given["source"], f"'{name}' does not say where it comes from")
    if low == 0 and unit not in _SLOWER_WHEN_MORE:
        located.fail(given["low"], f"the low of '{name}' is 0: the slowest of such chips would never end")
    if unit == "share" and high > 1:
        located.fail(given["value"], f"'{name}' is a share and above 1")
    return Figure(value, unit, low, high, kind, source)


def _word(located: LocatedYaml, name: str, node: yaml.Node, known: tuple[str, ...]) -> str:
    if getattr(node, "value", None) not in known:
        located.fail(node, f"'{name}': {getattr(node, 'value', '')!r} is none of {', '.join(known)}")
    return str(node.value)


def _number(located: LocatedYaml, name: str, word: str, node: yaml.Node) -> float:
    def absurd(why: str) -> NoReturn:
        located.fail(node, f"the {word} of '{name}' is {why}")

    if not isinstance(node, yaml.ScalarNode):
        absurd("not a number")
    try:
        value = float(node.value)
    except ValueError:
        absurd(f"{node.value!r}, not a number")
    if not math.isfinite(value) or value < 0:
        absurd(f"{node.value}: a number of a chip is finite and not negative")
    if value == 0 and word == "value":
        absurd("0, which no machine has")
    return value
