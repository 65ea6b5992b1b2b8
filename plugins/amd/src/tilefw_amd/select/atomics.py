"""Atomic accesses: which ones there are, and what their order takes of the caches.

CDNA3 ISA, chapter "Flat memory instructions": GLOBAL_ATOMIC_*. Order and scope: LLVM's AMDGPUUsage, "Memory Model gfx942", table
"AMDHSA Memory Model Code Sequences gfx940, gfx942". A workgroup runs on one compute unit (not in threadgroup split mode), whose L1
serves all its waves: order within it takes no cache action. For other scopes a release writes the L2 back before the atomic, an
acquire invalidates caches behind it. The waits in between are the wait pass's (`waits`).
"""

from __future__ import annotations

from tilefw.api.machine import Operand
from tilefw.api.simt import AtomicAccess, Code
from tilefw_amd.select import access

_INTEGERS = {
    "add": "add", "mins": "smin", "minu": "umin", "maxs": "smax", "maxu": "umax", "and": "and", "or": "or", "xor": "xor",
    "xchg": "swap", "cas": "cmpswap",
}
_OPERATIONS = {
    **{f"{kind}.i32": name for kind, name in _INTEGERS.items()},
    **{f"{kind}.i64": f"{name}_x2" for kind, name in _INTEGERS.items()},
    "add.f32": "add_f32", "add.f64": "add_f64", "add.f16x2": "pk_add_f16", "add.bf16x2": "pk_add_bf16",
}
_LOADS = {"load.i32": "dword", "load.i64": "dwordx2"}
ATOMICS = frozenset({*_OPERATIONS, *_LOADS})

# By scope: what a load says, what an atomic says, and what a write-back or an invalidation does, None for no need of one. Of an
# atomic sc0 asks for the old value, and sc1 tells the system from the agent.
_LOAD_SCOPES = {"workgroup": ["sc0"], "device": ["sc1"], "system": ["sc0", "sc1"]}
_ATOMIC_SCOPES = {"workgroup": [], "device": [], "system": ["sc1"]}
_CACHE_SCOPES = {"workgroup": None, "device": ["sc1"], "system": ["sc0", "sc1"]}
_CACHE_ACTIONS = {"release": "buffer_wbl2", "acquire": "buffer_inv"}


def atomic(code: Code, wanted: AtomicAccess) -> None:
    """Emit one, with what its order takes."""
    if wanted.order in ("release", "acq_rel"):
        fence(code, "release", wanted.scope)
    _access(code, wanted)
    if wanted.order in ("acquire", "acq_rel"):
        fence(code, "acquire", wanted.scope)


def fence(code: Code, order: str, scope: str) -> None:
    """A cache action for each direction, where the scope is wider than a compute unit."""
    words = _CACHE_SCOPES[scope]
    for direction, action in _CACHE_ACTIONS.items():
        if words is not None and order in (direction, "acq_rel"):
            code.effect(action, (), words)


def _access(code: Code, wanted: AtomicAccess) -> None:
    key = f"{wanted.kind}.{wanted.type}"
    (at, *base), names = access.flat_address(code, wanted.address, wanted.immediate)
    result = [] if wanted.result is None else [wanted.result]
    if key in _LOADS:
        opcode, data, words = f"global_load_{_LOADS[key]}", [], _LOAD_SCOPES[wanted.scope]
    else:
        # Of a compare-and-swap the new value stands before the expected one.
        opcode, data = f"global_atomic_{_OPERATIONS[key]}", [code.tuple(wanted.operands[::-1], "v")]
        words = [*(["sc0"] if result else []), *_ATOMIC_SCOPES[wanted.scope]]
    uses: list[Operand] = [at, *data, *base, *names, *words]
    code.effect(opcode, result, uses, predicate=wanted.predicate, buffer=wanted.buffer)
