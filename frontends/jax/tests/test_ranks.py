"""`jax.shard_map` on a node of simulated devices: no device of a mesh is there, and each collective does what NumPy does."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilefw_jax
from jax.sharding import AbstractMesh, PartitionSpec

from tilefw.api.errors import UnsupportedError

RANKS = 4
MESH = AbstractMesh((RANKS,), ("tp",))
DIVIDED, WHOLE = PartitionSpec("tp"), PartitionSpec()


def shared(function, operands, results, mesh=MESH):
    return jax.shard_map(function, mesh=mesh, in_specs=operands, out_specs=results, check_vma=False)


def test_a_tensor_parallel_layer_is_the_whole_layer():
    rng = np.random.default_rng(0)
    x, up, down = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((8, 32), (32, 48), (48, 32)))
    layer = shared(
        lambda x, up, down: jax.lax.psum(jax.nn.relu(x @ up) @ down, "tp") + x,
        (WHOLE, PartitionSpec(None, "tp"), DIVIDED), WHOLE,
    )
    compiled = tilefw_jax.jit(layer, target="reference")
    np.testing.assert_array_equal(compiled(x, up, down), np.maximum(x @ up, 0) @ down + x)
    plan = compiled.plan(x, up, down)
    assert plan.ranks == RANKS and dict(plan.divided) == {"input1": 1, "input2": 0}


def test_every_collective_of_jax_does_what_numpy_does():
    def function(x):
        every = jax.lax.all_gather(x, "tp", axis=1, tiled=True)
        sums = jax.lax.psum_scatter(every, "tp", scatter_dimension=1, tiled=True)
        exchanged = jax.lax.all_to_all(x, "tp", 0, 1, tiled=True)
        moved = jax.lax.ppermute(x, "tp", [(0, 1), (1, 3)])
        number = jax.lax.axis_index("tp") + jnp.zeros((1,), jnp.int32)
        return sums, exchanged, moved, number, jax.lax.pmax(x, "tp"), jax.lax.psum(x.astype(jnp.int32), "tp")

    x = np.random.default_rng(1).integers(-5, 5, (4 * RANKS, 4)).astype(np.float32)
    parts = x.reshape(RANKS, 4, 4)
    compiled = tilefw_jax.jit(shared(function, (DIVIDED,), (DIVIDED,) * 4 + (WHOLE,) * 2), target="reference")
    sums, exchanged, moved, number, largest, total = map(np.asarray, compiled(x))
    every = np.concatenate(parts, 1)
    np.testing.assert_array_equal(sums, np.concatenate([RANKS * every[:, 4 * rank : 4 * rank + 4] for rank in range(RANKS)]))
    np.testing.assert_array_equal(exchanged, np.concatenate([parts[:, rank].reshape(1, -1) for rank in range(RANKS)]))
    np.testing.assert_array_equal(moved, np.concatenate([np.zeros((4, 4)), parts[0], np.zeros((4, 4)), parts[1]]))
    np.testing.assert_array_equal(number, np.arange(RANKS))
    np.testing.assert_array_equal(largest, parts.max(0))
    np.testing.assert_array_equal(total, parts.sum(0))


def test_what_is_divided_is_computed_by_all_where_it_is_no_input():
    function = shared(lambda x: x * 2, (DIVIDED,), DIVIDED)
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(tilefw_jax.jit(lambda x: function(x + 1), target="reference")(x), (x + 1) * 2)


def test_groups_and_meshes_of_several_axes_are_refused():
    x = np.zeros((8, 4), np.float32)
    some = shared(lambda x: jax.lax.psum(x, "tp", axis_index_groups=[[0, 1], [2, 3]]), (DIVIDED,), DIVIDED)
    with pytest.raises(UnsupportedError) as caught:
        tilefw_jax.jit(some, target="reference")(x)
    assert "a collective of the groups [[0, 1], [2, 3]], not of all 4 ranks" in str(caught.value)
    two = AbstractMesh((2, 2), ("dp", "tp"))
    with pytest.raises(UnsupportedError) as caught:
        tilefw_jax.jit(shared(lambda x: jax.lax.psum(x, "tp"), (PartitionSpec("dp", "tp"),), PartitionSpec("dp"), two))(x)
    assert "a mesh of several axes" in str(caught.value)
