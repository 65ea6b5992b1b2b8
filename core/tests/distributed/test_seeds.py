"""The campaign of seeds: a run that is wrong, reported or failed is counted as what it is; a campaign stops and goes on."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.index import COLLECTIVES

sys.path.append(str(Path(__file__).parents[3] / "bench"))  # the last: names of its files are those of other tests' too
nodes = pytest.importorskip("nodes", reason="bench/ is beside the sources only")
import nodes_page  # noqa: E402

BLOCK = 256


@tilefw.jit
def pushed(x_ptr, out_ptr, flags_ptr, n, WAITS: tl.constexpr, WRITES: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    peer = 1 - tld.rank()
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + tld.rank() * n + at, x, mask=at < n)
    if WRITES:
        tld.store(out_ptr + tld.rank() * n + at, x, peer, mask=at < n)
    tld.signal(flags_ptr, peer)
    if WAITS:
        tld.wait(flags_ptr)
    tl.store(x_ptr + at, tl.load(out_ptr + peer * n + at, mask=at < n), mask=at < n)


def gather(waits=True, writes=True, refused=False):
    """An all_gather of two ranks that lacks what it is told to."""

    def run(node, x, form, **launch):
        if refused:
            raise tilefw.LaunchError("refused", code="TFW0872")
        n = x[0].size
        out, flags = node.zeros((2 * n,), x[0].dtype), node.zeros((1,), "int32")
        node.launch(pushed, (1,), x, out, flags, n, WAITS=waits, WRITES=writes, BLOCK=BLOCK, **launch)
        return out

    return run


@pytest.mark.parametrize("target", nodes.TARGETS)
@pytest.mark.parametrize(("lacks", "outcome", "said"), [
    ({}, "right", ""),
    ({"waits": False}, "reported", "TFW0804"),
    ({"writes": False}, "wrong", "on the ranks [0, 1]"),
    ({"refused": True}, "failed", "TFW0872"),
])
def test_what_a_kernel_lacks_is_told_apart(monkeypatch, target, lacks, outcome, said):
    monkeypatch.setattr(nodes, "COLLECTIVES", {"all_gather": replace(COLLECTIVES["all_gather"], run=gather(**lacks))})
    monkeypatch.setattr(nodes, "drawn", lambda one, *_: nodes.Drawn(one.draw(np.random.default_rng(0), 2, 100, "float32"), {}))
    run = nodes.seed_run(nodes.NodeCell("all_gather", "push", 2, target), 3, "of now")
    assert run.outcome == outcome, run.detail
    assert said in run.detail


def test_a_campaign_goes_on_behind_what_is_done_and_begins_nothing_when_the_time_is_up():
    cell = nodes.NodeCell("all_gather", "push", 2, "nvidia-sm80")
    done = [nodes.SeedRun("all_gather", "push", 2, "nvidia-sm80", seed, (9,), "float32", "right", "", 1.0, "") for seed in (1, 3)]
    assert list(nodes.campaign([cell], 3, 1, 0.0, done, "")) == []
    assert [(run.seed, run.outcome) for run in nodes.campaign([cell], 3, 1, 60.0, done, "")] == [(2, "right")]


def test_every_form_of_every_kernel_is_a_row_of_the_page():
    every = nodes.cells(COLLECTIVES, nodes.RANKS, nodes.TARGETS)
    cell = every[0]
    bad = nodes.SeedRun(cell.kernel, cell.form, cell.ranks, cell.target, 7, (9,), "float32", "wrong", "beyond", 1.0, "abc")
    page = nodes_page.told([bad], every, 200, "all")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    forms = [f"| {name} | {form} |" for name, one in COLLECTIVES.items() for form in one.forms]
    assert [sum(row.startswith(form) for row in rows) for form in forms] == [2, *[1] * (len(forms) - 1)]
    assert "1 runs" in page and "1 wrong" in page and "| 7 | wrong | beyond |" in page
