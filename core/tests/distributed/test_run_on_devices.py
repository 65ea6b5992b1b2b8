"""`tilefw run NAME --devices N` says what each form did, and what is wrong with the words it was given."""

import json

import numpy as np
import pytest

from tilefw.cli.main import main
from tilefw.kernels.distributed import index


def run(capsys, *words):
    code = main(["run", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_every_form_is_told(capsys):
    code, out, _ = run(capsys, "all_gather", "--devices", "3", "--target", "reference", "--param", "n=50", "--json")
    told = json.loads(out)
    assert code == 0 and told["ok"] and told["devices"] == 3 and told["schema"] == "tilefw.run-devices/1"
    assert [form["form"] for form in told["forms"]] == list(index.COLLECTIVES["all_gather"].forms)
    assert all(form["counters"]["programs"] >= 3 and "bounds" in form["checks"] for form in told["forms"])


def test_a_target_without_a_model_of_time_says_that_the_time_is_not_known(capsys):
    words = ["all_gather", "--devices", "2", "--target", "reference", "--param", "n=50", "form=push"]
    _, out, _ = run(capsys, *words, "--json")
    (form,) = json.loads(out)["forms"]
    assert form["seconds"] is None and form["parts"] is None and "no model of time" in form["unknown"] and form["host_seconds"] > 0
    assert "time on devices unknown" in run(capsys, *words, "--time")[1]


def test_who_asks_for_a_verdict_alone_does_not_wait_for_the_time(capsys, monkeypatch):
    monkeypatch.setattr("tilefw.distributed.node_time.default_system", lambda target: pytest.fail("nobody asked"))
    words = ["all_gather", "--devices", "2", "--target", "reference", "--param", "n=50", "form=push"]
    _, said, _ = run(capsys, *words)
    assert "simulated in" in said and "time on devices" not in said


def test_a_rank_beyond_the_bounds_fails_the_run(capsys, monkeypatch):
    def off(self, results, arguments, launch):
        return [1] if np.size(results[1]) else []

    monkeypatch.setattr(index.Collective, "wrong", off)
    code, out, _ = run(capsys, "all_gather", "--devices", "2", "--target", "reference", "--param", "n=50", "form=push")
    assert code == 1 and "FAIL" in out and "beyond the bounds on the ranks 1" in out


@pytest.mark.parametrize("name, said", [("ring_attention", "causal=True"), ("rmsnorm_all_reduce", "eps=0.5")])
def test_a_launch_is_judged_by_what_its_keywords_ask_for(capsys, name, said):
    words = [name, "--devices", "2", "--target", "reference", "--param", "n=9", "form=bulk", said]
    assert run(capsys, *words)[0] == 0


@pytest.mark.parametrize("words, said", [
    (["al_reduce", "--devices", "2"], "did you mean 'all_reduce'?"),
    (["all_reduce", "--devices", "2", "--param", "form=x"], "its forms: one_shot, two_shot, multicast, ring"),
    (["all_reduce", "--devices", "2", "--param", "n=0"], "n is a whole number from 1"),
    (["all_reduce", "--devices", "2", "--target", "reference", "--param", "programs=0"], "programs is a whole number from 1"),
    (["all_reduce", "--devices", "2", "--target", "reference", "--param", "block=2.5"], "block is a whole number from 1, not"),
    (["all_reduce", "--devices", "2", "--target", "reference", "--param", "x=1"], "'x' of all_reduce is no parameter"),
    (["all_reduce", "--devices", "2", "--target", "reference", "--param", "out_dtype=int32"], "adds up in fp32, not in int32"),
    (["all_reduce", "--devices", "2", "--target", "reference", "--param", "out_dtype=fp33"], "there is no element type 'fp33'"),
    (["all_reduce", "--devices", "99"], "a node has from 1 to 64 ranks"),
    (["all_reduce", "--devices", "2", "--tuned"], "--tuned does not go with --devices"),
    (["all_reduce", "--devices", "2", "--target", "reference", "--system", "no:such"], "reference has no model of time"),
    (["all_reduce", "--devices", "2", "--target", "reference", "--timeline", "a.txt"], "neither in .json nor in .svg"),
    (["all_reduce", "--devices", "2", "--target", "reference", "--timeline", "a.json"], "form=one_shot, or two_shot, multicast"),
    (["all_to_all", "--devices", "2", "--target", "reference", "--timeline", "a.json"], "the time is not known: reference has no"),
    (["all_reduce", "--target", "reference", "--system", "no:such"], "--system goes with --devices"),
    (["all_reduce", "--target", "reference", "--time"], "--time goes with --devices"),
    (["all_reduce"], "tilefw run all_reduce --devices 4"),
    (["all_reduce", "--devices", "2", "--target", "cpu"], "does not run several launches at once"),
])
def test_wrong_words_get_help(capsys, words, said):
    code, _, err = run(capsys, *words)
    assert code != 0 and said in err
