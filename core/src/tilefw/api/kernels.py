"""What a plugin writes kernels of its own with: `tilefw run PLUGIN:NAME` runs them, and cases of the plugin name them."""

import tilefw.language as tl
from tilefw.kernels.index import KernelInfo, ParameterInfo
from tilefw.kernels.inputs import draw, empty
from tilefw.kernels.spec import Buffer, KernelSpec, Launch
from tilefw.runtime.jit import jit

__all__ = ["Buffer", "KernelInfo", "KernelSpec", "Launch", "ParameterInfo", "draw", "empty", "jit", "tl"]
