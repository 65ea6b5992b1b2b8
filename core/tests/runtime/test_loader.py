"""Plugins are found, judged and loaded apart: no plugin, however broken, takes another down."""

from __future__ import annotations

import sys
import time

import pytest

from tilefw.api.errors import PluginError, UsageError
from tilefw.runtime.plugins import entry_points, loader, probe
from tilefw.runtime.plugins.entry_points import candidates

HOOK = "TILEFW_API = (0, 1)\nfrom tilefw.api import hookimpl\n@hookimpl\ndef "


def status(registry, name):
    return next(p for p in registry.plugins() if p.name == name)


def test_a_good_plugin_is_ok_and_its_target_found_by_name_and_alias(install, registry):
    install("good")
    assert status(registry, "good").status == "ok"
    assert registry.find("good-x1").name == "good-x1"
    assert registry.find("goodx").name == "good-x1"


def test_naming_a_target_loads_one_plugin_only(install, registry):
    first, second = install("good"), install("other")
    registry.find("good-x1")
    assert first in sys.modules and second not in sys.modules


@pytest.mark.parametrize(
    "source, code, words",
    [
        ("TILEFW_API = (0, 1)\nraise RuntimeError('no\\nluck')", "TFW0503", "RuntimeError: no"),
        ("TILEFW_API = (0, 1)\nraise SystemExit(7)", "TFW0503", "SystemExit"),
        ("TILEFW_API = (0, 1)\nimport no_such_module_anywhere", "TFW0503", "no_such_module_anywhere"),
        ("x = 1", "TFW0503", "does not set `TILEFW_API"),
        ("TILEFW_API = tuple([0, 1])", "TFW0503", "not a literal pair"),
        ("TILEFW_API = (0, 1)\ndef broken(:", "TFW0503", "cannot be read as Python"),
        (HOOK + "tilefw_nonsense(): pass", "TFW0503", "tilefw_nonsense"),
        (HOOK + "tilefw_targets(): return 1 / 0", "TFW0503", "ZeroDivisionError"),
        (HOOK + "tilefw_targets(): return [3]", "TFW0507", "a int among"),
        (
            HOOK + "tilefw_targets():\n from tilefw.api import TargetInfo\n"
            " return [TargetInfo('bad-x1', '', '', '', 'a:B', frozenset(), frozenset({'int.mull.*'}))]",
            "TFW0507", "'int.mull.*' is not a capability",
        ),
        ("TILEFW_API = (9, 9)\nraise RuntimeError('must not run')", "TFW0504", "interface 9.9"),
        ("TILEFW_API = (0, 2)\nraise RuntimeError('must not run')", "TFW0504", "interface 0.2"),
    ],
)
def test_a_bad_plugin_has_a_status_and_its_target_a_clear_error(install, registry, source, code, words):
    install("bad", source)
    install("good")
    plugin = status(registry, "bad")
    assert plugin.status == ("incompatible" if code == "TFW0504" else "broken")
    assert plugin.code == code and words in (plugin.error or "")
    with pytest.raises(PluginError) as caught:
        registry.find("bad-x1")
    assert caught.value.exit_code == 4 and caught.value.code == code
    assert "TILEFW_DISABLE_PLUGINS=bad" in str(caught.value)
    assert registry.find("good-x1").name == "good-x1"


@pytest.mark.parametrize(
    "change, words",
    [
        ('"other-x1", "v", "c", "s", "m:B", frozenset()', "does not start with 'bad-'"),
        ('"bad-x1", "v", "c", "s", "nonsense", frozenset()', "is not 'module:Class'"),
        ('"bad-x1", "v", "c", "s", "m:B", frozenset({"fly"})', "provides has 'fly'"),
        ('"bad-x1", "v", "c", "s", "m:B", ["emit"]', "provides is not a frozenset"),
        ('"bad-x1", "v", "c", 3, "m:B", frozenset()', "summary is not a string"),
        ('"bad-x1", "v", "c", "s", "m:B", frozenset(), limits={"threads": "many"}', "limits['threads']"),
        ('"bad-x1", "v", "c", "s", "m:B", frozenset(), wants=frozenset({"luck"})', "wants has 'luck'"),
        ('"bad-x1", "v", "c", "s", "m:B", frozenset(), aliases=("bad-x1",)', "two of its targets are called"),
    ],
)
def test_malformed_target_facts_are_an_error_of_their_own(install, registry, change, words):
    install("bad", "from tilefw.api import TargetInfo, hookimpl\nTILEFW_API = (0, 1)\n@hookimpl\ndef tilefw_targets():\n"
                   f"    return [TargetInfo({change})]\n")
    plugin = status(registry, "bad")
    assert (plugin.status, plugin.code) == ("broken", "TFW0507") and words in (plugin.error or "")


