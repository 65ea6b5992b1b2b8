"""Settings: argument over context over environment over default, read at each use."""

from __future__ import annotations

import threading

import pytest

from tilefw.api.device import ALL_CHECKS, DEFAULT_CHECKS
from tilefw.api.errors import UsageError
from tilefw.runtime import config


def test_the_order_of_precedence(monkeypatch):
    assert config.resolve().target == "reference"
    monkeypatch.setenv("TILEFW_TARGET", "from-environment")
    assert config.resolve().target == "from-environment"
    with config.target("outer", budget=5):
        assert config.resolve().target == "outer"
        with config.target("inner", checks="all"):
            resolved = config.resolve()
            assert (resolved.target, resolved.budget, resolved.checks) == ("inner", 5, ALL_CHECKS)
            assert config.resolve(config.settings("argument")).target == "argument"
        assert config.resolve().checks == DEFAULT_CHECKS
    assert config.resolve().target == "from-environment"


def test_a_context_ends_with_its_block_even_on_an_error():
    with pytest.raises(RuntimeError), config.target("inner"):
        raise RuntimeError
    assert config.resolve().target == "reference"


def test_what_a_program_is_run_with_holds_in_its_threads_and_a_target_set_there_is_over_it():
    seen = []

    def work():
        seen.append(config.resolve().target)
        with config.target("inner"):
            seen.append((config.resolve().target, config.resolve().budget))

    with config.in_every_thread(config.settings("outer", budget=5)):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == ["outer", ("inner", 5)] and config.resolve().target == "reference"


def test_set_target_holds_in_this_thread_alone():
    seen = []

    def work():
        config.set_target("mine")
        seen.append(config.resolve().target)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["mine"] and config.resolve().target == "reference"


def test_set_target_none_forgets_the_target():
    try:
        config.set_target("x-1")
        config.set_target(None)
        assert config.resolve().target == "reference"
    finally:
        config.set_target(None)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"executor": "hardware"}, "executor"),
        ({"checks": "bound"}, "did you mean 'bounds'"),
        ({"checks": ["races", 3]}, "there is no check"),
        ({"checks": True}, "checks are names, not True"),
        ({"budget": 0}, "budget"),
        ({"budget": True}, "budget"),
        ({"numerics": "iee"}, "did you mean 'ieee'"),
        ({"seed": -1}, "seed"),
        ({"target": 80}, "named by a string"),
    ],
)
def test_words_and_numbers_that_do_not_exist_are_usage_errors(given, words):
    with pytest.raises(UsageError, match=words):
        config.settings(**given)


def test_checks_by_words():
    assert config.parse_checks("none") == frozenset()
    assert config.parse_checks("bounds, races") == {"bounds", "races"}
    assert config.parse_checks(["pending"]) == {"pending"}


def test_the_cache_can_be_off(monkeypatch):
    assert config.cache_directory() is not None
    monkeypatch.setenv("TILEFW_CACHE", "0")
    assert config.cache_directory() is None and not config.cache_enabled()


def test_the_time_for_a_plugin_is_a_positive_number(monkeypatch):
    monkeypatch.delenv("TILEFW_PLUGIN_SECONDS", raising=False)
    assert config.plugin_seconds() == 10
    monkeypatch.setenv("TILEFW_PLUGIN_SECONDS", "2.5")
    assert config.plugin_seconds() == 2.5
    for word in ("0", "-1", "soon", "inf", "nan"):
        monkeypatch.setenv("TILEFW_PLUGIN_SECONDS", word)
        with pytest.raises(UsageError, match=f"not '{word}'"):
            config.plugin_seconds()


@pytest.mark.parametrize("switch, name", [
    (config.strict_plugins, "TILEFW_STRICT_PLUGINS"),
    (config.trace_plugins, "TILEFW_TRACE_PLUGINS"),
    (config.verify_code, "TILEFW_VERIFY"),
])
def test_a_switch_takes_the_usual_words(monkeypatch, switch, name):
    monkeypatch.delenv(name, raising=False)
    assert not switch()
    for word, on in (("1", True), ("On", True), ("yes", True), ("TRUE", True), ("0", False), ("off", False), ("", False)):
        monkeypatch.setenv(name, word)
        assert switch() == on, word


PREFERRED = """
TILEFW_API = (0, 1)
TILEFW_DEFAULT_TARGET = "{name}-x1"
raise SystemExit("nothing of a plugin is run to learn what it prefers")
"""


def test_without_a_name_the_target_is_the_one_that_an_installed_plugin_prefers(install, monkeypatch):
    monkeypatch.delenv("TILEFW_TARGET")
    monkeypatch.setenv("TILEFW_DISABLE_PLUGINS", "*")
    assert config.resolve().target == "reference"
    install("aaa", PREFERRED)
    install("aab", PREFERRED.replace("{name}-x1", "other-x1"), distribution="second")  # no plugin speaks for another's target
    monkeypatch.delenv("TILEFW_DISABLE_PLUGINS")
    assert config.resolve().target == "aaa-x1"
    assert config.resolve(config.settings(executor="sim")).target == "reference"  # which no chip is
    assert config.resolve(config.settings("named")).target == "named"
    monkeypatch.setenv("TILEFW_TARGET", "from-environment")
    assert config.resolve().target == "from-environment"


def test_a_disabled_plugin_prefers_nothing(install, monkeypatch):
    monkeypatch.delenv("TILEFW_TARGET")
    install("aaa", PREFERRED)
    before = config.resolve().target
    monkeypatch.setenv("TILEFW_DISABLE_PLUGINS", "aaa")
    assert before == "aaa-x1" and config.resolve().target != "aaa-x1"
