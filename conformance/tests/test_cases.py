"""The case format: ids are stable, lists multiply, and each mistake in a file is told with its line."""

from __future__ import annotations

import pytest

from tilefw.api.errors import CodeError
from tilefw.kernels.index import KERNELS
from tilefw_conformance.case import LEVELS
from tilefw_conformance.case_files import bundled, collect, schema
from tilefw_conformance.document import KEYWORDS, parse

GOOD = """\
group: vector_add
kernel: vector_add
since: "0.1"
notes:
  tail: {bugType: MASK, description: a tile that is not full, effect: elements are lost}
cases:
  - id: ragged
    level: core
    flags: [tail]
    params: {n: [1, 33], dtype: [fp32, fp16], block: 64}
    seeds: [1, 2]
"""


def test_lists_multiply_into_stable_ids() -> None:
    cases = collect([("a.yaml", GOOD)])
    assert [case.id.removeprefix("vector_add/ragged/") for case in cases][:3] == [
        "n=1,dtype=fp32,seed=1", "n=1,dtype=fp32,seed=2", "n=1,dtype=fp16,seed=1",
    ]
    assert len(cases) == 8
    assert cases[0].parameters["block"] == 64 and cases[0].parameters["num_warps"] == 4


def test_the_bundled_cases_serve_every_kernel_at_core() -> None:
    cases = bundled()
    assert {case.kernel for case in cases if case.level == "core"} == set(KERNELS)
    assert {case.level for case in cases} <= set(LEVELS)
    assert len({case.id for case in cases}) == len(cases)
    warps = {case.parameters["num_warps"] for case in cases}
    assert {1, 2, 4, 8} <= warps


@pytest.mark.parametrize(("old", "new", "line", "said"), [
    ("level: core", "level: cores", 8, "did you mean 'core'"),
    ("level: core", "levl: core", 7, "needs 'level'"),
    ("kernel: vector_add", "kernel: vectoradd", 2, "no kernel is called"),
    ("flags: [tail]", "flags: [tails]", 9, "has no note"),
    ("flags: [tail]", "flags: []", 9, "is empty"),
    ("dtype: [fp32, fp16]", "dtype: [fp32, fp33]", 10, "cannot be 'fp33'"),
    ("block: 64", "blok: 64", 10, "no parameter 'blok'"),
    ("seeds: [1, 2]", "seeds: [1, 1]", 11, "twice"),
    ("seeds: [1, 2]", "seeds: [-1]", 11, "at least 0"),
    ("seeds: [1, 2]", "stages: [emit]", 11, "leading part"),
    ("    flags: [tail]\n", "    flags: [tail]\n    flags: [tail]\n", 10, "twice"),
    ('since: "0.1"', "since: 0.1", 3, "string"),
    ("params: {n: [1, 33]", "params: {n: &x [1, 33]", 10, "anchors"),
    ("params: {n: [1, 33]", "params: {n: !!python/name:os [1]", 10, ""),
    ("block: 64}", "block: 64", 11, "not YAML"),
    ("bugType: MASK, ", "", 5, "needs 'bugType'"),
    ("    flags: [tail]\n", "    flags: [tail]\n    requires: [float.ad.fp32]\n", 10, "did you mean 'float.add.fp32'"),
    ("notes:\n", "requires: [cf.dynamics]\nnotes:\n", 4, "did you mean 'cf.dynamic'"),
])
def test_a_mistake_is_told_with_its_line(old: str, new: str, line: int, said: str) -> None:
    assert old in GOOD
    with pytest.raises(CodeError) as caught:
        collect([("a.yaml", GOOD.replace(old, new, 1))])
    assert caught.value.place is not None
    assert (caught.value.place.line, said in str(caught.value)) == (line, True), str(caught.value)


@pytest.mark.parametrize("text", ["", "- 1", "a: [", "{" * 2000, "\x00", "a: &a [*a]", "? [x]\n: 1"])
def test_no_text_gets_through_as_anything_but_an_error(text: str) -> None:
    with pytest.raises(CodeError):
        collect([("a.yaml", text)])


def test_an_id_is_there_once() -> None:
    with pytest.raises(CodeError, match="twice"):
        collect([("a.yaml", GOOD), ("b.yaml", GOOD)])


def test_the_schema_uses_only_what_the_checker_serves() -> None:
    def keywords(node: object) -> set[str]:
        if not isinstance(node, dict):
            return set()
        found = set(node)
        for key in ("properties", "$defs"):
            found |= {k for child in node.get(key, {}).values() for k in keywords(child)}
        for key in ("items", "additionalProperties", "propertyNames"):
            found |= keywords(node.get(key))
        return found | {k for child in node.get("anyOf", []) for k in keywords(child)}

    assert keywords(schema()) <= KEYWORDS


def test_places_point_into_the_text() -> None:
    document = parse(GOOD, "a.yaml")
    assert document.place(("cases", 0, "params", "n")).line == 10
    assert document.place(("cases", 0, "nothing")).line == 7
