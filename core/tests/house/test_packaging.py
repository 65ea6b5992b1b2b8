"""One version everywhere, complete wheels, and a README with exactly the two commands that CI runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest
from tree import CONFORMANCE, CORE, ROOT

DISTRIBUTIONS = [ROOT / "pyproject.toml"] + [
    path for folder in ("*", "plugins/*", "frontends/*") for path in sorted(ROOT.glob(f"{folder}/pyproject.toml"))
]


def project(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def test_versions_are_equal():
    import tilefw

    assert {str(p.relative_to(ROOT)): project(p)["version"] for p in DISTRIBUTIONS} == {
        str(p.relative_to(ROOT)): tilefw.__version__ for p in DISTRIBUTIONS
    }
    assert len(DISTRIBUTIONS) == 10


@pytest.mark.parametrize("path", DISTRIBUTIONS, ids=lambda p: str(p.parent.name))
def test_a_distribution_has_the_licence_and_the_python_bound(path):
    facts = project(path)
    assert facts["license"] == "Apache-2.0 WITH LLVM-exception" and facts["requires-python"] == ">=3.11"
    licence = (path.parent / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence and "LLVM Exceptions" in licence


@pytest.mark.parametrize("path", [p for p in DISTRIBUTIONS if "plugins" in p.parts], ids=lambda p: p.parent.name)
def test_a_plugin_depends_on_core_alone(path):
    ours = [d for d in project(path)["dependencies"] if d.startswith("tilefw")]
    assert ours == ["tilefw-core>=0.1,<0.2"]


def test_the_readme_has_exactly_two_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == 2
    assert "tilefw run matmul --target amd-cdna3" in commands[0] and commands[1].endswith("tox")


def built(kind, folder, source, **environment):
    """The one file that hatchling makes of `source`, in `folder`."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, env={**os.environ, **environment}, check=True, capture_output=True)
    (made,) = folder.iterdir()
    return made


def requirements(metadata):
    return [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("Requires-Dist: tilefw")]


def test_the_meta_distribution_brings_the_folders_of_a_checkout_and_a_release_pins_versions(tmp_path):
    checkout = built("wheel", tmp_path / "checkout", ROOT)
    with zipfile.ZipFile(checkout) as wheel:
        (name,) = [n for n in wheel.namelist() if n.endswith("METADATA")]
        assert all(" @ file:" in line for line in requirements(wheel.read(name).decode()))
        assert not [n for n in wheel.namelist() if n.endswith(".py")], "it has no code of its own"
    release = built("sdist", tmp_path / "release", ROOT, TILEFW_RELEASE="1")
    with tarfile.open(release) as archive:
        # Python 3.11.4 brought extraction filters; our own archive needs none.
        archive.extractall(tmp_path / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (folder,) = (tmp_path / "unpacked").iterdir()
    assert len(requirements((folder / "PKG-INFO").read_text())) == 6
    with zipfile.ZipFile(built("wheel", tmp_path / "wheel", folder)) as wheel:
        (name,) = [n for n in wheel.namelist() if n.endswith("METADATA")]
        metadata = wheel.read(name).decode()
    assert "file:" not in metadata and "tilefw-core==0.1.0" in requirements(metadata)


def test_core_ships_its_pages_and_its_licence(tmp_path):
    with zipfile.ZipFile(built("wheel", tmp_path / "wheel", ROOT / "core")) as wheel:
        names = wheel.namelist()
    assert {"tilefw/explanations/TFW0501.md", "tilefw/py.typed", "tilefw/runtime/plugins/loader.py"} <= set(names)
    assert any(n.endswith("licenses/LICENSE") for n in names) and not [n for n in names if "tests/" in n and "/templates/" not in n]
    assert "tilefw/scaffold/templates/simt/tests/test_isa.py.in" in names


def test_every_package_is_typed():
    for path in DISTRIBUTIONS[1:]:
        packages = list((path.parent / "src").iterdir())
        assert packages and all((package / "py.typed").exists() for package in packages), path


def test_the_public_names_of_tilefw_can_be_had():
    import tilefw

    assert sorted(tilefw.__all__) == sorted(tilefw._HOMES)
    for name in tilefw.__all__:
        assert getattr(tilefw, name) is not None
    assert len(dir(tilefw)) == len(set(dir(tilefw)))


def test_architecture_names_every_room():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = [f.name for f in CORE.iterdir() if f.is_dir() and any(f.glob("*.py"))]
    assert not [room for room in rooms if f"`{room}/`" not in text]


def test_architecture_names_every_file_and_folder_of_the_suite():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## The conformance suite")[2]
    names = {file.name for folder in ("", "workers", "report") for file in (CONFORMANCE / folder).glob("*.py")} - {"__init__.py"}
    names |= {f"{folder.name}/" for folder in CONFORMANCE.iterdir() if folder.is_dir()} - {"__pycache__/"}
    assert len(names) > 30 and not [name for name in names if f"`{name}`" not in text]
