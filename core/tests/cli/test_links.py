"""`tilefw links` says times by size, and what is wrong with what it is asked."""

import json

import pytest

from tilefw.cli.main import main

H100 = ("links", "all_reduce", "--system", "nvidia:h100_sxm")


def test_sizes_go_by_powers_of_two_and_the_timeline_is_written(tmp_path, capsys):
    trace = tmp_path / "trace.json"
    assert main([*H100, "--size", "1K..4K", "--json", "--trace", str(trace)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["bytes"] for row in rows] == [1024, 2048, 4096]
    assert all(15 < row["microseconds"] < 17 and row["algorithm"] == "ring" for row in rows)
    assert json.loads(trace.read_text())["otherData"]["protocol"] == "ll"


@pytest.mark.parametrize(("argv", "said"), [
    ([*H100, "--size", "4K..1K"], "ends before it begins"),
    ([*H100, "--size", "many"], "no number of bytes"),
    (["links", "all_reduce", "--system", "h100_sxm"], "write PLUGIN:h100_sxm"),
    (["links", "all_reduce", "--system", "nvidia:h100_smx"], "did you mean 'h100_sxm'"),
    (["links", "all_reduse", "--system", "amd:mi300x"], "did you mean 'all_reduce'"),
    (["links", "all_gather", "--system", "nvidia:p5_efa", "--nodes", "2"], "all_reduce of all their devices"),
    (["links", "all_reduce", "--system", "nvidia:nvl72_ib", "--nodes", "2"], "all_reduce --ranks 72"),
    (["links", "all_to_all", "--system", "amd:mi300x", "--algorithm", "ring"], "no all_to_all by 'ring'"),
    ([*H100, "--size", "1000T"], "up to 1 TiB"),
    ([*H100, "--nodes", "2"], "has no figure 'node_rate'"),
])
def test_what_cannot_be_is_said_without_a_traceback(argv, said, capsys):
    assert main(argv) != 0
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err
