"""Models and training steps that torch.compile compiles with the backend are eager PyTorch's, and what has no kernel is said."""

from __future__ import annotations

import copy
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
tilefw_torch = pytest.importorskip("tilefw_torch")

from tilefw_torch.attention import attention, attention_backward  # noqa: E402
from tilefw_torch.decompositions import convolution_backward  # noqa: E402

import tilefw  # noqa: E402
import tilefw.language as tl  # noqa: E402
from tilefw.api.errors import UsageError  # noqa: E402


@tilefw.jit
def squares(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * x, mask=offs < n)


@pytest.fixture(autouse=True)
def _fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()
    tilefw_torch.reset_report()


def compiled(model, target, **options):
    return torch.compile(model, backend="tilefw", options={"target": target, **options})


# The commands of docs/torch.md do it on nvidia-sm80.
@pytest.mark.parametrize(("target", "rows"), [("reference", 1), ("amd-cdna3", 5), ("spatial-sdm1", 5)])
def test_a_product_with_its_epilogue_is_kernels_of_the_target_alone(target, rows):
    model = torch.nn.Sequential(torch.nn.Linear(24, 16), torch.nn.ReLU()).eval()
    x = torch.randn(rows, 24)
    with torch.no_grad():
        found, due = compiled(model, target, fallback="error")(x), model(x)
    assert torch.allclose(found, due, rtol=1e-5, atol=1e-6)
    report = tilefw_torch.report()
    assert report.launches >= 1 and report.fallbacks == {} and {kernel.target for kernel in report.kernels} == {target}


def test_a_training_step_changes_weights_as_eager_does():
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    twin, x, due = copy.deepcopy(model), torch.randn(4, 6), torch.tensor([0, 2, 1, 0])
    for one, run in ((model, compiled(model, "reference", fallback="error")), (twin, twin)):
        optimizer = torch.optim.SGD(one.parameters(), 0.1)
        torch.nn.functional.cross_entropy(run(x), due).backward()
        optimizer.step()
    for found, wanted in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("groups", [1, 2])
def test_the_gradients_of_a_convolution_are_pytorchs(groups):
    # Strides leave a column of the input outside all windows.
    x, weight = torch.randn(2, 4, 8, 10), torch.randn(6, 4 // groups, 3, 3)
    places = ([2, 2], [1, 1], [1, 2], False, [0, 0], groups)
    gradient = torch.randn_like(torch.ops.aten.convolution(x, weight, None, *places))
    given = (gradient, x, weight, [6], *places, [True, True, True])
    for one, due in zip(convolution_backward(*given), torch.ops.aten.convolution_backward(*given), strict=True):
        assert torch.allclose(one, due, rtol=1e-4, atol=1e-4)


def test_a_convolution_and_the_gradient_of_its_weight_leave_nothing_to_the_host():
    model, x = torch.nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), torch.randn(2, 4, 9)
    wanted, made = model(x), compiled(model, "reference", fallback="error")(x)
    assert torch.allclose(made, wanted, rtol=1e-5, atol=1e-6)
    (due,), (found,) = (torch.autograd.grad(out.sum(), [model.weight]) for out in (wanted, made))
    assert torch.allclose(found, due, rtol=1e-4, atol=1e-4)


def test_one_compile_with_dynamic_shapes_serves_every_size():
    model = torch.compile(lambda x: x.softmax(-1) + 1, backend="tilefw", dynamic=True, options={"target": "reference"})
    for rows in (3, 5, 40):
        x = torch.randn(rows, 7)
        assert torch.allclose(model(x), x.softmax(-1) + 1, rtol=1e-5, atol=1e-6)
    report = tilefw_torch.report()
    assert len(report.kernels) == 1 and report.launches == 3


def test_numbers_have_the_types_that_pytorch_gives_them_whatever_they_are():
    def model(x, n):
        return x + n * n, torch.full((3,), n * n)

    made, x = torch.compile(model, backend="tilefw", dynamic=True, options={"target": "reference"}), torch.ones(3).double()
    for n in (5, 100_000, 1, -7):
        assert all(map(torch.equal, made(x, n), model(x, n)))


def test_attention_with_a_function_of_scores_and_a_mask_is_kernels():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    slope, causal = torch.tensor([0.5, 0.25]), create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="cpu")

    def model(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s - (i - j).abs() * slope[h], block_mask=causal)

    given = torch.randn(3, 1, 2, 16, 16).unbind()
    assert torch.allclose(compiled(model, "reference", fallback="error")(*given), model(*given), rtol=1e-4, atol=1e-5)


def test_what_has_no_kernel_is_warned_of_and_counted_or_refused():
    def model(x):
        return torch.linalg.inv(x) + 1

    x = torch.eye(3) * 2
    with pytest.warns(tilefw_torch.FallbackWarning, match="inv"):
        assert torch.allclose(compiled(model, "reference")(x), model(x))
    assert sum(tilefw_torch.report().fallbacks.values()) >= 1
    torch._dynamo.reset()
    with pytest.raises(Exception, match="writes no kernel"):
        compiled(model, "reference", fallback="error")(x)


