"""What launches cost, in bytes moved to and from memory meanwhile: the rates by which whole models are fused for every chip.

The A100's data sheet: 1,555 GB/s, 19.5 TFLOP/s in fp32, 156 in TF32, an operation each multiply and each add. From launch to launch
1.3 us are measured by "Look Ma, No Bubbles!" (Hazy Research, 2025). Later chips have other numbers in about these ratios.
"""

from __future__ import annotations

from tilefw.api import CostRates

COST_RATES = CostRates(launch=1555e3 * 1.3, operation=1.555 / (19.5 / 2), multiply_add=1.555 / (156 / 2))
