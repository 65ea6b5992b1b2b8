"""A planted inefficiency is the first or second that a profile names: a sample of bench/planted_causes.py."""

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench"
SAMPLE = (
    ("uncoalesced access", "nvidia-sm80"), ("uncoalesced access", "amd-cdna3"), ("serialised atomics", "nvidia-sm80"),
    ("divergent branch", "nvidia-sm80"), ("divergent branch", "amd-cdna3"), ("type conversions", "nvidia-sm80"),
    ("tail", "amd-cdna3"), ("barriers", "nvidia-sm80"),
)


@pytest.mark.parametrize(("cause", "target"), SAMPLE)
def test_the_profile_names_what_was_planted(cause: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    import planted_causes

    row = next(row for row in planted_causes.TABLE if row.cause == cause)
    told = planted_causes.told(row, target)
    for name in ("planted_causes", "planted_cause_code", "planted_cause_kernels"):
        sys.modules.pop(name, None)
    assert told.found, (told.clean, told.planted, told.causes)
