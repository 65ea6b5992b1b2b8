"""Quick estimates of a library kernel's launches, over arrays that nobody reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilefw.kernels.instance import Instance, instance
from tilefw.kernels.spec import KernelSpec, Launch, Parameters
from tilefw.runtime.arguments.array_facts import facts_of
from tilefw.runtime.compilation import options
from tilefw.runtime.estimates import FEW, Estimates
from tilefw.runtime.plugins.loader import Target
from tilefw.timing.estimate.estimated_time import Estimate
from tilefw.timing.estimate.program_parts import ProgramWork

LAUNCH_KEYWORDS = ("num_warps", "num_stages")
"""Parameters of library kernels that are keywords of their launches, and nothing else."""


class _FewNumbers(np.random.Generator):
    """Draws the integers of small arrays, which estimates look at (`FEW`); of others they read the size alone."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:  # type: ignore[override]
        return np.broadcast_to(np.zeros((), dtype), size or ())

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return np.broadcast_to(np.zeros(()), size or ())

    def integers(  # type: ignore[override]
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        if not size or np.prod(size) <= FEW:
            return super().integers(low, high, size, dtype, endpoint)
        return np.full(size, 0 if high is None else low, dtype)


@dataclass
class KernelEstimates:
    """The estimates of a library kernel's launches on a target; `given` stays as it is. Launches that differ in their keywords
    alone have one preparation."""

    spec: KernelSpec
    given: Parameters
    target: Target
    _prepared: dict[str, tuple[Launch, Instance]] = field(default_factory=dict)
    _estimates: Estimates = field(init=False)

    def __post_init__(self) -> None:
        self._estimates = Estimates(self.target)

    @property
    def there(self) -> bool:
        """Whether the target has estimates."""
        return self._estimates.there

    @property
    def works(self) -> Sequence[ProgramWork]:
        """The programs that were estimated so far, by their work."""
        return self._estimates.works

    def __call__(self, configuration: Mapping[str, Any]) -> Estimate:
        """The estimate with a configuration. Raises as the front end does."""
        parameters = self.spec.resolve({**self.given, **configuration})
        keywords = {name: parameters[name] for name in LAUNCH_KEYWORDS if name in parameters}
        shape = json.dumps({name: str(value) for name, value in parameters.items() if name not in keywords})
        if shape not in self._prepared:
            launch = self.spec.prepare(parameters, _FewNumbers())
            self._prepared[shape] = launch, instance(self.spec, launch)
        launch, made = self._prepared[shape]
        info = self.target.info
        request = options.resolve({**launch.keywords, **keywords}, info, facts=facts_of(info, made.values))
        return self._estimates.of(made.source, request, made.values, launch.grid)
