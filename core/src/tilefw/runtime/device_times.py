"""The seconds of a launch by stage, where the device has not told yet how long it took: whoever asks waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilefw.api.device import Completion

EXECUTE = "execute"


class DeviceTimes(Mapping[str, float]):
    """`seconds` of the host's stages, with those of `execute` by the device's own clock. Looking them up waits for the launch."""

    def __init__(self, seconds: Mapping[str, float], completion: Completion) -> None:
        self._seconds = seconds
        self._completion = completion

    def __getitem__(self, stage: str) -> float:
        return self._completion.wait() if stage == EXECUTE else self._seconds[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seconds)

    def __len__(self) -> int:
        return len(self._seconds)