def test_a_disabled_plugin_is_not_imported(install, registry, monkeypatch):
    module = install("good")
    monkeypatch.setenv("TILEFW_DISABLE_PLUGINS", "good")
    assert status(registry, "good").status == "disabled"
    with pytest.raises(PluginError, match="unset TILEFW_DISABLE_PLUGINS"):
        registry.find("good-x1")
    assert module not in sys.modules
    monkeypatch.delenv("TILEFW_DISABLE_PLUGINS")
    assert registry.find("good-x1").name == "good-x1", "the switch is read at each use"


def test_of_two_plugins_with_one_name_the_second_is_shadowed(install, registry):
    install("twin", distribution="a-twin")
    install("twin", distribution="b-twin")
    found = [(p.distribution, p.status) for p in registry.plugins() if p.name == "twin"]
    assert found == [("a-twin", "ok"), ("b-twin", "shadowed")]


def test_the_distribution_called_after_a_plugin_keeps_its_name(install, registry):
    install("twin", distribution="tilefw-twin")
    install("twin", distribution="a-twin")
    found = [(p.distribution, p.status) for p in registry.plugins() if p.name == "twin"]
    assert found == [("tilefw-twin", "ok"), ("a-twin", "shadowed")]


def test_an_alias_takes_nothing_from_the_target_of_that_name(install, registry):
    from tilefw.runtime.plugins.listings import targets

    install("owner")
    install("grab", "from tilefw.api import TargetInfo, hookimpl\nTILEFW_API = (0, 1)\n@hookimpl\ndef tilefw_targets():\n"
                    "    return [TargetInfo('grab-a', 'v', 'c', 's', 'm:B', frozenset(), aliases=('owner-x1',))]\n")
    assert {t.info.name: t.status for t in targets() if t.plugin in ("grab", "owner")} == {"grab-a": "shadowed", "owner-x1": "ok"}
    assert registry.find("owner-x1").plugin.name == "owner"


def test_collecting_passes_survives_plugins_that_end_the_process(install, registry):
    install("ender", "TILEFW_API = (0, 1)\nimport os\nos._exit(0)\n")
    install("maker", HOOK + "tilefw_passes():\n    return {'maker-pass': 'maker:Pass'}\n")
    assert registry.collect("tilefw_passes")["maker-pass"] == "maker:Pass"


def test_an_alias_that_is_taken_shadows_its_target_alone(install):
    from tilefw.runtime.plugins.listings import targets

    install("one", "from tilefw.api import TargetInfo, hookimpl\nTILEFW_API = (0, 1)\n@hookimpl\ndef tilefw_targets():\n"
                   "    return [TargetInfo('one-' + n, 'v', 'c', 's', 'm:B', frozenset(), aliases=a)"
                   " for n, a in (('a', ('reference',)), ('b', ()))]\n")
    assert {t.info.name: t.status for t in targets() if t.plugin == "one"} == {"one-a": "shadowed", "one-b": "ok"}


def test_probing_survives_plugins_that_hang_or_kill_their_process(install):
    install("hang", "TILEFW_API = (0, 1)\nimport time\ntime.sleep(600)")
    install("crash", "TILEFW_API = (0, 1)\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    install("noisy", "TILEFW_API = (0, 1)\nprint('{')\nimport os\nos.write(1, b'}')")
    install("good")
    asked = [c for c in candidates() if c.distribution.startswith("fake-")]
    start = time.monotonic()
    found = {p.name: p for p in probe.probe_all(asked, frozenset(), seconds=4)}
    assert time.monotonic() - start < 30
    assert {name: p.status for name, p in found.items()} == {"hang": "hung", "crash": "crashed", "noisy": "ok", "good": "ok"}
    assert "signal 9" in (found["crash"].error or "")


@pytest.mark.parametrize("source, status, words", [
    ("import time\ntime.sleep(600)", "hung", "it did not answer within 2 s"),
    ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "crashed", "its process was ended by signal 11"),
    ("import signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\ntime.sleep(600)", "hung", "it did not answer within 2 s"),
    ("import os\nos._exit(0)", "crashed", "its answer cannot be read"),
])
def test_naming_the_target_of_a_plugin_that_hangs_or_ends_its_process_is_an_error(
    install, registry, monkeypatch, source, status, words
):
    module = install("bad", f"TILEFW_API = (0, 1)\n{source}\n")
    monkeypatch.setenv("TILEFW_PLUGIN_SECONDS", "2")
    monkeypatch.setattr(probe, "START_SECONDS", 8.0)
    for _ in range(2):
        with pytest.raises(PluginError, match=f"target 'bad-x1' cannot be used: plugin 'bad' is {status}: {words}") as caught:
            registry.find("bad-x1")
        assert (caught.value.code, caught.value.exit_code) == ("TFW0508", 4)
        assert "TILEFW_DISABLE_PLUGINS=bad" in str(caught.value)
        monkeypatch.setattr(probe, "_start", lambda *_: pytest.fail("asked twice in one process"))
    assert module not in sys.modules


