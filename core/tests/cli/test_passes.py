"""`tilefw passes` lists every step of a compilation, and `tilefw opt --target` runs each of them alone on text of its level."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from tilefw.passes.listing import by_name
from tilefw.passes.manager import PassManager
from tilefw.passes.opt import opt, printed
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.plugins.loader import registry
from tilefw.simt.lane import Lane
from tilefw.tile.text.module import parse

TARGETS = sorted(info.name for info in registry().infos())
LOCATION = re.compile(r' // "[^"]*":\d+:\d+$', re.MULTILINE)  # of what was read: of the text, or of the text before it
LEVELS = ["tile", "lane", "machine", "program"]


@pytest.mark.parametrize("target", TARGETS)
def test_the_steps_go_down_from_tile_ir_to_bytes(tilefw, target: str) -> None:
    code, out, _ = tilefw("passes", "--target", target, "--json")
    shown = json.loads(out)
    assert code == 0 and (shown["schema"], shown["target"]) == ("tilefw.passes/1", target)
    levels = [LEVELS.index(step["level"]) for step in shown["passes"]]
    assert levels == sorted(levels) and levels[0] == 0 and levels[-1] == len(LEVELS) - 1
    assert all(step["summary"].endswith(".") and step["opt"] == (step["level"] != "program") for step in shown["passes"])
    code, table, _ = tilefw("passes", "--target", target)
    assert code == 0 and [line.split()[1] for line in table.splitlines()[1:]] == [step["name"] for step in shown["passes"]]


@pytest.mark.parametrize("kernel", ["matmul", "softmax"])
@pytest.mark.parametrize("target", TARGETS)
def test_passes_that_run_one_by_one_on_text_give_what_they_give_together(tilefw, target: str, kernel: str) -> None:
    from tilefw.cli.passes import target_steps

    text = tilefw("compile", kernel, "--emit", "tile")[1]
    _, listed = target_steps(target)
    passes = [step.made for step in listed if step.made is not None]
    together = parse(text, kernel, [Lane])
    PassManager(passes).run(together)
    for each in passes:
        text = opt(text, each.name, target_passes={each.name: each})
    assert LOCATION.sub("", text) == LOCATION.sub("", printed(together))
    assert set(by_name(listed)) == {each.name for each in passes}


def test_every_pass_of_the_pipeline_has_its_name_in_opt_without_a_target() -> None:
    text = "func.func @f() {\n  func.return\n}\n"
    named = [each.name for each in default_passes()]
    assert len(named) > 5 and all(opt(text, name) == opt(text, "") for name in named)


def test_a_pass_of_a_target_is_named_on_the_command_line(tilefw, tmp_path) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(tilefw("compile", "vector_add", "--emit", "tile")[1], encoding="utf-8")
    target = next(t for t in TARGETS if by_name_of(t).keys() >= {"lane-to-machine", "eliminate-dead"})
    lowered = "tile-to-lane,place-shared,insert-barriers,lane-to-machine"
    code, selected, err = tilefw("opt", str(file), "--target", target, "-p", lowered)
    assert code == 0 and "machine.func" in selected, err
    (tmp_path / "m.mlir").write_text(selected, encoding="utf-8")
    code, cleaned, err = tilefw("opt", str(tmp_path / "m.mlir"), "--target", target, "-p", "eliminate-dead")
    assert code == 0 and cleaned.count("\n") <= selected.count("\n"), err
    code, _, err = tilefw("opt", str(file), "--target", target, "-p", "eliminate-ded")
    assert code == 2 and "did you mean 'eliminate-dead'" in err
    code, _, err = tilefw("opt", str(file), "--target", target, "-p", "eliminate-dead{table=1}")
    assert code == 2 and "takes its options from the target" in err
    assert tilefw("opt", str(file), "--target", "nowhere", "-p", "cse")[0] == 2


def test_a_bug_of_a_pass_leaves_a_reproducer(tilefw, tmp_path, monkeypatch) -> None:
    from tilefw.passes.cse import CsePass

    def fail(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(CsePass, "apply", fail)
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
    file = tmp_path / "a.mlir"
    file.write_text("builtin.module {\n}\n")
    code, _, err = tilefw("opt", str(file), "-p", "cse")
    assert code == 3 and "ValueError: a bug" in err
    path = re.search(r"reproducer: (\S+\.mlir)", err)
    assert path is not None
    text = pathlib.Path(path[1]).read_text(encoding="utf-8")
    assert "// pipeline: cse" in text and "ValueError: a bug" in text and text.endswith("builtin.module {\n}\n")


def by_name_of(target: str) -> dict:
    from tilefw.cli.passes import target_steps

    return by_name(target_steps(target)[1])
