"""The page of profiles in a real browser: it fetches nothing, joins source lines with their instructions, and fits a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilefw.cli.main import main
from tilefw.kernels.profiled import profiled
from tilefw.kernels.spec import load
from tilefw.testing import browser as chromium
from tilefw.timing.page import framed, page

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>&\"'"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    if chromium.program() is None:
        pytest.skip(f"no browser here: none of {', '.join(chromium.PROGRAMS)} is on the path")
    one = chromium.Browser(tmp_path_factory.mktemp("browser"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def told() -> dict:
    return profiled(load("matmul"), {"m": "64", "n": "64", "k": "64"}, "nvidia-sm80").to_json()


def opened(browser: chromium.Browser, path: Path, text: str, **screen: Any) -> None:
    path.write_text(text, encoding="utf-8")
    browser.messages.clear()
    browser.requests.clear()
    browser.open(path, **screen)
    assert browser.requests[-1] == path.as_uri() and browser.messages == [], "it asks for nothing and complains of nothing"


def test_a_line_of_source_and_its_instructions_light_up_together(browser: chromium.Browser, told: dict, tmp_path: Path) -> None:
    opened(browser, tmp_path / "page.html", page([told]))
    assert len(told["limits"]) == browser.evaluate("document.querySelectorAll('.limits tbody tr').length")
    at, line = next((at, row) for at, row in enumerate(told["lines"]) if "tl.dot" in row["text"])
    browser.evaluate(f"document.querySelector('.source [data-l=\"0-{at}\"]').click()")
    lit = browser.evaluate("[...document.querySelectorAll('.machine .on code')].map((code) => code.textContent)")
    assert lit == [row["text"] for row in told["stalls"] if row["source"] == line["where"]]
    assert any("mma" in text for text in lit)
    assert browser.evaluate("document.querySelector('.source .on code').textContent.trim()") == line["text"]


def test_it_fits_a_phone_and_takes_the_readers_light(browser: chromium.Browser, told: dict, tmp_path: Path) -> None:
    grounds = set()
    for dark in (False, True):
        opened(browser, tmp_path / "page.html", page([told, told]), width=390, height=844, dark=dark)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
        grounds.add(browser.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    assert len(grounds) == 2
    assert browser.evaluate("document.querySelectorAll('nav a, section').length") == 4


def test_text_of_a_kernel_stays_text_on_the_page_and_in_a_notebook(browser: chromium.Browser, told: dict, tmp_path: Path) -> None:
    rows = [{**row, "text": HOSTILE, "causes": {HOSTILE: 1.0}} for row in told["stalls"]]
    hostile = {**told, "kernel": HOSTILE, "stalls": rows, "notes": [HOSTILE], "lines": []}
    opened(browser, tmp_path / "page.html", page([hostile]))
    assert browser.evaluate("document.title") == f"{HOSTILE} on nvidia-sm80"
    assert "names no source lines" in browser.evaluate("document.body.innerText")
    frame = framed([hostile])
    found = browser.evaluate(f"new DOMParser().parseFromString({json.dumps(frame)}, 'text/html').body.innerHTML")
    assert found.startswith("<iframe") and found.endswith("</iframe>")


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    assert main(["profile", "vector_add", "--target", "nvidia-sm80", "--param", "n=5000", "--page", str(path)]) == 0
    assert "vector_add" in path.read_text(encoding="utf-8") and "any browser shows it" in capsys.readouterr().err


def test_the_page_of_the_command_has_a_timeline_that_fits_a_phone(browser: chromium.Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert main(["profile", "vector_add", "--target", "nvidia-sm80", "--param", "n=4096", "--page", str(path)]) == 0
    opened(browser, path, path.read_text(), width=390, height=844)
    assert browser.evaluate("document.querySelectorAll('svg.timeline rect.bed').length") >= 2
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
