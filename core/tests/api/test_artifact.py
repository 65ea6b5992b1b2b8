"""An artifact's file says all of it, and whatever is not such a file is a clear error, never a strange artifact."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.api import Artifact, CodeError, Entry, Parameter, Place, Remark, Resources
from tilefw.api.artifact import MAGIC, _checked_body, decode, encode

words = st.text(max_size=20)
small = st.integers(0, 2**40)
parameters = st.builds(
    Parameter, name=words, kind=st.sampled_from(["pointer", "scalar"]), dtype=words, offset=small, size=small, alignment=small,
    readonly=st.none() | st.booleans(), hidden=st.none() | words,
)
entries = st.builds(
    Entry, name=words, parameters=st.lists(parameters, max_size=3).map(tuple), workgroup=st.tuples(small, small, small),
    grid_rank=st.integers(1, 3), shared_bytes=small, scratch_bytes=small,
)
resources = st.builds(
    Resources, registers=st.none() | st.dictionaries(words, small, max_size=2), spills=st.none() | small,
    shared_bytes=st.none() | small, scratch_bytes=st.none() | small, occupancy=st.none() | st.floats(0, 1),
    unknown=st.none() | words, instructions=st.none() | st.dictionaries(words, small, max_size=2),
)
remarks = st.builds(Remark, words, words, words, st.none() | st.builds(Place, words, small, small))
plain = st.recursive(
    st.none() | st.booleans() | small | words | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6,
)
artifacts = st.builds(
    Artifact, target=words, format=words, text=words, entries=st.lists(entries, max_size=2).map(tuple),
    binary=st.none() | st.binary(max_size=30), resources=resources, levels=st.dictionaries(words, words, max_size=2),
    remarks=st.lists(remarks, max_size=2).map(tuple), metadata=st.dictionaries(words, plain, max_size=2),
)


@given(artifacts)
def test_what_is_encoded_is_decoded(artifact):
    assert decode(encode(artifact)) == artifact


ENTRY = Entry("k", (Parameter("a", "pointer", "fp32", 0, 8, 8),), (1, 1, 1))
EXAMPLE = encode(Artifact("t-1", "f", "text", (ENTRY,), binary=b"\x00\n"))


@settings(max_examples=300)
@given(st.integers(0, len(EXAMPLE) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(at, change):
    damaged = bytearray(EXAMPLE)
    damaged[at] ^= change
    with pytest.raises(CodeError):
        decode(bytes(damaged))


@given(st.integers(0, len(EXAMPLE) - 1))
def test_any_cut_is_noticed(length):
    with pytest.raises(CodeError):
        decode(EXAMPLE[:length])


@given(st.binary(max_size=200))
def test_noise_is_refused(noise):
    for data in (noise, MAGIC + noise, MAGIC + b" " + noise):
        with pytest.raises(CodeError) as caught:
            decode(data, "noise.bin")
        assert caught.value.code == "TFW0780" and "noise.bin" in str(caught.value)


def sealed(header):
    """A file with a right checksum around any header: what a foreign writer could make."""
    import hashlib

    text = json.dumps(header).encode()
    body = b"%d\n%b" % (len(text), text)
    return b"%b %b\n%b" % (MAGIC, hashlib.sha256(body).hexdigest().encode(), body)


def header():
    body = _checked_body(EXAMPLE)
    length, _, rest = body.partition(b"\n")
    return json.loads(rest[: int(length)])


@pytest.mark.parametrize("field", sorted(header()))
@pytest.mark.parametrize("value", [None, 3, "x", [], [3], {}, {"a": 1}, True])
def test_fields_of_the_wrong_type_are_refused_or_kept_as_they_are(field, value):
    changed = {**header(), field: value}
    try:
        artifact = decode(sealed(changed))
    except CodeError as error:
        assert error.code == "TFW0780"
        return
    assert encode(artifact), "what is accepted is a whole artifact"
    assert isinstance(artifact.text, str) and isinstance(artifact.levels, dict)


@pytest.mark.parametrize("field", sorted(header()))
def test_a_missing_field_is_refused(field):
    changed = header()
    del changed[field]
    with pytest.raises(CodeError):
        decode(sealed(changed))


def test_deep_nesting_is_refused():
    deep = '{"metadata":' + "[" * 200_000 + "]" * 200_000 + "}"
    import hashlib

    body = b"%d\n%b" % (len(deep), deep.encode())
    with pytest.raises(CodeError):
        decode(b"%b %b\n%b" % (MAGIC, hashlib.sha256(body).hexdigest().encode(), body))
