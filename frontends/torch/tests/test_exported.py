"""Programs of torch.export run as plans of a target, each launch within its bounds, and give eager PyTorch's results."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
tilefw_torch = pytest.importorskip("tilefw_torch")

from tilefw.api.errors import CheckError, UnsupportedError  # noqa: E402
from tilefw.graph.certificate import certified  # noqa: E402
from tilefw.graph.plan_file import load, save  # noqa: E402
from tilefw.graph.session import Session  # noqa: E402

nn = torch.nn


class Picture(nn.Module):
    """Convolutions, normalisations, pools, a product."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 4, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(4)
        self.depthwise, self.groups = nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.GroupNorm(2, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        y = nn.functional.max_pool2d(self.norm(self.first(x)).relu(), 3, 1, 1)
        y = nn.functional.hardswish(self.groups(self.depthwise(y))) + y
        y = nn.functional.avg_pool2d(y, 2)
        return self.head(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1)).log_softmax(-1)


class Sentence(nn.Module):
    """Embeddings, attention, a feed-forward layer, moves and masks."""

    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.heads, self.wide, self.back = nn.Linear(8, 24), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, words):
        x = self.table(words) + (torch.arange(words.shape[1])[:, None] * 0.25).to(self.table.weight.dtype)
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.heads(self.norm(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.back(nn.functional.gelu(self.wide(y), approximate="tanh"))
        kept = torch.where((words > 3)[..., None], x, x.square().mean(-1, keepdim=True).rsqrt())
        return torch.cat([kept[:, ::2], nn.functional.silu(kept[:, -1:])], 1).var(-1), words[:, words[0] - 1]


class Choices(nn.Module):
    """Defaults that a program leaves out, sums and orders of truth values, promotions, and a result that is given twice."""

    def forward(self, x):
        low, high, kept = x < 0.25, x > -0.25, nn.functional.hardtanh(x)
        found = low + high, torch.minimum(low, high), low.amax(-1), (x.double() > 0).all(), x[:0].sum(0)
        near = x == torch.tensor(0.1, dtype=torch.float64)
        return kept, near, *found, x.index_select(0, torch.tensor(1)), torch.tensor(0.5).softmax(0) + x, kept


class Orders(nn.Module):
    """Scans, extremes and their places, orders, gathers and scatters, with NaN and with places that are asked for twice."""

    def forward(self, x):
        places, kept = torch.tensor([[0, 2, 2], [1, 1, 0]]), torch.where(x.isnan(), 0.5, x)
        order = *x.topk(2), *x.topk(1, 0, largest=False), *x.sort(descending=True), *x.max(0), *x.min(1, keepdim=True)
        found = x.argmax(1), x.argmin(), kept.cumsum(1), kept.cumprod(0), kept.gather(1, places), kept.prod(1)
        put = torch.ops.aten.index_put(kept, [None, torch.tensor([0, -1, 0])], kept + 1, True), kept.flip(1)
        rows = kept[:0]
        nothing = rows.mean(0), rows.amax(1), rows.prod(0)
        row, first, none = kept[0], torch.tensor(1), places[:0]
        single = row.gather(0, first), row.scatter(0, first, 7.0), kept.sum().gather(0, places[0, :1]), kept.gather(0, none)
        return *order, *found, *put, *nothing, *single, kept.scatter_add(1, places, kept), kept.scatter(1, places[:, :1], 7.0)


class Quotients(nn.Module):
    """Remainders and rounded quotients of all signs, kinds of numbers, and pools whose windows differ in size."""

    def forward(self, x):
        whole, by = (x * 4).nan_to_num(1, 2, 3).int(), torch.tensor([[3], [-3]], dtype=torch.int32)
        modes = [torch.div(a, c, rounding_mode=mode) for a, c in ((x, by), (whole, by)) for mode in ("floor", "trunc")]
        rests = x % by, whole % by, torch.fmod(x, by), torch.fmod(whole, by), 7 % by, x.sign(), x.isinf(), whole ^ by, 3**x
        picture = x.nan_to_num(1, 2, 3)[None, None].repeat(1, 1, 2, 2)
        pools = (nn.functional.avg_pool2d(picture, 3, 2, 1, ceil, padded) for ceil, padded in ((True, True), (True, False)))
        shared = nn.functional.adaptive_avg_pool2d(torch.where(picture == 2, float("inf"), picture), (3, 4))
        return *modes, *rests, *pools, shared, nn.functional.interpolate(picture, 5)


class HalfPicture(Picture):
    """In float16, and what compares, scans and bounds there."""

    def __init__(self):
        super().__init__()
        self.half()

    def forward(self, x):
        x = x.half()
        rests = (x * 1000) % 0.7, torch.fmod(x * 1000, 0.7)
        bounds = x == 0.1, x.clamp(max=0.3).amax(-1)
        return super().forward(x), (x + 0.1).cumsum(-1), *bounds, *rests, x.softmax(-1) * 0.1, torch.cat([x, x])


class ShortSentence(Sentence):
    """In bfloat16."""

    def __init__(self):
        super().__init__()
        self.bfloat16()


class Measures(nn.Module):
    """Norms, distances, histograms, memory by strides, pools of three dims, transposed convolutions, runs of rows."""

    def __init__(self):
        super().__init__()
        self.up, self.apart = nn.ConvTranspose2d(2, 4, 3, 2, 1, 1), nn.ConvTranspose2d(4, 4, 3, 2, 1, groups=2, dilation=2)
        self.norm = nn.InstanceNorm2d(4, affine=True)
        self.experts = nn.Parameter(torch.randn(3, 8, 8))

    def forward(self, x):
        norms = [torch.linalg.vector_norm(x, order, -1) for order in (0, 1, 2, 3, float("inf"), float("-inf"))]
        sides = torch.histc(x, 4, -1, 1), torch.cdist(x, x.flip(0) + 1), x.T.contiguous().T.as_strided((2, 3), (3, 1), 2)
        ends_of_parts = torch.histc(torch.arange(-100, 101) / 100, 7, -0.7, 0.7)
        picture = x.reshape(1, 2, 3, 3)
        raised = self.norm(self.apart(self.up(picture)))
        block = raised[:, None, :, :6, :6].contiguous()
        pools = nn.functional.max_pool3d(block, (1, 2, 2), padding=(0, 1, 1)), nn.functional.avg_pool3d(block, 2)
        ends = torch.tensor([1, 1, 3], dtype=torch.int32)
        runs = torch._grouped_mm(nn.functional.pad(x, (0, 2)).bfloat16(), self.experts.bfloat16(), ends).float()
        return *norms, *sides, ends_of_parts, raised, *pools, nn.functional.adaptive_max_pool2d(block[0], 4), runs, None


def _program(model, *inputs):
    torch.manual_seed(0)
    model = model().eval()
    for buffer in model.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5)
    return torch.export.export(model, inputs), model(*inputs)


RUNS = [
    (Picture, torch.linspace(-1, 1, 98).reshape(1, 2, 7, 7), "nvidia-sm80"),
    (Sentence, torch.arange(10).reshape(2, 5), "reference"),
    (Choices, torch.tensor([[-2.0, -0.3, 0.1], [0.2, 0.4, 2.0]]), "reference"),
    (Orders, torch.tensor([[-2.0, float("nan"), 0.1], [0.1, -0.4, 2.0]]), "reference"),
    (Quotients, torch.tensor([[-2.5, 6.0, float("inf")], [-6.0, float("nan"), 0.4]]), "reference"),
    (Measures, torch.linspace(-1.5, 1.25, 18).reshape(3, 6), "reference"),
    (HalfPicture, torch.linspace(-1, 1, 98).reshape(1, 2, 7, 7), "amd-cdna3"),
    (ShortSentence, torch.arange(10).reshape(2, 5), "nvidia-sm80"),
]
_SPACING = {torch.float16: 2**-9, torch.bfloat16: 2**-6}  # of results of 16 bits, which may be rounded another way


@pytest.mark.parametrize(("model", "given", "target"), RUNS)
def test_an_exported_program_gives_eagers_results_from_a_file(model, given, target, tmp_path):
    with torch.no_grad():
        program, due = _program(model, given)
    save(tilefw_torch.export(program, target), tmp_path / "model.tfm")
    plan = load(tmp_path / "model.tfm")
    with Session(plan) as session:
        certificate = certified(session, dict.fromkeys(plan.inputs, given.numpy()))
    assert certificate.ok, [(launch.label, launch.comparisons) for launch in certificate.launches if not launch.ok]
    wanted = [one for one in (due if isinstance(due, tuple) else (due,)) if one is not None]
    for found, one in zip(certificate.outputs.values(), wanted, strict=True):
        allowed = _SPACING.get(one.dtype, 1e-5)
        np.testing.assert_allclose(found.astype(np.float64), one.double().numpy(), rtol=10 * allowed, atol=allowed)


def test_operators_without_a_rule_are_listed():
    with pytest.raises(UnsupportedError, match=r"no kernel is written for .*poisson"):
        tilefw_torch.read_exported(torch.export.export(_Drawn(), (torch.ones(3),)))


class _Drawn(nn.Module):
    def forward(self, x):
        return torch.poisson(x)


def test_what_a_program_changes_is_given_to_a_run_and_given_back():
    model = _Counting()
    program = torch.export.export(model, (torch.zeros(2), torch.zeros(2)))
    plan = tilefw_torch.export(program, "reference")
    assert list(plan.inputs) == ["inner.total", "x", "last"]
    held = {"inner.total": np.zeros(2, np.float32), "last": np.zeros(2, np.float32)}
    last = torch.zeros(2)
    with Session(plan) as session:
        for x in (torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])):
            found = session.run({"x": x.numpy(), **held})
            due = model(x, last)
            held = {name: found.pop(name) for name in held}
            (computed,) = found.values()
            np.testing.assert_array_equal(computed, due)
            np.testing.assert_array_equal(held["inner.total"], model.inner.total)
            np.testing.assert_array_equal(held["last"], last)


