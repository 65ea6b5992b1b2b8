"""A kernel of cuTile Python, and its bytecode in `scaled.tilebc`: y[i] = factor * x[i] + 1."""

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, ScalarConstraint, export_kernel


@ct.kernel
def scaled(x, y, factor: float, TILE: ct.Constant[int]):
    tile = ct.bid(0)
    ct.store(y, index=(tile,), tile=ct.load(x, index=(tile,), shape=(TILE,)) * factor + 1.0)


array = ArrayConstraint(
    ct.float32, 1, index_dtype=ct.int32, stride_constant=[1], stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False
)
signature = KernelSignature([array, array, ScalarConstraint(ct.float32), 64], CallingConvention.cutile_python_v1())
export_kernel(scaled, [signature], "scaled.tilebc", output_format="tileir_bytecode", bytecode_version="13.3")
