"""The time of kernels that speak over links: what machine code sends and waits for, on the figures of the chip's system."""

import json

import pytest

from tilefw.cli.main import main
from tilefw.testing.link_times import check_a_put, check_a_signalled_put

LATENCY, RATE = 0.6, 300e3  # microseconds, bytes per microsecond: link_latency and the rate of a link


def test_a_put_over_one_link_takes_its_latency_and_bytes():
    check_a_put("nvidia-sm80", LATENCY, RATE)


def test_a_wait_ends_after_the_data_their_acknowledgement_and_the_signal():
    check_a_signalled_put("nvidia-sm80", LATENCY, RATE)


def test_the_command_line_tells_the_time_where_it_is_asked_for(capsys):
    words = ["run", "all_gather", "--devices", "2", "--target", "nvidia-sm80", "--param", "n=64", "form=push"]
    verdict, told, timed = (main(words + more) or capsys.readouterr().out for more in ([], ["--time"], ["--json"]))
    assert " us on " not in verdict and " us on " in told
    (timed,) = json.loads(timed)["forms"]
    assert timed["ok"] and timed["seconds"] > 2 * LATENCY * 1e-6
    assert [one["rank"] for one in timed["ranks"]] == [0, 1] and timed["unknown"] is None


def test_a_system_of_fewer_devices_is_told_before_anything_runs(capsys, monkeypatch):
    monkeypatch.setattr("tilefw.node", lambda *given, **named: pytest.fail("it runs"))
    assert main(["run", "all_gather", "--devices", "9", "--target", "nvidia-sm80", "--system", "nvidia:a100_sxm"]) == 2
    assert "has 8 devices, and the node 9" in capsys.readouterr().err


def test_a_node_of_more_devices_than_its_chips_usual_system_has_a_verdict_and_no_time(capsys):
    words = ["run", "all_gather", "--devices", "9", "--target", "nvidia-sm80", "--param", "n=9", "form=push", "--time", "--json"]
    assert main(words) == 0
    (form,) = json.loads(capsys.readouterr().out)["forms"]
    assert form["ok"] and form["seconds"] is None and "has 8 devices, and the node 9" in form["unknown"]