class _Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Module()
        self.inner.register_buffer("total", torch.zeros(2))

    def forward(self, x, last):
        self.inner.total.add_(x)
        change = x - last
        last.copy_(x)
        return change * self.inner.total


def test_buffers_and_weights_may_have_the_names_of_arguments():
    program = torch.export.export(_Namesakes(), (torch.zeros(2), torch.zeros(2)))
    plan = tilefw_torch.export(program, "reference")
    assert list(plan.inputs) == ["b_x", "x", "y"]
    held = {name: np.full(2, number, np.float32) for number, name in enumerate(plan.inputs, 3)}
    with Session(plan) as session:
        found = session.run(held)
    assert [one[0] for one in found.values()] == [3 + 4, 5 + 2, 7 * 4 + 7]
    assert list(found)[:2] == ["b_x", "y"]


class _Namesakes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("x", torch.zeros(2))
        self.y = nn.Parameter(torch.full((2,), 2.0))

    def forward(self, x, y):
        self.x.add_(x)
        y.add_(self.y)
        return self.x * x + y


class _Placed(nn.Module):
    """One use of an index that picks three of six rows."""

    def __init__(self, use):
        super().__init__()
        self.use, self.table = use, nn.Embedding(6, 4)

    def forward(self, index):
        return self.use(self.table, index)


