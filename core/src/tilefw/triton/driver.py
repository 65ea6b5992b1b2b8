"""`triton.runtime.driver`: what a program may ask of the device that it runs on; chip.py has the answers."""

from __future__ import annotations

import importlib
import os
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.triton.chip import GPUTarget, capability, current_target, limits, max_shared_mem, threads_per_processor
from tilefw.triton.one_device import require_first
from tilefw.triton.testing import do_bench


class DeviceUtilities:
    """`driver.active.utils`."""

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """Triton's names of a device's numbers: bytes, counts, kHz, bits; clocks and the bus are not known (0)."""
        found = limits()
        return {
            "max_shared_mem": max_shared_mem(), "max_num_regs": found["registers_per_processor"],
            "multiprocessor_count": found["processors"], "warpSize": found["lanes"], "sm_clock_rate": 0, "mem_clock_rate": 0,
            "mem_bus_width": 0, "max_threads_per_sm": threads_per_processor(), "cooperativeLaunch": 0,
        }


    def set_printf_fifo_size(self, size: int) -> None:
        """The room for what one launch prints, in bytes, as TILEFW_PRINT_BYTES sets it."""
        os.environ["TILEFW_PRINT_BYTES"] = str(size)


class ActiveDevice:
    """`driver.active`: one device, whose launches are complete when they return."""

    utils = DeviceUtilities()

    def get_current_target(self) -> GPUTarget:
        return current_target()

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device; raises LaunchError TFW0352 for another."""
        require_first(device)

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return capability()

    def get_active_torch_device(self) -> Any:
        """The device of the tensors that the program should make, as PyTorch writes it."""
        return importlib.import_module("torch").device("cuda", 0)

    def get_device_interface(self) -> Any:
        return importlib.import_module("torch").cuda

    def get_benchmarker(self) -> Any:
        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        torch = importlib.import_module("torch")
        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, cache: Any) -> None:
        cache.zero_()

    @staticmethod
    def is_active() -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise UnsupportedError("tilefw launches without C code of Triton's launcher", "TFW0103")


class DriverConfig:
    """`triton.runtime.driver`: `active` and `default` are the one device that there is."""

    active = default = ActiveDevice()

    def set_active(self, driver: Any) -> None:
        raise UnsupportedError("another driver cannot take tilefw's place", "TFW0103", help="choose a target with --target")

    def reset_active(self) -> None:
        """The one device stays active."""


DRIVER = DriverConfig()


class TritonBackend:
    """One of `triton.backends.backends`: its `driver` tells whether it is the active one."""

    driver = ActiveDevice


# Under two names: programs that compile for tensors of the host ask for that of the host.
BACKENDS = {"tilefw": TritonBackend(), "cpu": TritonBackend()}
