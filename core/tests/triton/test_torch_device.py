"""PyTorch on a host that stands for a GPU: autocast, the compiler, operators, hooks, what is asked of memory and streams."""

from __future__ import annotations

import importlib.util

import pytest

pytestmark = [
    pytest.mark.usefixtures("installed"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="wants PyTorch"),
]


def test_products_are_of_half_precision_and_sums_of_single():
    import torch

    x = torch.ones(4, 4, device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        product = x @ x
        assert torch.is_autocast_enabled("cuda") and product.dtype is torch.float16
        assert product.sum().dtype is product.exp().dtype is torch.nn.functional.softmax(product, -1).dtype is torch.float32
        with torch.autocast(device_type="cuda", enabled=False):
            assert (x @ x).dtype is torch.float32
        assert torch.nn.functional.linear(x, x).dtype is torch.float16
    assert (x @ x).dtype is torch.float32 and product.sum().dtype is torch.float16


def test_autocast_leaves_a_result_where_the_program_wants_it():
    import torch

    half = torch.zeros(4, device="cuda", dtype=torch.float16)
    with torch.autocast("cuda"):
        torch.exp(half, out=half)
    assert half.tolist() == [1] * 4


def test_custom_functions_are_given_what_they_ask_for():
    import torch

    class Doubled(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, x):
            assert not torch.is_autocast_enabled("cuda")
            return (x @ x) * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad):
            return grad @ grad

    half = torch.ones(2, 2, device="cuda", dtype=torch.float16, requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        made = Doubled.apply(half)
    made.sum().backward()
    assert made.dtype is torch.float32 and half.grad.dtype is torch.float16


def test_the_compiler_leaves_functions_as_they_are():
    import torch

    def squares(x):
        return torch.func.grad_and_value(lambda y: (y * y).sum())(x)

    compiled = torch.compile(fullgraph=True, mode="reduce-overhead")(squares)
    assert compiled is squares
    assert [found.tolist() for found in compiled(torch.ones(2, device="cuda"))] == [[2, 2], 2]


def test_operators_of_a_gpu_serve_its_tensors_and_run_as_the_program():
    import torch

    @torch.library.custom_op("tilefw_test::next", mutates_args=(), schema="(Tensor x) -> Tensor")
    def following(x):
        raise AssertionError("the operator of any device")

    @following.register_kernel("cuda")
    def _(x):
        return x + torch.ones(2, device="cuda")

    library = torch.library.Library("tilefw_test", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: 2 * x, "CUDA")
    library.impl("twice", lambda x: 3 * x, "CPU")  # serves tensors that a program on a GPU does not have
    x = torch.ones(2, device="cuda")
    assert following(x).tolist() == torch.ops.tilefw_test.twice(x).tolist() == [2, 2]
    library.define("seen(Tensor x) -> Tensor")
    library.impl("seen", lambda x: x if torch.ones(1, device="cuda").is_cuda else -x, "Autograd")
    assert torch.ops.tilefw_test.seen(x).tolist() == [1, 1]


def test_an_operator_of_the_host_is_heard_once_the_gpus_is_gone():
    import torch

    whole = torch.library.Library("tilefw_gone", "DEF")
    whole.define("twice(Tensor x) -> Tensor")
    x = torch.ones(2, device="cuda")
    with torch.library._scoped_library("tilefw_gone", "IMPL") as library:
        library.impl("twice", lambda x: 2 * x, "CUDA")
        assert torch.ops.tilefw_gone.twice(x).tolist() == [2, 2]
    later = torch.library.Library("tilefw_gone", "IMPL")
    later.impl("twice", lambda x: 3 * x, "CPU")
    assert torch.ops.tilefw_gone.twice(x).tolist() == [3, 3]


def test_hooks_and_recomputation_in_backward_are_the_programs():
    import torch
    from torch.utils.checkpoint import checkpoint

    seen = []
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    leaf.register_hook(lambda grad: seen.append((grad.is_cuda, torch.empty(1, device="cuda").device.type)))
    for reentrant in (True, False):
        made = checkpoint(lambda x: x * torch.full((3,), 2.0, device="cuda"), leaf, use_reentrant=reentrant)
        (made * made).sum().backward()
    assert torch.autograd.grad((leaf * 3).sum(), leaf)[0].tolist() == [3, 3, 3]
    assert leaf.grad.tolist() == [16, 16, 16] and seen == [(True, "cuda")] * 3


def test_memory_streams_and_devices_answer():
    import io
    from concurrent.futures import ThreadPoolExecutor

    import torch

    from tilefw.api.errors import LaunchError

    free, whole = torch.cuda.mem_get_info()
    assert 0 < free <= whole == torch.cuda.get_device_properties(0).total_memory
    assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == torch.cuda.max_memory_allocated() == 0
    x = torch.ones(2, device="cuda")
    x.record_stream(torch.cuda.current_stream())
    with torch.cuda.device_of(x), torch.cuda.nvtx.range("named"):
        assert torch.accelerator.current_accelerator().type == "cuda" and torch.accelerator.device_count() == 1
    torch.set_default_device("cuda")
    assert torch.ones(1).is_cuda and torch.get_default_device() == x.device
    with ThreadPoolExecutor(1) as other:
        assert other.submit(torch.get_default_device).result().type == "cpu"
    torch.set_default_device(None)
    assert torch.Generator("cuda").device == x.device
    stored = io.BytesIO()
    torch.save(x, stored)
    for place in (None, "cuda", {"cpu": "cuda:0"}):
        stored.seek(0)
        assert torch.load(stored, map_location=place).tolist() == [1, 1]
    stored.seek(0)
    with pytest.raises(LaunchError, match="asks for device 1"):
        torch.load(stored, map_location="cuda:1")
    told = torch.serialization.location_tag
    torch.serialization.location_tag = lambda storage: "cuda:0"
    try:
        stored = io.BytesIO()
        torch.save(x, stored)
    finally:
        torch.serialization.location_tag = told
    for place in (None, {}, {"cuda:3": "cuda:0"}, {"cuda:0": "cpu"}, lambda storage, tag: None):
        stored.seek(0)
        assert torch.load(stored, map_location=place).tolist() == [1, 1]
    stored.seek(0)
    assert torch.load(stored, map_location={"cuda:0": "meta"}).is_meta


@pytest.mark.filterwarnings("ignore")
def test_a_script_is_loaded_into_the_hosts_memory():
    import io

    import torch

    stored = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Identity()), stored)
    for place in (None, "cuda"):
        stored.seek(0)
        assert torch.load(stored, map_location=place, weights_only=False)(torch.ones(1)).tolist() == [1]


def test_a_system_need_not_say_how_much_memory_it_has(monkeypatch):
    import os

    from tilefw.triton import torch_memory

    monkeypatch.delitem(os.sysconf_names, "SC_AVPHYS_PAGES")
    assert torch_memory.free_and_total() == (torch_memory.total(),) * 2 != (0, 0)
    monkeypatch.delattr(os, "sysconf_names")
    assert torch_memory.free_and_total() == (0, 0)


def test_nothing_of_it_stays_behind():
    import torch

    import tilefw.triton

    tilefw.triton.uninstall()
    assert not hasattr(torch._C, "_cuda_getCurrentRawStream") and torch.ones(1).device.type == "cpu"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    tilefw.triton.install()
