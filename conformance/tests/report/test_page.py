"""The page in a real browser: it fetches nothing, shows what the reports say, and is used by mouse, by keys and on a phone."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import made
import pytest

from tilefw.api.errors import UsageError
from tilefw.testing.browser import Browser
from tilefw_conformance.outcomes import GOOD, OUTCOMES, UNFINISHED
from tilefw_conformance.report.page import page
from tilefw_conformance.report.reading import Report, read
from tilefw_conformance.report.writing import ReportWriter

LIMIT = 300_000  # bytes of a page of 1,000 cases on 6 targets
HOSTILE = "</script><script>document.title='taken'</script><!-- <img src=x onerror=document.title='taken'> & \"'"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return read(str(made.report(tmp_path_factory.mktemp("report"), cases=120, targets=made.TARGETS)))


@pytest.fixture(scope="module")
def file(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page") / "report.html", report)


def written(path: Path, *reports: Report) -> Path:
    """The page of `reports` as a file."""
    path.write_text(page(reports), encoding="utf-8")
    return path


def at(one: dict[str, Any]) -> str:
    return f"#case={quote(one['case'])}&target={one['target']}"


def text(browser: Browser, selector: str) -> str:
    return browser.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")


def click(browser: Browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({json.dumps(selector)}).click()")


def search(browser: Browser, words: str) -> list[str]:
    """The ids of the rows of cases that are left."""
    browser.evaluate(f"query.value = {json.dumps(words)}; query.dispatchEvent(new Event('input'))")
    return browser.evaluate("[...document.querySelectorAll('.case')].map((row) => row.innerText.split('\\t')[0])")


def test_a_page_of_a_thousand_cases_on_six_targets_is_small_and_quick(browser: Browser, tmp_path: Path) -> None:
    made.report(tmp_path, cases=1000, targets=made.TARGETS)
    path = tmp_path / "report.html"
    path.write_text(page([read(str(tmp_path))]), encoding="utf-8")
    assert path.stat().st_size <= LIMIT
    browser.open(path)
    assert text(browser, "#status") == "1000 cases in 20 groups."
    click(browser, "#expand")
    # Rows out of sight are not drawn: an open page is no slower than a closed one.
    assert 50 <= browser.evaluate("document.querySelectorAll('.case').length") <= 300
    browser.evaluate("scrollTo(0, document.body.scrollHeight)")
    browser.wait("document.querySelector('tbody:last-child .case') !== null")
    browser.evaluate("scrollTo(0, 0)")


def test_it_asks_the_network_for_nothing_and_says_nothing_on_the_console(browser: Browser, file: Path) -> None:
    browser.messages.clear()
    browser.requests.clear()
    browser.open(file)
    click(browser, ".c.one, .c.sum")
    assert [address for address in browser.requests if not address.startswith(("about:", "data:"))] == [file.as_uri()]
    assert browser.messages == []


def test_the_summary_and_the_matrix_have_the_reports_counts(browser: Browser, file: Path, report: Report) -> None:
    browser.open(file)
    results = report.of("nvidia-sm80")
    counted = Counter(one["outcome"] for one in results if one["level"] == "core")
    claimed = sum(counted.values()) - counted["unsupported"]
    row = text(browser, '.targets tr[data-target="1"]')
    assert "nvidia-sm80" in row and "simulated" in row and f"{counted['pass']}/{claimed}" in row
    argmax = [one for one in results if one["case"].startswith("argmax/")]
    label = browser.evaluate("document.querySelector('.sum[data-group=argmax][data-target=\"1\"]').getAttribute('aria-label')")
    assert f"{sum(one['outcome'] == 'pass' for one in argmax)} of {len(argmax)} pass" in label


def test_what_fails_shows_its_worst_element_its_command_and_the_bug(browser: Browser, file: Path, report: Report) -> None:
    one = next(one for one in report.results.values() if one["outcome"] == "fail")
    browser.open(file, at(one))
    shown = text(browser, "#panel")
    assert str(one["worst"]["value"]) in shown and str(one["worst"]["expected"]) in shown
    assert f"out_ptr[{one['worst']['index'][0]}]" in shown and "times its bound" in shown
    assert one["reproduce"] in " ".join(shown.split()) and "add.f32 %f0" in shown
    note = next(iter(report.cases[one["case"]]["notes"].values()))
    assert note["description"] in shown and note["effect"] in shown and note["bugType"] in shown


def test_what_passes_shows_what_was_found_as_closely_as_its_bound(browser: Browser, file: Path, report: Report) -> None:
    for one in [one for one in report.results.values() if one["outcome"] == "pass"][:6]:
        browser.open(file, at(one))
        rows = browser.evaluate("[...document.querySelectorAll('#panel .rows dd')].map((cell) => cell.innerText)")
        found, expected = float(rows[1].removeprefix("≈ ")), float(rows[2].split()[0])
        bound = one["worst"]["bound"]
        assert abs(found - one["worst"]["value"]) <= 0.02 * bound and abs(expected - one["worst"]["expected"]) <= 0.02 * bound
        assert ("exactly" in rows[2]) == (one["error_over_bound"] == 0)


def test_a_found_zero_is_shown_as_zero(browser: Browser, tmp_path: Path) -> None:
    """Rebuilt from expected value, ratio and bound, an fp32 zero beside a subnormal came out as -4e-49."""
    path = made.report(tmp_path, cases=1, targets=["reference"])
    header, case, one, *_ = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    expected, bound = 4.2e-46, 1.4e-45
    worst = {"output": "out_ptr", "index": [3], "value": 0.0, "expected": expected, "bound": bound}
    with ReportWriter(str(tmp_path / "zero"), header, [case]) as writer:
        writer.add({**one, "outcome": "pass", "error_over_bound": expected / bound, "worst": worst})
        writer.finish(1.0)
    browser.open(written(tmp_path / "zero.html", read(writer.path)), at(one))
    found = browser.evaluate("[...document.querySelectorAll('#panel .rows dd')][1].innerText")
    assert found == "0"


def test_timeouts_are_not_counted_as_wrong(browser: Browser, file: Path, report: Report) -> None:
    browser.open(file)
    cells = browser.evaluate("[...document.querySelectorAll('.sum')].map((cell) => [cell.innerText, cell.title])")
    endings = [one["outcome"] for one in report.results.values()]
    shown = [re.search(r"(?:, (\d+) wrong)?(?:, (\d+) timed out)?", title[title.index(" pass") + 5 :]) for _, title in cells]
    wrong, late = (sum(int(match[part] or 0) for match in shown if match) for part in (1, 2))
    assert late == endings.count("timeout") > 0
    assert wrong == sum(endings.count(name) for name in OUTCOMES if name not in GOOD | UNFINISHED) > 0
    assert sum("◷" in text for text, _ in cells) == sum("timed out" in title for _, title in cells) > 0


def test_a_narrow_screen_keeps_the_pass_counts(browser: Browser, file: Path) -> None:
    browser.open(file, width=360)
    counts = "[...document.querySelectorAll('.sum .count')].map((count) => [count.innerText, count.getBoundingClientRect().width])"
    found = browser.evaluate(counts)
    assert found and all(text and width > 0 for text, width in found)


def test_a_page_of_one_target_takes_the_width_that_there_is(browser: Browser, tmp_path: Path) -> None:
    path = made.report(tmp_path, cases=20, targets=["reference"])
    browser.open(written(tmp_path / "one.html", read(str(path))), width=1280)
    assert browser.evaluate("matrix.getBoundingClientRect().width / matrix.parentElement.getBoundingClientRect().width") > 0.98


def test_a_legend_explains_every_sign_of_the_matrix(browser: Browser, file: Path) -> None:
    browser.open(file)
    legend = browser.evaluate("document.getElementById('legend').innerText")
    assert all(sign in legend for sign in ("✕", "◷", "½ulp", ".03", "9/12", "bar"))


def test_times_of_stages_are_those_of_the_report(browser: Browser, file: Path, report: Report) -> None:
    one = report.of("reference")[0]
    browser.open(file, at(one))
    rows = "[...document.querySelectorAll('.stages tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    shown = browser.evaluate(rows)
    assert [row[0] for row in shown] == [stage["name"] for stage in one["stages"]]
    for row, stage in zip(shown, one["stages"], strict=True):
        assert float(row[1].split()[0]) == pytest.approx(1000 * stage["seconds"], rel=0.15)


def test_the_search_is_that_of_the_command_line(browser: Browser, file: Path, report: Report) -> None:
    browser.open(file)
    named = [one for one in report.cases if "softmax" in one and "fp16" not in one and "bf16" not in one]
    assert len(search(browser, "softmax and not fp16 and not bf16")) == len(named) > 0
    globbed = [one for one in report.cases if one.startswith("rope/ragged") or one.startswith("cast/types")]
    assert len(search(browser, "rope/ragged* or cast/types*")) == len(globbed) > 0
    assert search(browser, "no_such_case") == [] and text(browser, "#status") == "No case fits."


def test_chips_choose_outcomes_and_levels(browser: Browser, file: Path, report: Report) -> None:
    browser.open(file)
    click(browser, '[data-chip="timeout"]')
    slow = {one["case"] for one in report.results.values() if one["outcome"] == "timeout"}
    assert len(search(browser, "")) == len(slow) > 0
    click(browser, '[data-level="extended"]')
    assert len(search(browser, "")) == sum(report.cases[case]["level"] == "extended" for case in slow)
    assert "show=timeout" in browser.evaluate("location.hash") and "level=extended" in browser.evaluate("location.hash")


@pytest.mark.parametrize(("by", "names"), [
    ("bug", {"MASK", "WIDTH", "SPECIAL_VALUE", "STRIDE"}), ("level", {"core", "extended"}),
    ("capability", {"float.add.fp32", *(f"memory.load.{name}" for name in ("fp32", "fp16", "bf16", "int32"))}),
])
def test_rows_are_by_what_one_asks_for(by: str, names: set[str], browser: Browser, file: Path) -> None:
    browser.open(file, f"#by={by}")
    assert set(browser.evaluate("[...document.querySelectorAll('.toggle .name')].map((name) => name.innerText)")) == names


def test_a_column_can_be_hidden(browser: Browser, file: Path) -> None:
    browser.open(file)
    click(browser, '.targets tr[data-target="2"] input')
    assert browser.evaluate("document.querySelectorAll('#matrix thead th').length") == 6
    assert "amd" not in text(browser, "#matrix thead")


def test_keys_alone_reach_everything(browser: Browser, file: Path) -> None:
    browser.open(file)
    browser.evaluate("document.querySelector('#matrix [tabindex=\"0\"]').focus()")
    focused = "document.activeElement"
    browser.press("Enter")
    assert browser.evaluate(f"{focused}.getAttribute('aria-expanded')") == "true"
    browser.press("ArrowRight")
    browser.press("ArrowDown")
    assert browser.evaluate(f"{focused}.dataset.target") == "0" and browser.evaluate(f"{focused}.dataset.case") is not None
    browser.press("Enter")
    assert browser.evaluate(f"{focused}.id") == "panel"
    first = text(browser, "#panel h2")
    browser.press("j", "j")
    assert text(browser, "#panel h2") != first
    browser.press("l", "l")
    assert text(browser, ".tab[aria-pressed=true]").startswith("nvidia-sm80")
    browser.press("Escape")
    assert browser.evaluate("panel.hidden") and browser.evaluate(f"{focused}.dataset.target") == "1"
    browser.press("/", "/")
    assert browser.evaluate(f"{focused}.id") == "query"
    assert browser.evaluate("document.querySelectorAll('#matrix [tabindex=\"0\"]').length") == 1


def test_a_screen_reader_is_told_what_eyes_see(browser: Browser, file: Path, report: Report) -> None:
    browser.open(file)
    search(browser, "softmax")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    roles = Counter(role for role, _ in named)
    assert roles["grid"] == 1 and roles["rowheader"] >= 6 and roles["columnheader"] >= 6
    assert ("searchbox", "Search cases") in named and ("status", "") in named
    assert not [role for role, name in named if role in ("button", "combobox", "searchbox", "checkbox", "link") and not name]
    assert any(role == "button" and name.startswith("pass, .") and name.endswith("of the bound") for role, name in named)


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_any_screen_and_its_text_is_legible(width: int, dark: bool, browser: Browser, file: Path, report: Report) -> None:
    one = next(one for one in report.results.values() if one["outcome"] == "fail")
    browser.open(file, at(one), width=width, dark=dark)
    search(browser, one["case"].partition("/")[0])
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("panel.getBoundingClientRect().width") <= width
    assert browser.evaluate(CONTRAST) == []


# WCAG 2.2 §1.4.3: 4.5:1 for text. Colours are drawn to be compared: a tint over a background is not a colour that one could parse.
CONTRAST = """(() => {
  const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const over = (colours) => {
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return pen.getImageData(0, 0, 1, 1).data;
  };
  const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const grounds = (one) => one ? [...grounds(one.parentElement), getComputedStyle(one).backgroundColor] : [];
  const faint = [];
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !one.checkVisibility({opacityProperty: true}) || one.closest('.unseen, .skip, .none, .off, script')) continue;
    const ground = grounds(one);
    const [a, b] = [light(over(ground)), light(over([...ground, getComputedStyle(one).color]))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faint.push([one.className, one.innerText.slice(0, 30), ratio.toFixed(2)]);
  }
  return faint;
})()"""


def test_an_older_report_shows_what_changed(browser: Browser, tmp_path: Path) -> None:
    old = read(str(made.report(tmp_path / "old", cases=60)))
    new = read(str(made.report(tmp_path / "new", cases=80, changed=0.1)))
    path = tmp_path / "page.html"
    path.write_text(page([new], [old]), encoding="utf-8")
    both = [(old.results[key]["outcome"], one["outcome"], key) for key, one in new.results.items() if key in old.results]
    worse = {key for before, after, key in both if before in GOOD and after not in GOOD}
    browser.open(path)
    click(browser, '[data-chip="worse"]')
    shown = browser.evaluate("[...document.querySelectorAll('.one.worse')].map((cell) => cell.getAttribute('aria-label'))")
    added = [one for key, one in new.results.items() if key not in old.results and one["outcome"] not in GOOD]
    assert len(shown) == len(worse) + len(added) > 0 and any("was pass" in label for label in shown)
    cases = {key[1] for before, after, key in both if before != after}
    assert text(browser, '[data-chip="C"]') == f"changed {len(cases)}"
    back = tmp_path / "back.html"
    back.write_text(page([old], [new]), encoding="utf-8")
    browser.open(back)
    assert "20 cases of the older report are gone" in text(browser, "#status")


def test_reports_of_different_targets_are_one_page(browser: Browser, tmp_path: Path) -> None:
    one = read(str(made.report(tmp_path / "one", cases=30, targets=made.TARGETS[:1])))
    two = read(str(made.report(tmp_path / "two", cases=40, targets=made.TARGETS[1:3])))
    path = tmp_path / "page.html"
    path.write_text(page([one, two]), encoding="utf-8")
    browser.open(path)
    assert text(browser, "#status") == "40 cases in 20 groups."
    assert browser.evaluate("document.querySelectorAll('#matrix thead th').length") == 4
    assert "About these runs" in text(browser, "#runs")
    with pytest.raises(UsageError) as caught:
        page([two, two])
    assert caught.value.code == "TFW0981"
    with pytest.raises(UsageError):
        page([one], [two])


def test_a_plugins_text_is_text(browser: Browser, tmp_path: Path) -> None:
    """Names, messages and machine code of a hostile or careless plugin: none of it becomes markup or script."""
    made.report(tmp_path / "plain", cases=3, targets=("nvidia-sm80",))
    lines = [json.loads(line) for line in (tmp_path / "plain" / "report.jsonl").read_bytes().split(b"\n")[:-2]]
    header, results = lines[0], lines[-3:]
    header["targets"][0] |= {"vendor": HOSTILE, "profiles": [HOSTILE]}
    for one in results:
        one |= {"outcome": "fail", "artifact": HOSTILE, "reproduce": HOSTILE, "error": {"code": None, "message": HOSTILE}}
    from tilefw_conformance.report.writing import ReportWriter

    with ReportWriter(str(tmp_path), header, lines[1:-3]) as writer:
        for one in results:
            writer.add(one)
        writer.finish(1.0)
    path = tmp_path / "page.html"
    path.write_text(page([read(str(tmp_path))]), encoding="utf-8")
    browser.open(path, at(results[0]))
    assert browser.evaluate("document.title") == "tilefw conformance: nvidia-sm80"
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert HOSTILE in text(browser, "#panel .code")
    assert HOSTILE in browser.evaluate("document.querySelector('.targets').textContent")


def test_who_runs_no_script_reads_the_summary(browser: Browser, file: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=file.as_uri())
        browser.wait("document.querySelector('footer') !== null")
        assert "nvidia-sm80" in text(browser, ".targets") and "needs JavaScript" in text(browser, "#notice")
        assert browser.evaluate("document.querySelector('#matrix').hidden")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