@pytest.mark.parametrize("cache", ["1", "0"])
def test_who_has_answered_once_is_not_asked_again_by_the_next_process(install, registry, monkeypatch, cache):
    monkeypatch.setenv("TILEFW_CACHE", cache)
    install("good")
    registry.find("good-x1")
    monkeypatch.setattr(probe, "_start", lambda *_: pytest.fail("a kept answer was asked for again"))
    sys.modules.pop(next(c.module for c in candidates() if c.name == "good"))
    assert loader.Registry().find("good-x1").name == "good-x1"


def test_nobody_is_asked_whose_version_says_enough(install, registry, monkeypatch):
    install("later", "TILEFW_API = (9, 9)")
    install("silent", "x = 1")
    monkeypatch.setattr(probe, "_start", lambda *_: pytest.fail("a child was started for nothing"))
    assert (status(registry, "later").status, status(registry, "silent").status) == ("incompatible", "broken")


def test_a_good_answer_is_kept_and_a_changed_module_is_asked_again(install, monkeypatch, tmp_path):
    module = install("good")
    asked = [c for c in candidates() if c.name == "good"]
    probe.probe_all(asked, frozenset())
    monkeypatch.setattr(probe, "_start", lambda *_: pytest.fail("a kept answer was asked for again"))
    assert probe.probe_all(asked, frozenset())[0].status == "ok"
    monkeypatch.undo()
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    (tmp_path / "site" / f"{module}.py").write_text("TILEFW_API = (9, 9)")
    assert probe.probe_all(asked, frozenset())[0].status == "incompatible"


def test_a_file_in_a_package_of_a_plugin_counts_and_one_beside_a_module_of_its_own_does_not(tmp_path):
    pages, notes = tmp_path / "pages", tmp_path / "notes"
    for folder in (pages, notes):
        folder.mkdir()
    (pages / "__init__.py").touch()
    assert list(probe._files(str(tmp_path))) == []
    (tmp_path / "__init__.py").touch()
    before = sorted(probe._files(str(tmp_path)))
    (notes / "new.py").touch()
    assert sorted(probe._files(str(tmp_path))) == before
    (pages / "new.py").touch()
    assert [path for path, _, _ in set(probe._files(str(tmp_path))) - set(before)] == [str(pages / "new.py")]


def test_a_damaged_kept_answer_is_asked_again(install, tmp_path):
    install("good")
    asked = [c for c in candidates() if c.name == "good"]
    probe.probe_all(asked, frozenset())
    (kept,) = (tmp_path / "cache" / "plugins").glob("*.json")
    for damage in (b"", b"{", b"[1]", b'{"name": "good"}', b"\xff" * 100, b"[" * 100_000):
        kept.write_bytes(damage)
        assert probe.probe_all(asked, frozenset())[0].status == "ok"


def test_strict_plugins_makes_a_broken_one_fatal(install, registry, monkeypatch):
    install("bad", "TILEFW_API = (0, 1)\nraise ValueError('no')")
    registry.plugins()
    monkeypatch.setenv("TILEFW_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match="TILEFW_STRICT_PLUGINS"):
        registry.plugins()


def test_an_unknown_target_names_the_nearest_one(install, registry):
    install("good")
    with pytest.raises(UsageError, match="did you mean 'good-x1'"):
        registry.find("good-x2")
    with pytest.raises(UsageError, match="did you mean 'reference'") as caught:
        registry.find("refrence")
    assert caught.value.exit_code == 2


def test_a_backend_that_does_not_load_blames_its_plugin(install, registry):
    install("good")
    with pytest.raises(PluginError, match="Backend") as caught:
        _ = registry.find("good-x1").backend
    assert caught.value.code == "TFW0509" and "fake-good 1.2" in str(caught.value)


def test_a_broken_plugin_does_not_disturb_a_collected_hook(install, registry):
    install("bad", "from tilefw.api import hookimpl\nTILEFW_API = (0, 1)\n@hookimpl\ndef tilefw_passes(): raise OSError('disk')")
    install("good", "from tilefw.api import hookimpl\nTILEFW_API = (0, 1)\n@hookimpl\ndef tilefw_passes(): return {'p': 'm:P'}")
    assert registry.collect("tilefw_passes")["p"] == "m:P"


def test_the_version_is_read_without_importing_the_package(tmp_path, monkeypatch):
    package = tmp_path / "never_imported"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "plugin.py").write_text("TILEFW_API: tuple[int, int] = (3, 4)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert entry_points.stated_version("never_imported.plugin") == (3, 4)
