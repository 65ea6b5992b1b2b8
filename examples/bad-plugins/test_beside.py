"""Four bad plugins installed beside two good ones change nothing for them: each has its status, and every command goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# A plugin that hangs costs every listing the whole time that plugins have to answer.
SECONDS = "5"
STATUSES = {
    "acme": "ok", "rook": "ok", "cee": "ok", "tarn": "ok",
    "broken": "broken", "future": "incompatible", "hanging": "hung", "crashing": "crashed",
}


def tilefw(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "TILEFW_STRICT_PLUGINS": "0", "TILEFW_PLUGIN_SECONDS": SECONDS, **environment}
    command = [sys.executable, "-m", "tilefw", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=1800, env=variables, check=False)


def test_each_has_its_status_and_is_told_with_its_off_switch() -> None:
    done = tilefw("plugins", "--json")
    assert done.returncode == 0, done.stderr
    assert {p["name"]: p["status"] for p in json.loads(done.stdout)["plugins"]} == STATUSES
    listed = tilefw("targets")
    assert listed.returncode == 0 and "acme-x1" in listed.stdout
    for name in (name for name, status in STATUSES.items() if status != "ok"):
        assert f"TILEFW_DISABLE_PLUGINS={name} goes on without it" in listed.stderr


@pytest.mark.parametrize("words", [
    ("run", "vector_add", "--target", "acme-x1"), ("kernels",), ("doctor",),
    ("conformance", "--target", "acme-x2", "--level", "core", "--part", "1/6"),  # whole in acme's own CI
], ids=lambda words: words[0])
def test_a_command_goes_on(words: tuple[str, ...]) -> None:
    done = tilefw(*words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("verb", ["run", "compile", "conformance"])
@pytest.mark.parametrize("name, code, why", [
    ("broken", "TFW0503", "RuntimeError: the driver of this card is too old"), ("future", "TFW0504", "interface 2.0"),
    ("hanging", "TFW0508", f"it did not answer within {SECONDS} s"), ("crashing", "TFW0508", "signal 11 (SIGSEGV)"),
])
def test_who_names_one_is_told_why_it_cannot_be_used(name: str, code: str, why: str, verb: str) -> None:
    done = tilefw(verb, *([] if verb == "conformance" else ["vector_add"]), "--target", f"{name}-x1")
    assert done.returncode == 4 and code in done.stderr and why in done.stderr, done.stderr
    assert f"TILEFW_DISABLE_PLUGINS={name} goes on without it" in done.stderr


def test_strictness_makes_them_errors_and_switching_them_off_helps() -> None:
    strict = tilefw("targets", TILEFW_STRICT_PLUGINS="1")
    assert strict.returncode == 4
    off = [word for name in STATUSES.keys() - {"acme"} for word in ("--disable-plugin", name)]
    assert tilefw("targets", *off, TILEFW_STRICT_PLUGINS="1").returncode == 0
