"""What our kernels are measured against on a card: the libraries that PyTorch calls, AITER, and Triton.

Each peer is a function of the launch's arrays that gives what to call, or raises `Absent` with the reason why it is not there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from library import in_triton, in_triton_value

from tilefw.kernels.spec import Buffer, KernelSpec, Launch

Call = Callable[[], Any]
Made = Callable[[Mapping[str, Any]], Call]


class Absent(Exception):
    """A peer is not on this machine."""


def pytorch() -> Any:
    """PyTorch, where it is there and sees a card."""
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        raise Absent("PyTorch is not installed") from None
    if not torch.cuda.is_available():
        raise Absent("PyTorch sees no card")
    return torch


def tensors(launch: Launch) -> dict[str, Any]:
    """The launch's arguments with their buffers as tensors on the card."""
    torch = pytorch()
    return {name: _tensor(torch, value) if isinstance(value, Buffer) else value for name, value in launch.arguments.items()}


def _tensor(torch: Any, buffer: Buffer) -> Any:
    array = np.ascontiguousarray(buffer.array)
    plain = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}.get(buffer.dtype)
    if plain is None:
        raise Absent(f"no tensor of {buffer.dtype} is made here")
    width = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[array.dtype.itemsize]
    return torch.from_numpy(array.view(width).copy()).cuda().view(getattr(torch, plain))


# -- products: a, b and the result are `a_ptr`, `b_ptr`, `out_ptr` ----------------------------------------------------------------


def blas(library: str) -> Made:
    """torch.matmul by one of the libraries that PyTorch can be told to prefer."""

    def made(tensors: Mapping[str, Any]) -> Call:
        torch = pytorch()
        try:
            torch.backends.cuda.preferred_blas_library(library)
        except (RuntimeError, AttributeError, KeyError) as error:
            raise Absent(f"this PyTorch has no {library}: {error}") from None
        a, b, out = tensors["a_ptr"], tensors["b_ptr"], tensors["out_ptr"]
        return lambda: torch.matmul(a, b, out=out)

    return made


# -- attention: `q_ptr`, `k_ptr`, `v_ptr` are (batch, heads, length, head size) ---------------------------------------------------


def rocm_flash(library: str, causal: bool) -> Made:
    """PyTorch's scaled dot product by one of its flash-attention libraries for ROCm."""

    def made(tensors: Mapping[str, Any]) -> Call:
        torch = pytorch()
        try:
            torch.backends.cuda.preferred_rocm_fa_library(library)
        except (RuntimeError, AttributeError, KeyError) as error:
            raise Absent(f"this PyTorch has no {library}: {error}") from None
        q, k, v = (tensors[name] for name in ("q_ptr", "k_ptr", "v_ptr"))
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return made


def attention_by(backend: str, causal: bool) -> Made:
    """PyTorch's scaled dot product by one backend of its own (torch.nn.attention.SDPBackend)."""

    def made(tensors: Mapping[str, Any]) -> Call:
        torch = pytorch()
        from torch.nn.attention import SDPBackend, sdpa_kernel  # type: ignore[import-not-found]

        chosen = getattr(SDPBackend, backend)
        q, k, v = (tensors[name] for name in ("q_ptr", "k_ptr", "v_ptr"))

        def call() -> None:
            with sdpa_kernel(chosen):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        return call

    return made


def aiter(causal: bool) -> Made:
    """AITER's flash attention, which is CK's or written by hand."""

    def made(tensors: Mapping[str, Any]) -> Call:
        try:
            from aiter import flash_attn_func  # type: ignore[import-not-found]
        except ImportError:
            raise Absent("AITER is not installed") from None
        q, k, v = (tensors[name].transpose(1, 2).contiguous() for name in ("q_ptr", "k_ptr", "v_ptr"))
        return lambda: flash_attn_func(q, k, v, causal=causal)

    return made


# -- Triton, with our kernel's own source -----------------------------------------------------------------------------------------


def triton(spec: KernelSpec, launch: Launch, tensors: Mapping[str, Any], chip: str | None = None) -> Call:
    """The kernel of the library, compiled and launched by Triton with the same tile and options: for the card's chip, or for an
    earlier `chip` whose code it runs (`sm80`)."""
    pytorch()
    try:
        import triton as installed  # noqa: F401
    except ImportError:
        raise Absent("Triton is not installed") from None
    kernel = in_triton(spec.kernel, {})
    constexprs = {name: in_triton_value(value, {}) for name, value in launch.constexprs.items()}

    def call() -> None:
        with _compiling_for(chip):
            kernel[launch.grid](**tensors, **constexprs, **launch.keywords)

    return call


@contextmanager
def _compiling_for(chip: str | None) -> Iterator[None]:
    """Triton reads the variable when it compiles (`knobs.runtime.override_arch`)."""
    name = "TRITON_OVERRIDE_ARCH"
    before = os.environ.pop(name, None)
    if chip is not None:
        os.environ[name] = chip
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before
