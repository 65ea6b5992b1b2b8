"""Triton's code for each chip has every kind of instruction that the chip is known by, so that running it says something."""

from __future__ import annotations

import re

import pytest

from hsaco_oracles.test_triton_hsaco import TRITON, item_of
from oracles.chips import AMD, GFX942, GFX950, Chip

# Of a chip: what is searched for in the listing of which case.
KINDS = [
    (GFX942, "matmul_tf32", r"v_mfma_f32_\w+_xf32"), (GFX942, "matmul_fp8e4b8", r"v_mfma_f32_\w+_fp8_fp8"),
    (GFX950, "matmul_f16_1_warp", r"global_load_lds_dwordx4"), (GFX950, "matmul_f16", r"ds_read_b64_tr_b16"),
    (GFX950, "matmul_f16", r"\.kernarg_segment_size: (2[6-9]\d|3\d\d)"), (GFX950, "attention", r"ds_read_b64_tr_b16"),
    (GFX950, "sort_rows", r"v_permlane(16|32)_swap"), (GFX950, "matmul_f16_1_warp", r"v_permlane(16|32)_swap"),
    (GFX950, "dot_scaled_e2m1_e2m1", r"v_mfma_scale_f32_\w+_f8f6f4 .*cbsz:4.* blgp:4"),
    (GFX950, "dot_scaled_e4m3_e5m2", r"v_mfma_scale_f32_\w+_f8f6f4 .*(cbsz|blgp):1"),
    (GFX950, "matmul_fp8e4nv", r"v_mfma_f32_\w+_f8f6f4"), (GFX950, "matmul_fp8e5", r"v_mfma_f32_\w+_f8f6f4"),
    (GFX950, "casts", r"v_cvt_scalef32_"), (GFX950, "bf16_arithmetic", r"v_cvt_pk_bf16_f32"),
    (GFX950, "integer_mix", r"v_bitop3_b32"),
]


@pytest.mark.parametrize(("chip", "name", "kind"), [pytest.param(*row, id="-".join([row[0].triton[1], *row[1:]])) for row in KINDS])
def test_the_code_has_it(chip: Chip, name: str, kind: str) -> None:
    assert re.search(rf"^\s+{kind}", item_of(chip, TRITON[chip].case(name)).text, re.MULTILINE)


@pytest.mark.parametrize("chip", AMD, ids=lambda chip: chip.triton[1])
def test_there_are_forty_kernels(chip: Chip) -> None:
    assert len({case.kernel for case in TRITON[chip].cases()}) >= 40
