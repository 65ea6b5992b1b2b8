"""`triton.knobs`: settings of Triton by their groups. They can be set and read; what tilefw heeds, it says beside the name.

`runtime.jit_cache_hook` hears of each specialisation before it is compiled; a true answer prevents that, and the launch. Its
`compile` lacks `num_ctas`, `launch_cooperative_grid`, `extern_libs` and `configs`, and has of the launch's options those given.
`runtime.launch_enter_hook` and the like are not called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar


class Knobs(SimpleNamespace):
    """One group of settings; `scope` puts all of them back when its block ends, `reset` those that were made with the group.

    None of them is read from the environment: there are no `knob_descriptors`."""

    __slots__ = ("_made_with",)
    knob_descriptors: ClassVar[dict[str, Any]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._made_with = settings

    @contextmanager
    def scope(self) -> Iterator[None]:
        before = dict(vars(self))
        try:
            yield
        finally:
            self._put_back(before)

    def reset(self) -> Knobs:
        self._put_back(self._made_with)
        return self

    def _put_back(self, settings: dict[str, Any]) -> None:
        """Whoever asks meanwhile finds each of them."""
        vars(self).update(settings)
        for name in vars(self).keys() - settings.keys():
            vars(self).pop(name, None)

    def copy(self) -> Knobs:
        made = Knobs(**self._made_with)
        vars(made).update(vars(self))
        return made


base_knobs = Knobs
propagate_env = True

amd = Knobs()
autotuning = Knobs(cache=False, print=False)
build = Knobs(impl=None, cc=None)
cache = Knobs(dir=None, home_dir=None, manager_class=None, remote_manager_class=None)
compilation = Knobs(
    override=False, dump_ir=False, store_binary_only=False, always_compile=False, use_ir_loc=None, enable_asan=False,
    disable_line_info=False, front_end_debugging=False, allow_non_constexpr_globals=False, listener=None,
)
language = Knobs(fp32_default=None, default_fp_fusion=True)
nvidia = Knobs(ptxas=SimpleNamespace(path=None, version="0.0"))  # its assembler is not asked for: no version
runtime = Knobs(
    interpret=False, debug=False, sanitize_overflow=True, override_arch=None, launch_enter_hook=None, launch_exit_hook=None,
    kernel_load_start_hook=None, kernel_load_end_hook=None, jit_cache_hook=None, jit_post_compile_hook=None,
    add_stages_inspection_hook=None,
)
