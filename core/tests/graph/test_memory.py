"""The arena: buffers in use together share no byte, each begins aligned, and little more is taken than what is in use at once."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.graph.memory import ALIGNMENT, BufferLife, arranged, least_bytes, lives


@st.composite
def any_lives(draw):
    count = draw(st.integers(0, 24))
    spans = [sorted(draw(st.tuples(st.integers(-1, 30), st.integers(-1, 30)))) for _ in range(count)]
    return [BufferLife(number, draw(st.integers(0, 5000)), first, last) for number, (first, last) in enumerate(spans)]


@settings(max_examples=60)
@given(any_lives())
def test_no_two_buffers_in_use_share_a_byte(buffers):
    layout = arranged(buffers)
    assert set(layout.offsets) == {life.buffer for life in buffers}
    assert all(offset % ALIGNMENT == 0 for offset in layout.offsets.values())
    for one, other in combinations(buffers, 2):
        if one.nbytes and other.nbytes and one.meets(other):
            first, second = sorted([(layout.offsets[one.buffer], one.nbytes), (layout.offsets[other.buffer], other.nbytes)])
            assert first[0] + first[1] <= second[0]
    in_use = [sum(b.nbytes for b in buffers if b.first <= step <= b.last) for step in range(-1, 31)]
    assert layout.least == max(in_use, default=0) <= layout.nbytes


def test_a_deep_network_takes_the_lower_bound():
    """Layers of many sizes with a residual that lives over four of them."""
    sizes = [4096 * (1 + number * 7 % 5) for number in range(60)]
    buffers = [BufferLife(n, size, n, n + (4 if n % 4 == 0 else 1)) for n, size in enumerate(sizes)]
    layout = arranged(buffers)
    assert layout.nbytes <= 1.05 * layout.least < sum(sizes) / 5


def test_the_lives_of_a_plan_end_with_their_last_use():
    import small_model

    plan = small_model.plan("reference")
    found = {plan.buffers[life.buffer].name: (life.first, life.last) for life in lives(plan)}
    assert found == {
        "x": (-1, 3), "normed": (0, 1), "rstd": (0, 0), "hidden": (1, 2), "out": (2, 3), "added": (3, 5), "soft": (4, 5),
    }
    layout = arranged(lives(plan))
    assert layout.nbytes == layout.least == least_bytes(lives(plan))
