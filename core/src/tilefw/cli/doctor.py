"""`tilefw doctor`: what is installed and usable here, line by line, each with the reason where something is not."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec

from tilefw.cli.arguments import add_json, parser
from tilefw.cli.output import print_json

Line = tuple[str, bool, str]  # subject, usable, what there is to say


def main(summary: str, argv: list[str]) -> int:
    parse = parser("doctor", summary)
    add_json(parse)
    args = parse.parse_all(argv)
    lines = [*_versions(), _cache(), *_plugins(), *_optional()]
    if args.json:
        print_json("doctor", {"lines": [{"subject": s, "ok": ok, "text": text} for s, ok, text in lines]})
        return 0
    width = max(len(subject) for subject, _, _ in lines)
    for subject, usable, text in lines:
        print(f"{'ok' if usable else '--'}  {subject:<{width}}  {text}")
    return 0


def _versions() -> Iterator[Line]:
    from importlib.metadata import PackageNotFoundError, version

    import tilefw

    yield "python", sys.version_info >= (3, 11), f"{platform.python_version()} at {sys.executable}"
    yield "tilefw", True, f"{tilefw.__version__} at {os.path.dirname(str(tilefw.__file__))}"
    for name in ("numpy", "xdsl", "ml_dtypes", "pluggy", "PyYAML"):
        try:
            yield name, True, version(name)
        except PackageNotFoundError:
            yield name, False, "not installed, and needed"


def _cache() -> Line:
    from tilefw.runtime import config

    if not config.cache_enabled():
        return "cache", False, "off (TILEFW_CACHE=0): every launch compiles"
    folder = config.cache_directory()
    if folder is None:
        return "cache", False, "there is no home folder and no TILEFW_CACHE_DIR"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return "cache", False, f"{folder} cannot be written: {error.strerror or error}"
    return "cache", True, str(folder)


def _plugins() -> Iterator[Line]:
    from tilefw.runtime.plugins.listings import plugins, targets

    known = plugins()
    for plugin in known:
        text = f"{plugin.distribution} {plugin.version}, {plugin.status}" + (f": {plugin.error}" if plugin.error else "")
        yield f"plugin {plugin.name}", plugin.status == "ok", text
    for target in targets(known):
        yield f"target {target.info.name}", target.status == "ok", f"{target.info.summary} [{', '.join(target.provides)}]"
        yield from _tools(target.info.name)


def _tools(name: str) -> Iterator[Line]:
    """What the target's backend says of the outside tools that it uses, and of what its chip's executor needs."""
    from tilefw.api.errors import KernelError
    from tilefw.runtime.plugins.loader import find_target

    try:
        backend = find_target(name).backend
        digest, needed = backend.toolchain_digest(), backend.device_requirements()
    except KernelError as error:
        yield f"target {name}", False, error.message
        return
    if digest:
        yield f"  tools of {name}", True, digest
    for one in needed:
        yield f"  {one.subject} for {name}", one.met, one.text


def _optional() -> Iterator[Line]:
    for module, use in (("tilefw_conformance", "the conformance suite"), ("torch", "PyTorch tensors as arguments")):
        there = find_spec(module) is not None
        yield module, there, use if there else f"not installed: {use}"
