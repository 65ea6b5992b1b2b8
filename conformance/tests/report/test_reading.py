"""A report is taken only whole: what is torn, edited, doubled or foreign is refused with its line, and a run can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import made
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tilefw.api.errors import CodeError, KernelError, UsageError
from tilefw_conformance.document import KEYWORDS
from tilefw_conformance.outcomes import OUTCOMES
from tilefw_conformance.report import reading, records, totals
from tilefw_conformance.report.writing import ReportWriter

Records = list[dict[str, Any]]


def written(path: Path) -> Records:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def rewrite(path: Path, lines: Records, *, sealed: bool) -> None:
    """Write edited records; `sealed` by somebody who takes the trouble to compute the digest of the content anew."""
    body = [json.dumps(line).encode() + b"\n" for line in lines]
    if sealed and lines[-1]["kind"] == "footer":
        lines[-1]["content"] = hashlib.sha256(b"".join(body[:-1])).hexdigest()
        body[-1] = json.dumps(lines[-1]).encode() + b"\n"
    path.write_bytes(b"".join(body))


def first(lines: Records, kind: str) -> dict[str, Any]:
    return next(line for line in lines if line["kind"] == kind)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = made.report(tmp_path)
    report = reading.read(str(tmp_path))
    assert report.file == str(path) and report.targets == made.TARGETS[:3]
    assert len(report.cases) == 40 and len(report.results) == 120 == report.footer["cases"]
    assert sum(sum(level.values()) for level in report.footer["counts"].values()) == 120
    assert [one["case"] for one in report.of("reference")] == list(report.cases)


def test_every_record_follows_the_schema_as_others_read_it(tmp_path: Path) -> None:
    schema = json.loads((Path(reading.__file__).parent / "report.schema.json").read_text("utf-8"))
    check = jsonschema.Draft202012Validator(schema)
    for record in written(made.report(tmp_path, cases=10)):
        check.validate(record)
    assert schema["$defs"]["outcome"]["enum"] == list(OUTCOMES)
    assert not _keywords(schema) - KEYWORDS


def _keywords(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set().union(*map(_keywords, schema)) if isinstance(schema, list) else set()
    named = {"properties", "$defs"}
    inner = [v for name, value in schema.items() for v in (value.values() if name in named else [value])]
    return set(schema) | set().union(*map(_keywords, inner))


def drop_last_line(lines: Records) -> None:
    del lines[-1]


def other_outcome(lines: Records) -> None:
    first(lines, "result")["outcome"] = "over-capacity"


def better_number(lines: Records) -> None:
    next(line for line in lines if line["kind"] == "result" and line["error_over_bound"])["error_over_bound"] = 0.0


def pass_beyond_its_bound(lines: Records) -> None:
    next(line for line in lines if line["kind"] == "result" and line["outcome"] == "pass")["error_over_bound"] = 2.5


def fewer_results(lines: Records) -> None:
    lines.remove(first(lines, "result"))


def other_counts(lines: Records) -> None:
    lines[-1]["counts"]["core"]["pass"] += 1


def twice(kind: str) -> Callable[[Records], None]:
    return lambda lines: lines.insert(-1, first(lines, kind))


def joined(lines: Records) -> None:
    lines += lines


def other_version(lines: Records) -> None:
    lines[0]["schema"] = "tilefw.report/2"


def misspelt(lines: Records) -> None:
    one = first(lines, "result")
    one["outcom"] = one.pop("outcome")


def foreign_case(lines: Records) -> None:
    lines.remove(first(lines, "case"))


@pytest.mark.parametrize(("edit", "code", "message"), [
    (drop_last_line, "TFW0977", "before its footer"),
    (other_outcome, "TFW0978", "counts"),
    (better_number, "TFW0978", "digest"),
    (pass_beyond_its_bound, "TFW0978", "2.5 times its bound"),
    (fewer_results, "TFW0978", "counts 120 results, and there are 119"),
    (other_counts, "TFW0978", "counts"),
    (foreign_case, "TFW0978", "no such case"),
    (twice("result"), "TFW0979", "a second result of"),
    (twice("case"), "TFW0979", "a second case"),
    (twice("header"), "TFW0979", "a second header"),
    (joined, "TFW0979", "a second"),
    (other_version, "TFW0980", "tilefw.report/2"),
    (misspelt, "TFW0976", "outcome"),
])
def test_an_edited_report_is_refused(edit: Callable[[Records], None], code: str, message: str, tmp_path: Path) -> None:
    path = made.report(tmp_path)
    lines = written(path)
    edit(lines)
    rewrite(path, lines, sealed=True)
    with pytest.raises(KernelError) as caught:
        reading.read(str(path))
    assert caught.value.code == code and message in str(caught.value), str(caught.value)


def test_an_edit_that_no_count_tells_shows(tmp_path: Path) -> None:
    path = made.report(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"tilefw run vector_add", b"tilefw run vector_sub", 1))
    with pytest.raises(CodeError, match="digest of the content"):
        reading.read(str(path))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return made.report(tmp_path_factory.mktemp("whole"), cases=6).read_bytes()


@settings(max_examples=150, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), byte=st.binary(min_size=0, max_size=2))
def test_no_byte_before_the_footer_can_change(whole: bytes, place: float, byte: bytes) -> None:
    at = int(place * (whole.rstrip(b"\n").rfind(b"\n") + 1))
    assume(byte != whole[at : at + 1])
    with pytest.raises(KernelError):
        reading.parse(whole[:at] + byte + whole[at + 1 :], "r.jsonl")


@pytest.mark.parametrize(("data", "code"), [
    (b"", "TFW0977"), (b"\n", "TFW0976"), (b"{", "TFW0977"), (b"[]\n", "TFW0976"), (b"\xff\xfe\n", "TFW0976"),
    (b'{"kind": "header", "seed": NaN}\n', "TFW0976"), (b'{"kind": "header", "kind": "footer"}\n', "TFW0976"),
    (b"[" * 100_000 + b"\n", "TFW0976"), (b'{"kind": "case"}\n', "TFW0980"),
])
def test_what_is_no_report_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(CodeError) as caught:
        reading.parse(data, "r.jsonl")
    assert caught.value.code == code


def test_a_report_that_is_not_there_is_a_mistake_of_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        reading.read(str(tmp_path / "none"))
    assert caught.value.code == "TFW0976" and caught.value.exit_code == 2


def test_a_run_cut_at_any_byte_goes_on_and_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = reading.read(str(made.report(tmp_path / "whole", cases=4)))
    data = Path(whole.file).read_bytes()
    for end in range(0, len(data), 997):
        folder = tmp_path / str(end)
        folder.mkdir()
        (folder / "report.jsonl").write_bytes(data[:end])
        with ReportWriter(str(folder), whole.header, whole.cases.values(), resume=True) as writer:
            for key, result in whole.results.items():
                if key not in writer.done:
                    writer.add(result)
            writer.finish(1.0)
        assert reading.read(str(folder)).footer["digest"] == whole.footer["digest"]


def test_a_run_with_other_options_does_not_go_on(tmp_path: Path) -> None:
    path = made.report(tmp_path, cut=True)
    header = {**written(path)[0], "level": "core"}
    with pytest.raises(UsageError, match=r"level was \"extended\", and is \"core\" now") as caught:
        ReportWriter(str(tmp_path), header, [], resume=True)
    assert caught.value.code == "TFW0975"
    assert reading_fails(path)  # and what there was is still there, to be resumed


def test_two_runs_do_not_write_through_each_other(tmp_path: Path) -> None:
    whole = reading.read(str(made.report(tmp_path / "whole", cases=4)))
    folder = str(tmp_path / "one")
    with ReportWriter(folder, whole.header, whole.cases.values()):
        for resume in (False, True):
            with pytest.raises(UsageError, match="another run is writing"):
                ReportWriter(folder, whole.header, [], resume=resume)
    with ReportWriter(folder, whole.header, [], resume=True) as writer:
        assert not writer.done


def test_a_whole_report_that_was_edited_is_not_made_whole_again(tmp_path: Path) -> None:
    path = made.report(tmp_path, cases=4)
    lines = written(path)
    path.write_bytes(path.read_bytes().replace(b'"reason":""', b'"reason":"so"', 1))
    with pytest.raises(KernelError, match="edited") as caught:
        ReportWriter(str(tmp_path), lines[0], [], resume=True)
    assert caught.value.code == "TFW0978"


def lacks_a_field(lines: Records) -> None:
    del first(lines, "result")["target"]


def lost_its_header(lines: Records) -> None:
    del lines[0]


@pytest.mark.parametrize(("edit", "code"), [
    (lacks_a_field, "TFW0976"), (twice("result"), "TFW0975"), (lost_its_header, "TFW0975"), (other_version, "TFW0975"),
])
def test_a_damaged_report_does_not_go_on(edit: Callable[[Records], None], code: str, tmp_path: Path) -> None:
    path = made.report(tmp_path, cases=4, cut=True)
    lines = written(path)
    header = dict(lines[0])
    edit(lines)
    rewrite(path, lines, sealed=False)
    before = path.read_bytes()
    with pytest.raises(KernelError) as caught:
        ReportWriter(str(tmp_path), header, [], resume=True)
    assert caught.value.code == code and path.read_bytes() == before
    ReportWriter(str(tmp_path), header, []).close()  # the one that was refused holds the file no longer


def reading_fails(path: Path) -> bool:
    with pytest.raises(CodeError) as caught:
        reading.read(str(path))
    return caught.value.code == "TFW0977"


def test_the_digest_is_of_what_was_found_not_of_how_long_it_took(tmp_path: Path) -> None:
    results = [one for one in written(made.report(tmp_path)) if one["kind"] == "result"]
    before = totals.results_digest(results)
    slower = [{**one, "seconds": one["seconds"] + 1, "attempts": 2, "stages": [{**s, "seconds": 9.0} for s in one["stages"]]}
              for one in reversed(results)]
    assert totals.results_digest(slower) == before
    assert totals.results_digest([{**results[0], "outcome": "timeout"}, *results[1:]]) != before


def test_numbers_that_json_has_not_are_words(tmp_path: Path) -> None:
    assert records.plain({"a": float("inf"), "b": [float("nan"), (1, None)], 3: {2, 1}}) == {
        "a": "inf", "b": ["nan", [1, None]], "3": [1, 2],
    }


def test_garbage_in_a_message_stays_json(tmp_path: Path) -> None:
    with ReportWriter(str(tmp_path), {"kind": "header", "text": "\udcff\u2028"}, []) as writer:
        writer.finish(0.0)
    assert written(Path(writer.path))[0]["text"] == "\udcff\u2028"