_PLACED = [
    ("embedding", "cpu", lambda table, index: table(index)),
    ("index", "nvidia-sm80", lambda table, index: table.weight[index] * 2),
    ("index_put", "cpu", lambda table, index: torch.ops.aten.index_put(table.weight, [index], torch.ones(3, 4))),
    ("scatter", "amd-cdna3", lambda table, index: table.weight.scatter(0, index[:, None], 7.0)),
    ("scatter_add", "reference", lambda table, index: table.weight.scatter_add(0, index[:, None].expand(3, 4), torch.ones(3, 4))),
]


@pytest.mark.parametrize(("node", "target", "use"), _PLACED, ids=[node for node, *_ in _PLACED])
def test_an_index_that_names_no_element_stops_the_run_on_every_kind_of_target(node, target, use):
    model, index = _Placed(use), torch.tensor([0, 5, 2])
    plan = tilefw_torch.export(torch.export.export(model, (index,)), target)
    (name,) = plan.inputs
    with Session(plan) as session:
        (found,) = session.run({name: index.numpy()}).values()
        np.testing.assert_allclose(found, model(index).detach().numpy(), rtol=1e-6)
        with pytest.raises(CheckError, match="along dim 0 names none of its 6 elements") as told:
            session.run({name: np.array([0, 6, 2])})
    assert any("in the model's call" in line and node in line for line in str(told.value).splitlines())
