"""A plan's file: what is loaded is what was saved, in any process, and a damaged file is a clear error and nothing else."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
import small_model

from tilefw.api.errors import CodeError
from tilefw.graph import plan_file
from tilefw.graph.session import Session

_RUN = """
import sys, numpy as np
from tilefw.graph import plan_file
from tilefw.graph.session import Session
plan = plan_file.load(sys.argv[1])
with Session(plan) as session:
    np.save(sys.argv[2], session.run({"x": np.load(sys.argv[3])})["probabilities"])
print(plan_file.save(plan, sys.argv[1] + ".again"))
print(sorted(name for name in sys.modules if name.startswith("tilefw.frontend")))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.tfm"
    return path, plan_file.save(small_model.plan("nvidia-sm80"), path)


def test_another_process_runs_it_without_a_front_end_and_saves_the_same_file(saved, tmp_path):
    path, digest = saved
    np.save(tmp_path / "x.npy", small_model.x())
    words = [sys.executable, "-c", _RUN, str(path), str(tmp_path / "y.npy"), str(tmp_path / "x.npy")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [digest, "[]"]
    with Session(small_model.plan("nvidia-sm80")) as session:
        here = session.run({"x": small_model.x()})["probabilities"]
    assert np.array_equal(np.load(tmp_path / "y.npy"), here)


def test_constants_are_mapped_and_begin_aligned(saved):
    path, _ = saved
    plan, data = plan_file.load(path), path.read_bytes()
    constants = {buffer.name: buffer.constant for buffer in plan.buffers if buffer.constant is not None}
    assert set(constants) == {"w1", "w2", "bias", "scale"}
    for name, array in (("w1", small_model.W1), ("scale", small_model.SCALE)):
        held = constants[name]
        assert held is not None and held.readonly and bytes(held) == array.tobytes()
        assert data.index(array.tobytes()) % 64 == 0


def test_a_file_that_is_cut_short_or_changed_is_told(saved, tmp_path):
    whole = saved[0].read_bytes()
    rng = random.Random(1)
    damaged = [whole[: rng.randrange(len(whole))] for _ in range(30)] + [whole + b"\0", b"", b"tilefw-model/3 ", b"PK\3\4" * 40]
    for _ in range(60):
        at = rng.randrange(len(whole))
        damaged.append(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
    for data in damaged:
        _refused(tmp_path, data)


def test_a_header_that_says_what_cannot_be_is_told(saved, tmp_path):
    """With a digest that fits: the file of somebody who means harm."""
    import hashlib

    whole = saved[0].read_bytes()
    body = whole[whole.index(b"\n") + 1 :]
    length, _, rest = body.partition(b"\n")
    header, blobs = rest[: int(length)], rest[int(length) :]
    norm = b'["norm",0,[8,1,1],['
    changes = [
        (b'["x",1024,"fp32",0', b'["x",4611686018427387905,"fp32",0'), (b'["x",1024,', b'["x",-1,'),
        (b'["w1",8192,', b'["w1",819200,'), (b'"fp32"', b'"fp33"'), (b"[8,32],0]", b"[8,33],0]"), (b"[8,32],0]", b"[8,32],-4]"),
        (norm, b'["norm",99,[8,1,1],['), (norm, b'["norm",0,[0,1,1],['), (norm, norm + b"null,"), (header, b"[" * 100_000),
        (b'"buffers":[', b'"buffers":{"a":['), (header, b"{}"),
        (b'"value":"0x1', b'"value":"0x1p9999","was":"0x1'), (b'"dtype":"fp32"}', b'"dtype":"fp64"}'),
        (b'"target":"nvidia-sm80"', b'"target":"nvidia-sm86"'), (b'"ranks":1', b'"ranks":0'), (b'"ranks":1', b'"ranks":true'),
        (b'"ranks":1', b'"ranks":65'), (b'"divided":{}', b'"divided":{"x":2}'), (b'"divided":{}', b'"divided":{"y":0}'),
        (b'["x",1024,"fp32",0', b'["x",1024,"fp32",3'), (b'["w1",8192,"fp32",1,false', b'["w1",8192,"fp32",1,true'),
    ]
    for old, new in changes:
        assert old in header, old
        changed = header.replace(old, new, 1)
        made = b"%d\n%b%b" % (len(changed), changed, blobs)
        _refused(tmp_path, b"tilefw-model/3 " + hashlib.sha256(made).hexdigest().encode() + b"\n" + made)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(CodeError) as caught:
        plan_file.load(tmp_path / "none.tfm")
    assert caught.value.code == "TFW0930"


def _refused(folder, data):
    path = folder / "damaged.tfm"
    path.write_bytes(data)
    with pytest.raises(CodeError) as caught:
        plan_file.load(path)
    assert caught.value.code == "TFW0782"


def test_a_file_that_is_cut_in_place_while_it_is_mapped_is_told_before_its_constants_are_read(saved, tmp_path):
    path = tmp_path / "cut.tfm"
    path.write_bytes(saved[0].read_bytes())
    plan = plan_file.load(path)
    with open(path, "r+b") as file:
        file.truncate(100)
    for use in (lambda: Session(plan), lambda: plan_file.save(plan, tmp_path / "again.tfm")):
        with pytest.raises(CodeError) as caught:
            use()
        assert caught.value.code == "TFW0782" and "to 100 bytes" in caught.value.message
