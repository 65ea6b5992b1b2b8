"""Plugins without a distribution, hooks that are told, observers, and two plugins that claim one target."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tilefw
import tilefw.language as tl
from tilefw.cli.main import main
from tilefw.runtime.plugins.loader import Registry

SOURCE = '''
from tilefw.api import TargetInfo, hookimpl
TILEFW_API = (0, 1)
@hookimpl
def tilefw_targets():
    return [TargetInfo("{name}-x1", "{name}", "x1", "a chip", "{module}:Backend", frozenset({"emit"}))]
'''
OBSERVER = '''
from tilefw.api import hookimpl
TILEFW_API = (0, 1)
seen = []
@hookimpl
def tilefw_after_pass(target, pass_name, seconds):
    seen.append((target, pass_name))
    if BROKEN:
        raise RuntimeError("no more")
'''


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of plugins, in which the test stands; what is imported from it is forgotten."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("TILEFW_PLUGINS", "TILEFW_PLUGIN_DIR"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def write(folder: Path, module: str, name: str, source: str = SOURCE) -> None:
    (folder / f"{module}.py").write_text(source.replace("{name}", name).replace("{module}", module))


def test_a_module_is_a_plugin_when_it_is_named(local, registry, monkeypatch) -> None:
    write(local, "tilefw_single", "single")
    assert "single" not in {p.name for p in registry.plugins()}
    monkeypatch.setenv("TILEFW_PLUGINS", "tilefw_single")
    (plugin,) = [p for p in registry.plugins() if p.name == "single"]
    assert (plugin.status, plugin.distribution) == ("ok", "TILEFW_PLUGINS")
    assert registry.find("single-x1").info.vendor == "single"


def test_a_module_of_any_name_is_given_one(local, registry, monkeypatch) -> None:
    write(local, "whatever", "fine")
    monkeypatch.setenv("TILEFW_PLUGINS", "fine=whatever")
    assert registry.find("fine-x1").plugin.module == "whatever"


def test_every_file_of_a_folder_is_a_plugin_and_a_bad_one_takes_no_other_down(local, registry, monkeypatch, tmp_path) -> None:
    for name in ("one", "two"):
        write(local, f"folder_{name}", f"folder-{name}")
    write(local, "folder_bad", "bad", "TILEFW_API = (0, 1)\nraise OSError('disk')")
    (local / "_private.py").write_text("raise AssertionError")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEFW_PLUGIN_DIR", str(local))
    found = {p.name: p.status for p in registry.plugins() if p.name.startswith(("folder", "_"))}
    assert found == {"folder-one": "ok", "folder-two": "ok", "folder-bad": "broken"}
    assert registry.find("folder-two-x1").name == "folder-two-x1"


def test_what_is_named_comes_before_what_is_installed(install, local, registry, monkeypatch) -> None:
    install("twin", distribution="tilefw-twin")
    write(local, "twin", "twin")
    monkeypatch.setenv("TILEFW_PLUGINS", "twin")
    found = [(p.distribution, p.status) for p in registry.plugins() if p.name == "twin"]
    assert found == [("TILEFW_PLUGINS", "ok"), ("tilefw-twin", "shadowed")]


def test_a_module_that_is_not_there_is_broken(local, registry, monkeypatch) -> None:
    monkeypatch.setenv("TILEFW_PLUGINS", "no_such_plugin_module")
    (plugin,) = [p for p in registry.plugins() if p.distribution == "TILEFW_PLUGINS"]
    assert plugin.status == "broken" and "cannot be found" in plugin.error


def test_the_options_of_the_command_line_hold_for_one_command(local, capsys) -> None:
    write(local, "tilefw_single", "single")
    assert main(["-p", "tilefw_single", "targets"]) == 0
    assert "single-x1" in capsys.readouterr().out
    assert main(["--plugin=tilefw_single", "plugins", "--disable-plugin", "single"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("single")]
    assert "disabled" in line
    assert main(["targets"]) == 0
    assert "single-x1" not in capsys.readouterr().out
    for wrong in (["-p"], ["targets", "--disable-plugin"], ["-p", "--json", "targets"]):
        assert main(wrong) == 2
        assert "TFW0911" in capsys.readouterr().err


def test_of_two_plugins_that_claim_a_target_one_has_it_wherever_one_looks(install, registry) -> None:
    """The one with the longer name: naming the target asks it first."""
    from tilefw.runtime.plugins.listings import targets

    claim = SOURCE.replace('"{name}-x1"', '"claim-more-x1"')
    install("claim", claim)
    install("claim-more", claim)
    assert registry.find("claim-more-x1").plugin.name == "claim-more"
    assert {t.plugin: t.status for t in targets() if t.info.name == "claim-more-x1"} == {"claim": "shadowed", "claim-more": "ok"}
    assert [i.vendor for i in registry.infos() if i.name == "claim-more-x1"] == ["claim-more"]


def test_calls_of_hooks_are_told_where_they_are_asked_for(install, registry, monkeypatch, capsys) -> None:
    install("told")
    monkeypatch.setenv("TILEFW_TRACE_PLUGINS", "1")
    registry.find("told-x1")
    said = capsys.readouterr().err
    assert "tilefw hook: told: tilefw_targets()" in said and "tilefw_targets -> [" in said and "told-x1" in said
    monkeypatch.delenv("TILEFW_TRACE_PLUGINS")
    Registry().find("told-x1")
    assert capsys.readouterr().err == ""


@tilefw.jit
def doubled(x_ptr, N: tl.constexpr):
    at = x_ptr + tl.arange(0, N)
    tl.store(at, tl.load(at) * 2)


@pytest.mark.parametrize("broken", [False, True])
def test_an_observer_sees_the_passes_and_one_that_raises_is_told_once(broken, local, monkeypatch, recwarn) -> None:
    from tilefw.runtime.plugins import loader

    monkeypatch.setattr(loader, "_registry", Registry())
    module = f"watching_{broken}".lower()
    write(local, module, "watching", OBSERVER.replace("BROKEN", str(broken)))
    monkeypatch.setenv("TILEFW_PLUGINS", module)
    monkeypatch.setenv("TILEFW_CACHE", "0")
    tilefw.compile(doubled, target="reference", signature={"x_ptr": "*fp32"}, constexprs={"N": 16})
    seen = sys.modules[module].seen
    told = [str(w.message) for w in recwarn if "tilefw_after_pass" in str(w.message)]
    if broken:
        assert len(seen) == 1 and len(told) == 1 and "no more" in told[0] and "TILEFW_DISABLE_PLUGINS" in told[0]
    else:
        assert len(seen) > 3 and {target for target, _ in seen} == {"reference"} and not told


def test_a_plugin_that_fills_memory_is_no_end_of_the_machine(install) -> None:
    from tilefw.runtime.plugins import probe
    from tilefw.runtime.plugins.entry_points import candidates

    install("greedy", "TILEFW_API = (0, 1)\nheld = bytearray(64 << 30)\n")
    (found,) = probe.probe_all([c for c in candidates() if c.name == "greedy"], frozenset())
    assert found.status == "broken" and "MemoryError" in (found.error or "")
