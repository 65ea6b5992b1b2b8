"""What installed plugins say, asked in child processes with a time limit, so that none can hang or kill us.

An answer that is `ok` is kept on disk, by distribution version and the files of the plugin's package; every other is asked anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tilefw.api.version import TILEFW_API
from tilefw.runtime import atomic_write, config
from tilefw.runtime.plugins.entry_points import PluginCandidate, VersionNotStated, candidates, source_file
from tilefw.runtime.plugins.plugin import Plugin, from_json, load_plugin, seen, to_json
from tilefw.runtime.plugins.target_check import BadTarget

START_SECONDS = 60.0  # for a child to come to its plugin: a busy machine is not plugin's fault
ANSWER_LIMIT = 16 << 20  # bytes
MEMORY_LIMIT = 8 << 30  # bytes of address space: a light module needs a hundredth, and one that fills memory must not fill all

_ALARM = -signal.SIGALRM if hasattr(signal, "SIGALRM") else None  # the exit status of a child whose time is up; not on Windows


def load_warily(candidate: PluginCandidate, disabled: frozenset[str]) -> Plugin:
    """Load a plugin in this process, unless a child that was asked first hung or crashed.

    What has answered before, or is imported already, costs no child.
    """
    if candidate.module not in sys.modules:
        (answer,) = probe_all([candidate], disabled)
        if answer.status in ("hung", "crashed"):
            return answer
    return load_plugin(candidate, disabled)


def probe_all(asked: Sequence[PluginCandidate], disabled: frozenset[str], seconds: float | None = None) -> list[Plugin]:
    """Every candidate's plugin, in order; the children run side by side.

    `seconds` is the time for each to answer once it is reached, that of TILEFW_PLUGIN_SECONDS unless given.
    """
    seconds = config.plugin_seconds() if seconds is None else seconds
    known: dict[int, Plugin] = {}
    children: dict[int, subprocess.Popen[bytes]] = {}
    for index, candidate in enumerate(asked):
        known[index] = seen(candidate, disabled)
        if known[index].status != "ok":
            continue  # nothing of it would run
        if (kept := _kept(candidate)) is not None:
            known[index] = kept
        else:
            children[index] = _start(candidate, seconds)
    deadline = time.monotonic() + START_SECONDS + seconds
    try:
        for index, child in children.items():
            known[index] = _answer(asked[index], child, deadline, seconds)
            if known[index].status == "ok":
                _keep(asked[index], known[index])
    finally:
        for child in children.values():
            if child.poll() is None:
                child.kill()
                child.communicate()
    return [known[index] for index in range(len(asked))]


def _start(candidate: PluginCandidate, seconds: float) -> subprocess.Popen[bytes]:
    # -P keeps the current folder off the path; our own path goes along, so that the child finds what we would find.
    path = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-P", "-m", "tilefw.runtime.plugins.probe", candidate.name, str(seconds)]
    errors = None if config.trace_plugins() else subprocess.DEVNULL
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)


def _answer(candidate: PluginCandidate, child: subprocess.Popen[bytes], deadline: float, seconds: float) -> Plugin:
    failed = Plugin(candidate.name, candidate.distribution, candidate.version, candidate.module, "crashed", code="TFW0508")
    hung = replace(failed, status="hung", error=f"it did not answer within {seconds:g} s (TILEFW_PLUGIN_SECONDS)")
    try:
        out, _ = child.communicate(timeout=max(0.05, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:  # it was never reached, or it keeps the alarm from ending it
        child.kill()
        child.communicate()
        return hung
    if child.returncode == _ALARM:
        return hung
    if child.returncode != 0:
        return replace(failed, error=_ending(child.returncode))
    try:
        return from_json(json.loads(out[:ANSWER_LIMIT]))
    except (ValueError, KeyError, TypeError, BadTarget, RecursionError):
        return replace(failed, error="its answer cannot be read")


def _ending(code: int) -> str:
    if code < 0:
        names = {known.value: f" ({known.name})" for known in signal.Signals}
        return f"its process was ended by signal {-code}{names.get(-code, '')}"
    return f"its process ended with status {code}"


def _kept(candidate: PluginCandidate) -> Plugin | None:
    path = _path(candidate)
    try:
        if path is None or path.stat().st_size > ANSWER_LIMIT:
            return None
        plugin = from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, BadTarget, RecursionError):
        return None
    return plugin if plugin.name == candidate.name and plugin.status == "ok" else None


def _keep(candidate: PluginCandidate, plugin: Plugin) -> None:
    path = _path(candidate)
    if path is None:
        return
    # A folder that cannot be written only costs the next listing its time.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write(path, json.dumps(to_json(plugin)))


def _path(candidate: PluginCandidate) -> Path | None:
    folder = config.state_directory()
    if folder is None:
        return None
    try:
        source = source_file(candidate.module)
        beside = sorted(_files(str(Path(source).parent)))
    except (OSError, VersionNotStated):
        return None
    plugin = (candidate.name, candidate.module, candidate.distribution, candidate.version, source)
    facts = (plugin, beside, TILEFW_API, sys.version_info[:3])
    return folder / "plugins" / (hashlib.sha256(repr(facts).encode()).hexdigest() + ".json")


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """The files beside the hook module, and of a package those in its packages: targets are described there, and in a checkout
    they change while the version stays."""
    with os.scandir(folder) as found:
        entries = list(found)
    package = any(entry.name == "__init__.py" for entry in entries)
    for entry in entries:
        if entry.is_file():
            facts = entry.stat()
            yield entry.path, facts.st_mtime_ns, facts.st_size
        elif package and entry.is_dir(follow_symlinks=False) and os.path.exists(os.path.join(entry.path, "__init__.py")):
            yield from _files(entry.path)


def main(name: str, seconds: float) -> None:
    """The child's part: load one plugin and print it; what the plugin itself prints goes nowhere."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _limit_memory()
    chosen = next(c for c in candidates() if c.name == name and c.shadowed_by is None)
    if _ALARM is not None:
        import pluggy  # noqa: F401 (what `load` needs for any plugin is none of this one's time)

        import tilefw.api.hooks  # noqa: F401

        signal.setitimer(signal.ITIMER_REAL, seconds)  # its default action ends code that never comes back to Python too
    answer.write(json.dumps(to_json(load_plugin(chosen, frozenset()))))
    answer.flush()
    os._exit(0)  # threads and exit handlers of a plugin cannot hold us up


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # no such thing on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
