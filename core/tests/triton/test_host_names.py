"""What Triton's programs ask of the host side beside launching: tensors read as other types, a kernel's text, settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.runtime.jit import JITFunction
from tilefw.triton import knobs
from tilefw.triton.kernels import TensorWrapper, reinterpret, triton_key, type_canonicalisation_dict


@tilefw.jit
def copied(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr).to(tl.int32))


def test_a_wrapper_reads_the_memory_of_its_base_as_another_type() -> None:
    base, out = np.array([-1], np.int8), np.zeros(1, np.int32)
    wrapper = reinterpret(base, tl.uint8)
    assert isinstance(wrapper, TensorWrapper) and wrapper.base is base and wrapper.dtype is tl.uint8 and wrapper.shape == (1,)
    with tilefw.target("reference"):
        copied[(1,)](wrapper, out)
    assert out[0] == 255


def test_a_wrapper_that_gets_the_type_of_its_memory_back_is_the_tensor_itself() -> None:
    base = np.zeros(4, np.int8)
    assert reinterpret(reinterpret(base, "uint8"), tl.int8) is base
    assert reinterpret(reinterpret(base, "uint8"), "fp8e5").dtype is tl.float8e5


def test_names_of_element_types_lead_to_types_through_signatures() -> None:
    for words, type in {"float16": tl.float16, "bfloat16": tl.bfloat16, "uint32": tl.uint32, "bool": tl.int1,
                        "float8e4nv": tl.float8e4nv, "float8_e5m2": tl.float8e5, "i64": tl.int64}.items():
        assert tl.str_to_ty(type_canonicalisation_dict[words], None) is type
    assert tl.str_to_ty("*kfp16", None) == tl.pointer_type(tl.float16, const=True) and tl.str_to_ty("*kfp16").is_const()
    assert tl.str_to_ty("constexpr", 3) == tl.constexpr_type(3)


def test_a_kernel_is_compiled_from_the_text_that_it_was_given_last() -> None:
    kernel, out = JITFunction(copied.fn), np.zeros(1, np.int32)
    with tilefw.target("reference"):
        for factor in (2, 3):
            kernel._unsafe_update_src(copied.src.replace("tl.load(x_ptr)", f"({factor} * tl.load(x_ptr))"))
            kernel[(1,)](np.array([5], np.int32), out)
            assert out[0] == 5 * factor


def test_a_kernels_text_has_no_margin_and_no_decorator() -> None:
    if True:
        @tilefw.jit(do_not_specialize=["n"])
        def kernel(n):
            if n:
                pass

    assert kernel.src.splitlines()[:3] == ["def kernel(n):", "    if n:", "        pass"]


@tilefw.jit
def typed(out_ptr, N: tl.constexpr):
    tl.static_assert(N.type == tl.constexpr_type(3) and isinstance(N.type, tl.constexpr_type))
    several: tl.constexpr = (N, (1, 2.5))
    tl.static_assert(several.type == ((3, (1, 2.5))).type and several.type != (3, (1, 2)).type)
    tl.store(out_ptr, N)


def test_a_compile_time_value_has_a_type_of_its_own() -> None:
    out = np.zeros(1, np.int32)
    with tilefw.target("reference"):
        typed[(1,)](out, N=3)
    assert out[0] == 3


def test_settings_come_back_after_a_scope_and_by_reset() -> None:
    with knobs.cache.scope():
        knobs.cache.dir = "elsewhere"
        assert knobs.cache.copy().dir == "elsewhere" and knobs.cache.copy().reset().dir is None
    assert knobs.cache.dir is None and isinstance(knobs.amd, knobs.base_knobs)


def test_the_key_of_the_compiler_is_of_the_target_in_use() -> None:
    with tilefw.target("reference"):
        here = triton_key()
        assert here == triton_key()
    with tilefw.target("spatial-sdm1"):
        assert triton_key() != here


def test_files_of_a_program_are_kept_by_their_key(installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.cache import CacheManager, FileCacheManager, get_cache_manager

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    files = get_cache_manager("0aff")
    assert isinstance(files, FileCacheManager) and isinstance(files, CacheManager)
    assert files.get_file("a.so") is None and files.get_group("all") is None
    kept = {"a.so": files.put(b"\x7f", "a.so"), "a.json": files.put("{}", "a.json", binary=False)}
    files.put_group("all", kept)
    again = get_cache_manager("0aff")
    assert again.get_group("all") == kept and Path(kept["a.so"]).read_bytes() == b"\x7f"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["BL7Q"]
    assert get_cache_manager("0a").get_file("a.so") is None
    Path(kept["a.json"]).unlink()
    assert again.get_group("all") is None


def test_a_program_names_the_class_that_keeps_its_files(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.runtime.cache import FileCacheManager, get_cache_manager

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "collections:UserString")
    assert get_cache_manager("0a") == "BI"
    monkeypatch.setattr(knobs.cache, "manager_class", FileCacheManager)
    assert isinstance(get_cache_manager("0a"), FileCacheManager)
