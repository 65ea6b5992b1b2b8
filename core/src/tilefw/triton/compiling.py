"""`triton.compile`: a kernel with the types of its arguments, compiled and launched by hand, as PyTorch's compiler does.

    source = triton.compiler.ASTSource(kernel, {"x_ptr": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 64})
    compiled = triton.compile(source, options={"num_warps": 4})
    compiled.run(x, y, z, stream, compiled.function, compiled.packed_metadata, None, None, None, *arguments)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tilefw.runtime.compilation import compiler
from tilefw.runtime.compiled_kernel import CompiledKernel
from tilefw.runtime.module import LoadedKernel, Module
from tilefw.runtime.plugins.loader import find_target
from tilefw.triton import chip
from tilefw.triton.kernels import triton_key

_HOST = "cpu"  # what programs call the backend of tensors in the host's memory: every target's here
_CONSTANT = "constexpr"


class ASTSource:
    """A kernel with its specialisation, under Triton's names.

    `signature` gives every parameter's type, `constexpr` for those that are in `constexprs` (by name, or by a tuple of the place);
    `attrs` what is known of the others, by a tuple of the place: `[["tt.divisibility", 16]]`.
    """

    ext = "ttir"

    def __init__(
        self, fn: Any, signature: Mapping[str, str], constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[tuple[int, ...], Any] | None = None,
    ) -> None:
        self.fn, self.signature, self.attrs, self.name = fn, dict(signature), dict(attrs or {}), fn.__name__
        self.constants = {self._place(key): value for key, value in (constexprs or {}).items()}

    def _place(self, key: Any) -> tuple[int, ...]:
        return (self.fn.arg_names.index(key),) if isinstance(key, str) else tuple(key)

    def hash(self) -> str:
        """One word for the kernel and its specialisation."""
        told = (self.fn.cache_key, self.signature, sorted(self.constants.items(), key=str), self.attrs)
        return hashlib.sha256(repr(told).encode()).hexdigest()

    def parse_options(self) -> dict[str, Any]:
        return {}

    @property
    def constexprs(self) -> dict[str, Any]:
        """The compile-time values by name."""
        return {self.fn.arg_names[place[0]]: value for place, value in self.constants.items()}

    @property
    def types(self) -> dict[str, str]:
        """The other parameters' types as tilefw writes them: with the number that divides the value."""
        fixed = self.constexprs
        known = {self.fn.arg_names[place[0]]: dict(said).get("tt.divisibility") for place, said in self.attrs.items()}
        return {
            name: f"{kind}:{known.get(name) or 1}" if kind.startswith("*") else f"{kind}:{known[name]}" if known.get(name) else kind
            for name, kind in self.signature.items() if kind != _CONSTANT and name not in fixed
        }


class CompiledSource(CompiledKernel):
    """What `compile` gives: a kernel that `run` launches by Triton's own convention."""

    def __init__(self, src: ASTSource, artifact: Any) -> None:
        self.src, self.artifact = src, artifact
        self.function = LoadedKernel(Module(artifact, find_target(artifact.target)), artifact.entry())
        self.packed_metadata = self.metadata

    def _init_handles(self) -> None:
        """Nothing: the code is loaded with the first launch."""

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> None:
        """There is none."""

    def run(
        self, x: int, y: int, z: int, stream: Any, function: LoadedKernel, packed: Any, launch_metadata: Any, enter: Any,
        leave: Any, *args: Any,
    ) -> None:
        """Launch `function` over the grid; `args` are all of the kernel's, compile-time values too."""
        if enter is not None:
            enter(launch_metadata)
        passed = self.src.types
        function.launch((x, y, z), [value for name, value in zip(self.src.fn.arg_names, args, strict=True) if name in passed])
        if leave is not None:
            leave(launch_metadata)


class TritonCompiler:
    """What `make_backend` gives: the compiler for one target."""

    def __init__(self, target: chip.GPUTarget) -> None:
        self.target = target

    def hash(self) -> str:
        """One word for the compiler and its target."""
        return f"{triton_key()}-{target_of(self.target)}"

    def parse_options(self, options: Mapping[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(**options)


def make_backend(target: chip.GPUTarget) -> TritonCompiler:
    """The compiler for a chip in Triton's words."""
    return TritonCompiler(target)


def compile(src: ASTSource, target: chip.GPUTarget | None = None, options: Mapping[str, Any] | None = None) -> CompiledSource:
    """Machine code of a kernel for `target` or the chosen one. Raises CompileError, LaunchError, UsageError TFW0919."""
    artifact = compiler.compile(src.fn, target_of(target), src.types, src.constexprs, **(options or {}))
    return CompiledSource(src, artifact)


def target_of(target: chip.GPUTarget | None) -> str:
    """The target that Triton's words mean: the chosen one where they are its own, or those of the host."""
    chosen = chip.target_info().name
    if target is None or target.backend == _HOST or target == chip.current_target():
        return chosen
    return chip.named(f"{target.backend}:{target.arch}")
