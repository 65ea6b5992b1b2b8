"""Tensors of a compiled graph stay on a device with memory of its own, and the host sees what is newest where it looks."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
tilefw_torch = pytest.importorskip("tilefw_torch")

from tilefw_torch import resident_call  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tilefw.runtime.executor import Executor, executor_for  # noqa: E402
from tilefw.runtime.plugins.loader import find_target  # noqa: E402

TARGET = "nvidia-sm80"


@pytest.fixture(autouse=True)
def _fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()


def compiled(model, **options):
    report = tilefw_torch.CompileReport()
    return torch.compile(model, backend="tilefw", options={"target": TARGET, "report": report, **options}), report


def test_what_is_between_kernels_is_not_copied_back():
    model, x = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Softmax(-1), torch.nn.Linear(64, 8)), torch.randn(4, 32)
    run, report = compiled(model)
    with torch.no_grad():
        assert torch.allclose(run(x), model(x), rtol=1e-5, atol=1e-6)
    assert report.launches >= 3 and report.read_bytes == 4 * 8 * 4


@pytest.mark.filterwarnings("ignore::tilefw_torch.FallbackWarning")
def test_an_operator_on_the_host_sees_and_gives_what_is_newest():
    def model(x):
        doubled = x.softmax(-1) + 2 * torch.eye(3)
        return torch.linalg.inv(doubled).cos() + doubled

    x = torch.randn(3, 3)
    run, report = compiled(model)
    assert torch.allclose(run(x), model(x), rtol=1e-4, atol=1e-5) and report.fallbacks and report.launches >= 2


@pytest.mark.filterwarnings("ignore::tilefw_torch.FallbackWarning")
def test_an_operator_that_calls_others_on_the_host_is_one_operator():
    """Activations that are dropped at random, and computed again for the gradient, by PyTorch's own numbers."""
    layer, x = torch.nn.Linear(16, 16), torch.randn(4, 16, requires_grad=True)

    def model(x):
        return checkpoint(lambda y: torch.nn.functional.dropout(layer(y).sin(), 0.5).cos(), x, use_reentrant=False).sum()

    run, _ = compiled(model)
    gradients = []
    for one in (run, model):
        torch.manual_seed(3)
        with torch._inductor.config.patch(fallback_random=True):
            gradients += torch.autograd.grad(one(x), x)
    assert torch.allclose(*gradients, rtol=1e-4, atol=1e-5)


def test_what_a_graph_changes_of_its_inputs_is_changed():
    def model(x):
        x.mul_(2)
        return x.softmax(-1)

    x = torch.randn(3, 5)
    twin = x.clone()
    run, _ = compiled(model)
    for _ in range(2):
        assert torch.allclose(run(x), model(twin), rtol=1e-5, atol=1e-6) and torch.allclose(x, twin)


def test_weights_that_stay_are_copied_once_and_again_when_they_change():
    model, x = torch.nn.Linear(64, 32, bias=False), torch.randn(4, 64)
    run, report = compiled(model, weights="resident")
    with torch.no_grad():
        assert torch.allclose(run(x), model(x), rtol=1e-5, atol=1e-5)
        first = report.written_bytes
        assert torch.allclose(run(x), model(x), rtol=1e-5, atol=1e-5)
        assert first >= 64 * 32 * 4 > report.written_bytes - first
        model.weight.mul_(-3)
        assert torch.allclose(run(x), model(x), rtol=1e-5, atol=1e-5)
        model.weight.data = torch.randn(32, 64)
        assert torch.allclose(run(x), model(x), rtol=1e-5, atol=1e-5)
        x.mul_(2)
        x.numpy()[0] = 7.0  # an input's versions do not tell this
        assert torch.allclose(run(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_a_forward_pass_saved_is_no_weight_of_the_backward_one(dynamic):
    """An input that NumPy fills anew for each step is saved for the gradient of the weight, as sizes are."""
    model, memory = torch.nn.Linear(16, 8), torch.randn(4, 16).numpy()
    run = torch.compile(model, backend="tilefw", options={"target": TARGET, "weights": "resident"}, dynamic=dynamic)
    x = torch.from_numpy(memory)
    for number in range(2):
        memory[:] = torch.randn(4, 16).numpy()
        found, due = (torch.autograd.grad(one(x).sin().sum(), model.weight)[0] for one in (run, model))
        assert torch.allclose(found, due, rtol=1e-4, atol=1e-5), number


@pytest.mark.parametrize("fused, compile", [(False, False), (True, False), (True, True)])
def test_an_optimizers_step_writes_weights_that_stay(fused, compile):
    """A fused one does not count versions."""
    model, x = torch.nn.Linear(16, 8), torch.randn(4, 16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
    run, _ = compiled(model, weights="resident")
    step = torch.compile(lambda: optimizer.step(), backend="aot_eager") if compile else optimizer.step
    for _ in range(3):
        with torch.no_grad():
            assert torch.allclose(run(x), model(x), rtol=1e-4, atol=1e-5)
        model(x).sin().sum().backward()
        step()


def test_what_stayed_on_a_device_is_freed_when_launches_run_on_another(monkeypatch):
    target = find_target(TARGET)
    device = executor_for(target, "sim").device
    before = device.memory_info()["used"]
    model, x = torch.nn.Linear(16, 16), torch.randn(4, 16)
    run, _ = compiled(model, weights="resident")
    with torch.no_grad():
        run(x)
        assert device.memory_info()["used"] > before
        other = Executor(target.backend.simulator())
        monkeypatch.setattr(resident_call, "executor_for", lambda *said: other)
        run(x)
    assert device.memory_info()["used"] == before


def test_a_graph_that_is_gone_holds_nothing_on_the_device():
    device = executor_for(find_target(TARGET), "sim").device
    before = device.memory_info()["used"]
    model, x = torch.nn.Linear(16, 16), torch.randn(4, 16)
    run, _ = compiled(model, weights="resident")
    with torch.no_grad():
        run(x)
    assert device.memory_info()["used"] > before
    del run, model
    torch._dynamo.reset()
    gc.collect()
    assert device.memory_info()["used"] == before
