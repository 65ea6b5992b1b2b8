"""The alarm of campaigns of damaged programs: what is a failure, what is none, and what the table says of both."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable

import pytest

from tilefw.api.errors import CodeError
from tilefw.testing.damaged import FAILURES, DamageCampaign, failures, outcome, tables


def _broken() -> str:
    raise KeyError("a bug")


def _loud() -> str:
    warnings.warn("a user would see it", stacklevel=1)
    return "ran"


def _refused() -> str:
    raise CodeError("no such opcode", code="TFW0720")


def _endless() -> str:
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("attempt", [_broken, _loud])
def test_what_a_user_should_not_see_is_a_failure(attempt: Callable[[], str]) -> None:
    found = outcome(attempt)
    assert found.word == "traceback" and found.word in FAILURES and attempt.__name__ in found.trace


def test_what_does_not_end_is_a_failure() -> None:
    found = outcome(_endless, seconds=0.05)
    assert found.word == "hang" and found.word in FAILURES and "_endless" in found.trace


def test_an_error_of_ours_is_none() -> None:
    assert outcome(_refused).word == "TFW0720"


def _one_of(rng: random.Random) -> Callable[[], str]:
    return rng.choice((_refused, lambda: "ran"))


def test_attempts_are_made_of_seed_kind_and_number() -> None:
    campaign = DamageCampaign({"mixed": (1.0, _one_of)}, prepare=lambda: None)
    words = [campaign.attempt("mixed", 1, number).word for number in range(40)]
    assert words == [campaign.attempt("mixed", 1, number).word for number in range(40)] and set(words) == {"ran", "TFW0720"}
    assert campaign.run(40, 1)["mixed"].words == {word: words.count(word) for word in set(words)}


def test_memory_beyond_the_bound_is_a_failure() -> None:
    """A bound that even an attempt without memory is beyond: how far the peak rises depends on what this process did before."""
    found = DamageCampaign({"small": (1.0, lambda rng: lambda: "ran")}, prepare=lambda: None, most_memory=-1).run(1, 1)
    assert found["small"].words == {"memory": 1} and failures(found)[0].startswith("small:0 memory")


def test_the_table_counts_each_kind() -> None:
    campaign = DamageCampaign({"bytes": (0.75, lambda rng: _refused), "text": (0.25, lambda rng: _broken)}, prepare=lambda: None)
    found = campaign.run(8, 1)
    shown = tables(found, ["ran", "assembled"])
    assert shown[0] == "| | attempts | ran or assembled | findings | refused | failed | ms each | slowest, s |"
    assert [line.split("|")[1:7] for line in shown[2:4]] == [
        [" bytes ", " 6 ", " 0 ", " 0 ", " 6 ", " 0 "], [" text ", " 2 ", " 0 ", " 0 ", " 0 ", " 2 "],
    ]
    assert shown[-4:] == ["| | TFW0720 |", "|---|---|", "| bytes | 6 |", "| text | 0 |"]
