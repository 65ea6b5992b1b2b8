"""What launches cost, in bytes moved to and from memory meanwhile: the rates by which whole models are fused for every chip.

The MI300X's data sheet: 5.3 TB/s, 163.4 TFLOP/s in fp32 by vectors and by matrices, an operation each multiply and each add. From
launch to launch no source has a time: 1.3 us are what "Look Ma, No Bubbles!" (Hazy Research, 2025) measures on another vendor's.
"""

from __future__ import annotations

from tilefw.api import CostRates

COST_RATES = CostRates(launch=5.3e6 * 1.3, operation=5.3 / (163.4 / 2), multiply_add=5.3 / (163.4 / 2))
