"""Imports go one way, plugins see `tilefw.api` alone, core names no vendor, and light things stay light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest
from tree import CONFORMANCE, CORE, PLUGINS, docstrings, imports, shown, sources, tree

# Each room may import those of a lower rank at module level; rooms of one rank are told apart below.
RANKS = {
    "api": 0, "tile": 1, "passes": 2, "language": 2, "frontend": 3, "simt": 4, "machine": 4, "sim": 5,
    "runtime": 7, "kernels": 8, "testing": 8, "scaffold": 8, "cli": 9,
}
# The facades of `api` show higher rooms to plugins: they are the only modules of `api` that import them.
FACADES = {
    "ir": {"tile", "passes"}, "simt": {"simt", "tile", "machine"}, "machine": {"machine"}, "sim": {"sim"},
    "machine_backend": {"machine"}, "expand": {"simt"},
    "kernels": {"kernels", "language", "runtime"},
}
VENDORS = re.compile(
    r"nvidia|cuda|ptx|\bamd\b|rocm|\bhip\b|hsaco|cdna|gfx\d|warpgroup|wgmma|cutlass|\bsm_?\d\d|cubin|sass\b", re.IGNORECASE
)
# A protocol between array libraries, named so by its authors; what else core must say is listed word by word.
VENDOR_WORDS = {"__cuda_array_interface__"}


def room(path):
    parts = path.relative_to(CORE).parts
    return parts[0] if len(parts) > 1 else None


@pytest.mark.parametrize("path", sources(CORE), ids=shown)
def test_imports_go_one_way(path):
    mine = room(path)
    if mine is None:  # tilefw/__init__.py and __main__.py look at everything, lazily
        return
    allowed = FACADES.get(path.stem, set()) if mine == "api" else set()
    for name in imports(path, at_import=True):
        parts = name.split(".")
        if parts[0] != "tilefw" or len(parts) < 2 or parts[1] not in RANKS:
            continue
        other = parts[1]
        if other == mine or other in allowed:
            continue
        assert RANKS[other] <= RANKS[mine], f"{shown(path)} of room {mine} imports {name}"
        facade = len(parts) > 2 and other == "api" and parts[2] in FACADES
        assert not facade or mine in ("testing", "kernels"), f"{name} is a facade for plugins; import the room itself"


@pytest.mark.parametrize("path", sources(*PLUGINS.values()), ids=shown)
def test_a_plugin_imports_the_api_alone(path):
    own = path.relative_to(path.parents[len(path.parents) - 1]).parts
    package = next(part for part in own if part.startswith("tilefw_"))
    for name in imports(path):
        top = name.split(".")[0]
        assert top != "xdsl", f"{name}: xDSL comes through tilefw.api.ir"
        assert not top.startswith("tilefw_") or top == package, f"{name}: no plugin depends on another"
        assert top != "tilefw" or name == "tilefw" or name.startswith("tilefw.api"), f"{name} is not of tilefw.api"
        assert name != "tilefw", "a plugin imports tilefw.api"


@pytest.mark.parametrize("path", sources(CONFORMANCE), ids=shown)
def test_the_suite_knows_no_plugin_and_no_xdsl(path):
    for name in imports(path):
        assert name.split(".")[0] not in {"xdsl", *(f"tilefw_{vendor}" for vendor in PLUGINS)}, name


@pytest.mark.parametrize("path", sources(CORE, CONFORMANCE), ids=shown)
def test_core_names_no_vendor(path):
    module = tree(path)
    documentation = docstrings(module)
    for node in ast.walk(module):
        for word in _words(node, documentation):
            left = word
            for known in VENDOR_WORDS:
                left = left.replace(known, "")
            found = VENDORS.search(left)
            assert found is None, f"line {getattr(node, 'lineno', '?')}: {found and found[0]!r} in {word[:60]!r}"


def _words(node, documentation):
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
        yield node.value
    for field in ("id", "attr", "name", "arg", "asname", "module"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield value


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
        ("import tilefw.api.sim", {"numpy", "xdsl", "tilefw.sim.engine.launch", "tilefw.sim.algebra.primitives"}),
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
