"""A stand-in for NVIDIA's cards and their driver: `libcuda.so.1` in C, answered by our simulator."""

from cuda_standin.machine import CardModel, CudaStandIn, built

__all__ = ["CardModel", "CudaStandIn", "built"]
