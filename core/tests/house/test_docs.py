"""What the documentation shows works: its commands run, its Python runs, the files it names exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tree import CORE, PACKAGES, PLUGINS, ROOT

from tilefw.cli.main import main

DOCS = sorted((ROOT / "docs").glob("*.md"))
# What a page may call beside tilefw: it edits files and runs programs as a reader would.
_OTHERS = {"sed", "python"}
# Pages whose commands write files by another project's package: it, and why the page is not run without it.
_WITH = {
    "cutile.md": ("cuda.tile", "cuTile is not installed: pip install cuda-tile==1.7.0"),
    "jax.md": ("tilefw_jax", "tilefw-jax is not installed: pip install ./frontends/jax jax"),
    "models.md": ("tilefw_onnx", "tilefw-onnx is not installed: pip install ./frontends/onnx"),
    "torch.md": ("torch", "PyTorch is not installed"),
}
READMES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md")
# Verbs that are commands without a word behind them.
_ALONE = {"targets", "plugins", "kernels", "doctor"}
_OF_PLUGINS = {"TILEFW_API", "TILEFW_DEFAULT_TARGET"}  # names in their hook modules, which look like variables


def shown(page: Path) -> list[tuple[str, list[str]]]:
    """The commands of a page in order, each with the lines of output that the page shows below it."""
    commands: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif line.strip():
                commands[-1][1].append(line.strip())
    return commands


def is_shown(line: str, output: str) -> bool:
    """Whether a line of the page is in the output; "…" stands for anything."""
    return re.search(".*".join(map(re.escape, line.split("…"))), output) is not None


@pytest.mark.parametrize("page", [page for page in DOCS if shown(page)], ids=lambda page: page.name)
def test_the_commands_of_a_page_run_in_order(page, tmp_path, monkeypatch, capsysbinary):
    """In one folder, which holds the files of examples/ that are called as the page; a command fails where an error is shown. The
    first command has a process of its own, as a reader's have; the rest of ours run in this one."""
    if page.name in _WITH:
        pytest.importorskip(_WITH[page.name][0], reason=_WITH[page.name][1])
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "here"
    examples = ROOT / "examples" / page.stem
    shutil.copytree(examples, folder) if examples.exists() else folder.mkdir()
    monkeypatch.chdir(folder)
    for number, (command, lines) in enumerate(shown(page)):
        program, _, rest = command.partition(" ")
        assert program == "tilefw" or program in _OTHERS, f"{page.name} shows a command that is not ours: {command}"
        code, output = _here(rest, capsysbinary) if program == "tilefw" and number else _apart(program, rest, folder)
        assert code == any(line.startswith("error[") for line in lines), f"{command}\n{output}"
        assert [line for line in lines if not is_shown(line, output)] == [], f"{command}\n{output}"


def _apart(program: str, rest: str, folder: Path) -> tuple[int, str]:
    called = f"{shlex.quote(sys.executable)} -m tilefw {rest}" if program == "tilefw" else f"{program} {rest}"
    if program == "python":
        called = f"{shlex.quote(sys.executable)} {rest}"
    done = subprocess.run(called, shell=True, capture_output=True, text=True, cwd=folder, timeout=300)
    return done.returncode, done.stdout + done.stderr


def _here(words: str, capsysbinary: pytest.CaptureFixture[bytes]) -> tuple[int, str]:
    code = main(shlex.split(words))
    out, err = capsysbinary.readouterr()
    return code, (out + err).decode()


def in_prose() -> list[str]:
    """The commands of ours that sentences show whole: no placeholder (`FILE`, `NAME`), and not a verb's name alone."""
    found: set[str] = set()
    for page in (*DOCS, *READMES):
        for command in re.findall(r"`tilefw ([^`]+)`", page.read_text(encoding="utf-8").replace("\n", " ")):
            if not re.search(r"\b[A-Z]{2,}\b(?!\w*=)|…", command) and (" " in command or command in _ALONE):
                found.add(command)
    return sorted(found)


@pytest.mark.parametrize("command", in_prose())
def test_a_command_in_a_sentence_runs(command, tmp_path, monkeypatch, capsysbinary):
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    code, output = _here(command, capsysbinary)
    assert code == 0, f"{command}\n{output}"


def test_the_readme_shows_what_its_first_command_prints(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.findall(r"&& \.venv/bin/tilefw (.*)$", readme, re.MULTILINE)[0]
    (shown_lines,) = re.findall(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-m", "tilefw", *shlex.split(command)], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert [line for line in shown_lines.splitlines() if not is_shown(line, done.stdout)] == [], done.stdout


def test_the_kernel_of_the_readme_runs(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "add on amd-cdna3" in done.stdout and "add on nvidia-sm80" in done.stdout


def test_the_page_of_the_compiler_for_gfx942_names_every_file_and_folder():
    page = (ROOT / "docs" / "gfx942-code.md").read_text(encoding="utf-8").partition("## Every file")[2]
    folder = PLUGINS["amd"]
    files = [f"`{file.name}`" for file in folder.glob("*.py") if file.name != "__init__.py"]
    folders = [f"`{file.name}/`" for file in folder.iterdir() if (file / "__init__.py").exists()]
    assert files and folders and [name for name in (*files, *folders) if name not in page] == []


def test_the_machine_layer_names_its_files_on_its_first_page():
    room = CORE / "machine"
    page = set(re.findall(r"\w+", (room / "__init__.py").read_text(encoding="utf-8")))
    assert {file.stem for file in room.glob("*.py")} - {"__init__"} <= page


def test_every_variable_of_the_environment_is_told():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for folder in PACKAGES for path in folder.rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"\"(TILEFW_\w+)\"", text)} - _OF_PLUGINS
    assert len(read) >= 10 and read == set(re.findall(r"`(TILEFW_\w+)`(?=[^|]*\|)", page))


@pytest.mark.parametrize("page", [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_every_file_that_is_named_exists(page):
    text = page.read_text(encoding="utf-8")
    names = {p.name for folder in PACKAGES for p in folder.rglob("*.py")}
    names |= {p.name.removesuffix(".in") for p in (CORE / "scaffold" / "templates").rglob("*.py.in")}
    named = re.findall(r"`([\w/]+\.py)`", text)
    missing = [name for name in named if name.rpartition("/")[2] not in names and not (ROOT / name).exists()]
    links = [link for link in re.findall(r"\]\(([\w./-]+)\)", text) if not (page.parent / link).exists()]
    assert not missing and not links
