"""Imports go one way, plugins see `tilefw.api` alone, core names no vendor, and light things stay light."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from every_file import every_file
from tree import CONFORMANCE, CORE, FRONTENDS, PLUGINS, imports, sources

# Each room may import those of a lower rank at module level; rooms of one rank are told apart below.
RANKS = {
    "api": 0, "tile": 1, "passes": 2, "language": 2, "frontend": 3, "importers": 4, "simt": 4, "loops": 5, "machine": 4, "sim": 5,
    "hardware": 5, "timing": 6, "runtime": 7, "debug": 8, "distributed": 8, "graph": 8, "kernels": 8, "testing": 8, "scaffold": 8,
    "tools": 8, "triton": 8, "cli": 9,
}
# The facades of `api` show higher rooms to plugins: they are the only modules of `api` that import them.
FACADES = {
    "ir": {"tile", "passes"}, "simt": {"simt", "tile", "machine"}, "machine": {"machine"}, "sim": {"sim"}, "hardware": {"hardware"},
    "machine_backend": {"machine"}, "expand": {"simt"}, "tile": {"loops", "passes"},
    "kernels": {"kernels", "language", "runtime"}, "timing": {"timing"},
}
VENDORS = re.compile(
    r"nvidia|cuda|ptx|\bamd\b|rocm|\bhip\b|hsaco|cdna|gfx\d|warpgroup|wgmma|cutlass|\bsm_?\d\d|cubin|sass\b|hopper|ampere"
    r"|blackwell|\b[ah]100\b|\bmi300",
    re.IGNORECASE,
)
# Protocols between array libraries, and what they call streams, named so by their authors; what else core must say is listed word
# by word.
VENDOR_WORDS = {"__cuda_array_interface__", "__cuda_stream__", "cuda_stream", "use_cuda_graph"}
# The room that takes Triton's place speaks as Triton and PyTorch do, which call GPUs, whoever made them, by one vendor's words.
TRITON_WORDS = {"cuda", "CUDA", "hip", "PTXAS", "ptxas", "nvidia", "amd"}


def room(path):
    parts = path.relative_to(CORE).parts
    return parts[0] if len(parts) > 1 else None


@every_file(sources(CORE))
def test_imports_go_one_way(path):
    mine = room(path)
    if mine is None:  # tilefw/__init__.py and __main__.py look at everything, lazily
        return
    allowed = FACADES.get(path.stem, set()) if mine == "api" else set()
    parts = [name.split(".") for name in imports(path, at_import=True)]
    others = [p for p in parts if p[0] == "tilefw" and len(p) > 1 and p[1] in RANKS and p[1] not in (mine, *allowed)]
    assert [".".join(p) for p in others if RANKS[p[1]] > RANKS[mine]] == [], f"higher than {mine}"
    facades = [".".join(p) for p in others if len(p) > 2 and p[1] == "api" and p[2] in FACADES]
    assert facades == [] or mine in ("testing", "kernels"), "a facade is for plugins; import the room itself"


@every_file(sources(*PLUGINS.values()))
def test_a_plugin_imports_the_api_alone(path):
    own = path.relative_to(path.parents[len(path.parents) - 1]).parts
    package = next(part for part in own if part.startswith("tilefw_"))
    names = [(name, name.split(".")[0]) for name in imports(path)]
    assert [name for name, top in names if top == "xdsl"] == [], "xDSL comes through tilefw.api.ir"
    assert [name for name, top in names if top.startswith("tilefw_") and top != package] == [], "no plugin depends on another"
    assert [name for name, top in names if top == "tilefw" and not name.startswith("tilefw.api")] == [], "a plugin sees tilefw.api"


@every_file(sources(*FRONTENDS))
def test_a_reader_of_models_knows_no_plugin_and_no_xdsl(path):
    banned = {"xdsl", "tilefw_conformance", *(f"tilefw_{vendor}" for vendor in PLUGINS)}
    assert [name for name in imports(path) if name.split(".")[0] in banned] == []


@every_file(sources(CONFORMANCE))
def test_the_suite_knows_no_plugin_and_no_xdsl(path):
    banned = {"xdsl", *(f"tilefw_{vendor}" for vendor in PLUGINS)}
    assert [name for name in imports(path) if name.split(".")[0] in banned] == []


@every_file(sources(CORE, CONFORMANCE, *FRONTENDS))
def test_core_names_no_vendor(path):
    """In code, comments and docstrings."""
    words = VENDOR_WORDS | TRITON_WORDS if path.is_relative_to(CORE / "triton") else VENDOR_WORDS
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    named = [(number, found[0]) for number, line in lines if (found := VENDORS.search(_without_known(line, words)))]
    assert named == []


def _without_known(line, words):
    for word in words:
        line = line.replace(word, "")
    return line


def loaded_by(statement):
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(out.stdout.split())


@pytest.mark.parametrize(
    "statement, banned",
    [
        ("import tilefw", {"numpy", "xdsl", "pluggy", "yaml", "dataclasses"}),
        ("import tilefw.api", {"numpy", "xdsl", "pluggy", "yaml", "ml_dtypes"}),
        ("import tilefw.runtime.jit", {"numpy", "xdsl", "pluggy", "yaml"}),
        ("import tilefw.api.sim", {"numpy", "xdsl", "tilefw.sim.engine.run", "tilefw.sim.algebra.primitives"}),
        ("from tilefw.cli.main import main; main(['--help'])", {"numpy", "xdsl", "pluggy", "yaml", "argparse"}),
        ("from tilefw.cli.main import main; main(['kernels'])", {"numpy", "xdsl", "pluggy", "yaml"}),
        ("from tilefw.cli.main import main; main(['explain', 'TFW0501'])", {"numpy", "xdsl", "pluggy", "yaml"}),
    ],
)
def test_light_things_stay_light(statement, banned):
    found = loaded_by(statement)
    assert not {name for name in found if name in banned or name.partition(".")[0] in banned & {"numpy", "xdsl"}}


@pytest.mark.parametrize("vendor", PLUGINS)
def test_a_hook_module_is_light(vendor):
    found = loaded_by(f"sys.path.insert(0, {str(PLUGINS[vendor].parent)!r}); import tilefw_{vendor}.plugin")
    assert not {"numpy", "xdsl", "yaml", "ml_dtypes"} & {name.partition(".")[0] for name in found}
