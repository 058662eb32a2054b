"""A Triton driver that has a target and nothing else: enough to generate code and to interpret it."""

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime.driver import driver


class NoGpuDriver(DriverBase):
    def __init__(self) -> None:
        pass

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self):
        return torch.cpu

    def get_benchmarker(self):
        return lambda *args, **options: [0.0] * 3

    def map_python_to_cpp_type(self, kind: str) -> str:
        return "void*"

    def get_empty_cache_for_benchmark(self):
        raise RuntimeError("there is no device to benchmark on")

    def clear_cache(self, cache) -> None:
        pass


def activate() -> None:
    driver.set_active(NoGpuDriver())
