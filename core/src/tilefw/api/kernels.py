"""What a plugin writes kernels of its own with: `tilefw run PLUGIN:NAME` runs them, and cases of the plugin name them."""

from tilefw.kernels.index import KernelInfo, Parameter
from tilefw.kernels.inputs import draw, empty
from tilefw.kernels.spec import Buffer, KernelSpec, Launch

__all__ = ["Buffer", "KernelInfo", "KernelSpec", "Launch", "Parameter", "draw", "empty"]