def test_the_same_text_is_compiled_once_and_needs_no_triton(monkeypatch, tmp_path):
    import torch.utils._triton

    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
    model, x = torch.nn.Softplus(), torch.randn(7)
    compiled(model, "reference")(x)
    kept = sorted(tmp_path.rglob("*"))
    torch._dynamo.reset()
    monkeypatch.setitem(sys.modules, "triton", None)
    torch.utils._triton.has_triton_package.cache_clear()
    try:
        assert torch.allclose(compiled(model, "reference")(x), model(x), rtol=1e-5, atol=1e-6)
    finally:
        torch.utils._triton.has_triton_package.cache_clear()
    assert kept and sorted(tmp_path.rglob("*")) == kept


def test_options_reach_launches_and_an_unknown_one_is_refused_with_the_nearest():
    with pytest.raises(Exception, match="no option 'targt'") as caught:
        compiled(torch.nn.ReLU(), "reference", targt="cpu")(torch.randn(3))
    assert isinstance(caught.value, UsageError) or "UsageError" in str(caught.value)
    with pytest.raises(Exception, match="more than 10 instructions"):
        compiled(torch.nn.ReLU(), "nvidia-sm80", budget=10)(torch.randn(3))
    with pytest.raises(Exception, match="no mode 'max-autotune'"):
        torch.compile(torch.nn.ReLU(), backend="tilefw", mode="max-autotune")(torch.randn(3))


def test_nothing_of_pytorch_stays_changed_and_its_triton_is_its_own():
    from torch._inductor import async_compile, config

    before, triton, backend = async_compile.AsyncCompile.triton, sys.modules.get("triton"), config.cpu_backend
    done = threading.Thread(target=lambda: compiled(torch.nn.ReLU(), "reference")(torch.randn(3)))
    done.start()
    done.join()
    assert async_compile.AsyncCompile.triton is before and config.cpu_backend == backend
    assert triton is None or sys.modules["triton"] is triton
    assert tilefw_torch.report().launches == 1


def test_a_compile_with_a_report_of_its_own_says_there_what_it_made():
    kept = [tilefw_torch.CompileReport(), tilefw_torch.CompileReport()]
    for one in kept:
        compiled(torch.nn.functional.silu, "reference", report=one)(torch.randn(3))
    assert [(len(one.kernels), one.launches) for one in kept] == [(1, 1)] * 2
    assert tilefw_torch.report().kernels == []


def test_attention_and_its_gradient_are_kernels_whether_called_or_written_out():
    given = [torch.randn(1, 2, rows, 8, requires_grad=True) for rows in (5, 7, 7)]
    mask, attention = torch.randn(1, 1, 5, 7), torch.nn.functional.scaled_dot_product_attention

    def model(query, key, value):
        # PyTorch would call for the last what it calls for the others.
        written = (query @ key.transpose(-2, -1)).div(8**0.5).softmax(-1) @ value
        return attention(query, key, value, mask), attention(query, key, value, is_causal=True), written

    run = compiled(model, "reference", fallback="error")
    for found, due in zip(_with_gradients(run, given), _with_gradients(model, given), strict=True):
        assert torch.allclose(found, due, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("dtype", "heads", "bound"), [(torch.float64, 2, 1e-12), (torch.bfloat16, 4, 2e-2)])
def test_attention_of_few_heads_of_keys_keeps_its_precision_and_its_place_in_memory(dtype, heads, bound):
    query = (torch.randn(2, 5, 4, 8) * 4).to(dtype).transpose(1, 2)
    key, value = (torch.randn(2, heads, 7, 8).mul(4).to(dtype) for _ in "kv")
    ops, settings = torch.ops.aten, [0.0, True]
    due = ops._scaled_dot_product_flash_attention_for_cpu(query, key, value, *settings, scale=0.5)
    found = attention(query, key, value, *settings, scale=0.5)
    assert found[0].stride() == due[0].stride()
    given = [torch.randn_like(query), query, key, value, *due, *settings]
    due += ops._scaled_dot_product_flash_attention_for_cpu_backward(*given, scale=0.5)
    found += attention_backward(*given, scale=0.5)
    for one, wanted in zip(found, due, strict=True):
        assert one.dtype == wanted.dtype and torch.allclose(one, wanted, rtol=bound, atol=bound)


def _with_gradients(model, given):
    outs = model(*given)
    return *outs, *torch.autograd.grad(sum(out.square().sum() for out in outs), given)


def test_an_operator_of_a_librarys_kernel_has_its_gradient_in_a_compiled_function():
    @torch.library.custom_op("tilefw_test::squared", mutates_args=())
    def squared(x: torch.Tensor) -> torch.Tensor:  # annotated because the schema follows from it
        out = torch.empty_like(x)
        squares[(1,)](x, out, x.numel(), BLOCK=64, target="reference")
        return out

    squared.register_fake(torch.empty_like)
    squared.register_autograd(
        lambda ctx, gradient: gradient * 2 * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = torch.randn(5, 7, requires_grad=True)
    run = compiled(lambda x: squared(x.sin()), "reference")
    (found,) = torch.autograd.grad(run(x).sum(), x)
    assert torch.allclose(found, (2 * x.sin() * x.cos()), rtol=1e-5, atol=1e-6)
    assert tilefw_torch.report().fallbacks == {"tilefw_test.squared.default": 1}
