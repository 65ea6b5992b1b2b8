"""The library's table, its parameters as users give them, and launches made from them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tilefw.api.errors import UsageError
from tilefw.kernels import inputs
from tilefw.kernels.index import KERNELS
from tilefw.kernels.spec import Buffer, load


@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_prepares_a_launch_for_its_own_parameters(name: str) -> None:
    spec = load(name)
    assert spec.name == name
    launch = spec.prepare(spec.resolve({}), np.random.default_rng(0))
    kernel_parameters = [p.name for p in spec.kernel.params]
    assert [*launch.arguments, *launch.constexprs] == kernel_parameters
    expected = spec.expected(spec.resolve({}), launch)
    assert tuple(expected) == launch.outputs
    for output in launch.outputs:
        assert expected[output].shape == launch.buffer(output).array.shape
        assert expected[output].dtype in (np.float64, np.int64, np.uint64)


@pytest.mark.parametrize("name", KERNELS)
def test_one_seed_makes_one_launch(name: str) -> None:
    spec = load(name)
    first, second = (spec.prepare(spec.resolve({}), np.random.default_rng(7)) for _ in range(2))
    for key, value in first.arguments.items():
        other = second.arguments[key]
        if isinstance(value, Buffer) and isinstance(other, Buffer):
            assert value.array.tobytes() == other.array.tobytes()
        else:
            assert value == other


def test_the_table_is_light() -> None:
    code = "import sys, tilefw.kernels.index; print([m for m in ('numpy', 'xdsl', 'yaml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("given", "code", "said"), [
    ({"size": 3}, "TFW0941", "no parameter 'size'"),
    ({"dtype": "fp33"}, "TFW0942", "cannot be 'fp33'"),
    ({"n": "many"}, "TFW0942", "a whole number"),
    ({"n": -1}, "TFW0942", "at least 0"),
    ({"n": True}, "TFW0942", "a whole number"),
    ({"block": 100}, "TFW0942", "cannot be 100"),
])
def test_a_wrong_parameter_is_told(given: dict[str, object], code: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load("vector_add").resolve(given)
    assert caught.value.code == code
    assert said in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("given", "help"), [
    ({"block": 100}, "did you mean 128?"), ({"num_warps": "3"}, "did you mean 2?"), ({"dtype": "fp33"}, "did you mean 'fp32'?"),
    ({"dtype": "complex"}, None),
])
def test_the_nearest_choice_is_suggested(given: dict[str, object], help: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        load("vector_add").resolve(given)
    assert caught.value.help == help


@pytest.mark.parametrize(("name", "help"), [("block_m", "did you mean 'block'?"), ("m", None)])
def test_the_nearest_parameter_is_suggested(name: str, help: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        load("vector_add").resolve({name: 1})
    assert caught.value.code == "TFW0941"
    assert caught.value.help == help


def test_text_is_converted() -> None:
    assert load("vector_add").resolve({"n": "0x10", "dtype": "bf16"})["n"] == 16
    assert load("rope").resolve({"interleaved": "true"})["interleaved"] is True


def test_the_nearest_kernel_is_suggested() -> None:
    with pytest.raises(UsageError) as caught:
        load("vector_ad")
    assert caught.value.code == "TFW0940"
    assert "vector_add" in (caught.value.help or "")


@pytest.mark.parametrize("name", ["fp32", "fp16", "fp8e4nv", "int8", "int1", "uint64"])
def test_special_values_are_drawn(name: str) -> None:
    values = inputs.draw(np.random.default_rng(1), "specials", (400,), name).array.astype(np.float64)
    assert (values == 0).any() and (values == 1).any()
    if name in ("fp32", "fp16"):
        assert np.isnan(values).any() and np.isinf(values).any() and np.signbit(values[values == 0]).any()


def test_outputs_start_with_a_pattern_that_is_no_result() -> None:
    assert not (inputs.empty((64,), "fp32").array == 0).any()


def test_the_table_of_elementwise_operations_is_the_parameter_s_list() -> None:
    from tilefw.kernels.elementwise_table import OPERATIONS
    from tilefw.kernels.index import ELEMENTWISE

    assert tuple(sorted(OPERATIONS)) == tuple(sorted(ELEMENTWISE))
