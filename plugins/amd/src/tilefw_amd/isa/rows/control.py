"""Program flow, waits, barriers, messages and the wave's own state (CDNA3 ISA, sections "SOPP", "SOP1", "SOPC", "SOPK": control).

What would need a host, a debugger, a trap handler or another wave's hardware stops the launch with an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable

from tilefw.api.sim import Barrier, Branch, Exit, Jump, Wait
from tilefw_amd.isa.row import Chapter, Mode
from tilefw_amd.isa.rows.scalar import said
from tilefw_amd.isa.text.immediates import WAIT_COUNTERS, counter, highest

CHAPTER = Chapter()
row = CHAPTER.row


def refused(doc: str, message: str, *results: int) -> Callable[..., Callable[..., object]]:
    """A row that stops the launch; `results` are the widths of its destinations."""

    def undefined(lanes, bits: int):
        return lanes.undefined(bits) if bits <= 64 else tuple(lanes.undefined(32) for _ in range(bits // 32))

    def meaning(lanes, *sources):
        lanes.trap(message)
        values = tuple(undefined(lanes, bits) for bits in results)
        return values[0] if len(values) == 1 else values or None

    return said(doc, meaning)


# --- branches ---------------------------------------------------------------------------------------------------------


@row("s_branch @target", sopp=2, unit="control", section="SOPP", wave=True, flow=True)
def s_branch(m):
    """Go to the target."""
    return Branch(m.target)


def _branch_on_scc(expected: int) -> Callable[..., object]:
    def build(m):
        return Branch(m.target), (lambda lanes, scc: scc) if expected else (lambda lanes, scc: lanes.not_(scc))

    build.__doc__ = f"Go to the target if SCC is {expected}."
    return build


def _branch_on_mask(register: str, comparison: str) -> Callable[..., object]:
    def build(m):
        return Branch(m.target), lambda lanes, mask: lanes.compare(mask, lanes.const(0, 64), comparison, False)

    build.__doc__ = f"Go to the target if {register} is {'' if comparison == 'eq' else 'not '}zero."
    return build


for _expected in (0, 1):
    row(f"s_cbranch_scc{_expected} @target, <scc", sopp=4 + _expected, unit="control", section="SOPP", wave=True, flow=True)(
        _branch_on_scc(_expected)
    )
for _register, _opcode in (("vcc", 6), ("exec", 8)):
    for _suffix, _place, _comparison in (("z", 0, "eq"), ("nz", 1, "ne")):
        row(f"s_cbranch_{_register}{_suffix} @target, <{_register}",
            sopp=_opcode + _place, unit="control", section="SOPP", wave=True, flow=True)(
            _branch_on_mask(_register.upper(), _comparison)
        )

for _name, _opcode in (("cdbgsys", 23), ("cdbguser", 24), ("cdbgsys_or_user", 25), ("cdbgsys_and_user", 26)):
    row(f"s_cbranch_{_name} @target", sopp=_opcode, unit="control", section="SOPP", wave=True)(
        refused("Go to the target if the debugger set the flag.", f"s_cbranch_{_name}: the simulator has no debugger's flags")
    )


# --- addresses of code -----------------------------------------------------------------------------------------------------


@row("s_getpc_b64 d:b64, <pc", sop1=28, unit="control", section="SOP1", wave=True)
def s_getpc_b64(m):
    """d = the address of the next instruction."""
    return lambda lanes, pc: pc


@row("s_setpc_b64 a:b64=s", sop1=29, unit="control", section="SOP1", wave=True, flow=True)
def s_setpc_b64(m):
    """Go to the address a."""
    return Jump(), lambda lanes, a: a


@row("s_swappc_b64 d:b64, a:b64, <pc", sop1=30, unit="control", section="SOP1", wave=True, flow=True)
def s_swappc_b64(m):
    """d = the address of the next instruction; go to the address a."""
    return Jump(), lambda lanes, a, pc: (a, pc)


@row("s_call_b64 d:b64, @target, <pc", sopk=21, unit="control", section="SOPK", wave=True, flow=True)
def s_call_b64(m):
    """d = the address of the next instruction; go to the target."""
    return Branch(m.target), lambda lanes, pc: (lanes.const(1, 1), pc)


_FORKS = "the simulator has no stack of forked branches"
row("s_cbranch_g_fork a:b64=sc, b:b64=sc", sop2=41, unit="control", section="SOP2", wave=True)(
    refused("Branch both ways: lanes of mask a go to the address b, the others later.", f"s_cbranch_g_fork: {_FORKS}")
)
row("s_cbranch_i_fork a:b64, @target", sopk=16, unit="control", section="SOPK", wave=True)(
    refused("Branch both ways: lanes of mask a go to the target, the others later.", f"s_cbranch_i_fork: {_FORKS}")
)
row("s_cbranch_join a:b32=s", sop1=46, unit="control", section="SOP1", wave=True)(
    refused("Where the two paths of a fork reconverge.", f"s_cbranch_join: {_FORKS}")
)
_TRAPPED = "the simulator has no trap handler to come back from"
row("s_rfe_b64 a:b64=s", sop1=31, unit="control", section="SOP1", wave=True)(
    refused("Leave the trap handler for the address a.", f"s_rfe_b64: {_TRAPPED}")
)
row("s_rfe_restore_b64 a:b64, b:b32", sop2=43, unit="control", section="SOP2", wave=True)(
    refused("Leave the trap handler for the address a, with the status b.", f"s_rfe_restore_b64: {_TRAPPED}")
)


# --- the end, barriers, waits --------------------------------------------------------------------------------------------------


@row("s_endpgm =optional", sopp=1, unit="control", section="SOPP", wave=True, flow=True)
def s_endpgm(m):
    """The wave ends."""
    return Exit()


row("s_endpgm_saved", sopp=27, unit="control", section="SOPP", wave=True)(
    refused("The wave ends: its state was saved.", "s_endpgm_saved: belongs to the trap handler that saves waves")
)
row("s_endpgm_ordered_ps_done", sopp=30, unit="control", section="SOPP", wave=True)(
    refused("The wave of a pixel shader ends.", "s_endpgm_ordered_ps_done: only pixel shaders have it")
)


@row("s_barrier", sopp=10, unit="control", section="SOPP", wave=True, flow=True)
def s_barrier(m):
    """Wait until all waves of the workgroup came here."""
    return Barrier("workgroup")


def wait_limits(immediate: int) -> dict[str, int]:
    """The counts of an S_WAITCNT's immediate, without those at their highest, which wait for nothing."""
    counts = {name: counter(immediate, name) for name in WAIT_COUNTERS}
    return {name: count for name, count in counts.items() if count != highest(name)}


@row("s_waitcnt =waitcnt", sopp=12, unit="control", section="SOPP", wave=True)
def s_waitcnt(m):
    """Wait until at most so many operations of each kind are unfinished."""
    return Wait(tuple(wait_limits(m.waitcnt).items()))


# --- hints: they take time, and change nothing ------------------------------------------------------------------------------------

for _pattern, _opcode, _doc in (
    ("s_nop =simm16", 0, "Do nothing for the immediate's low 4 bits + 1 wait states."),
    ("s_wakeup", 3, "Wake the other waves of the workgroup from s_sleep."),
    ("s_sleep =simm16", 14, "Sleep for about 64 cycles times the immediate."),
    ("s_setprio =simm16", 15, "The wave's priority at the issue: 0 (lowest) to 3."),
    ("s_icache_inv", 19, "Invalidate the instruction cache."),
    ("s_incperflevel =simm16", 20, "Count up a performance counter."),
    ("s_decperflevel =simm16", 21, "Count down a performance counter."),
):
    row(_pattern, sopp=_opcode, unit="control", section="SOPP", wave=True)(said(_doc, lambda lanes: None))


# --- messages and traps ------------------------------------------------------------------------------------------------------

row("s_sendmsg =sendmsg, <m0", sopp=16, unit="export", section="SOPP", wave=True, facts="message")(
    refused("Send a message to the host or to fixed hardware.", "s_sendmsg: the simulator has no receiver of messages")
)
row("s_sendmsghalt =sendmsg, <m0", sopp=17, unit="export", section="SOPP", wave=True, facts="message")(
    refused("Send a message, then halt.", "s_sendmsghalt: the simulator has no receiver of messages")
)
row("s_ttracedata <m0", sopp=22, unit="export", section="SOPP", wave=True, facts="message")(
    refused("Send M0 to the thread trace.", "s_ttracedata: the simulator has no thread trace")
)
row("s_sethalt =simm16", sopp=13, unit="control", section="SOPP", wave=True)(
    refused("Halt the wave until the host wakes it.", "s_sethalt: the simulator has no host that would wake the wave")
)
row("s_setkill =simm16", sopp=11, unit="control", section="SOPP", wave=True)(
    refused("Kill the wave when a bit is set.", "s_setkill: the simulator does not kill waves")
)


@row("s_trap =simm16", sopp=18, unit="control", section="SOPP", wave=True)
def s_trap(m):
    """Call the trap handler: 2 is an assertion that failed, 3 a debugger's breakpoint (LLVM AMDGPUUsage, "Trap Handler ABI")."""
    number = m.simm16 & 0xFF
    return lambda lanes: lanes.trap(f"s_trap {number}: the kernel gave up")


# --- hardware registers --------------------------------------------------------------------------------------------------------

MODE = 1
HW_ID = 4
_ROUNDING = {"rn": 0, "rp": 1, "rm": 2, "rz": 3}


def hardware_register(immediate: int) -> tuple[int, int, int]:
    """(number, lowest bit, bits) of the immediate of S_GETREG and S_SETREG."""
    return immediate & 63, immediate >> 6 & 31, (immediate >> 11 & 31) + 1


def mode_register(mode: Mode) -> int:
    """The MODE register as far as it is known: rounding, subnormals, clamp of NaN, IEEE, overflow of f16 (CDNA3 ISA, section "Mode
    register")."""
    rounding = _ROUNDING[mode.round32] | _ROUNDING[mode.round64] << 2
    subnormals = (0 if mode.flush32 else 3) | (0 if mode.flush64 else 3) << 2
    return rounding | subnormals << 4 | mode.dx10_clamp << 8 | mode.ieee << 9 | mode.fp16_overflow << 23


_KNOWN_MODE_BITS = (1 << 10) - 1 | 1 << 23


def _known(number: int, low: int, bits: int) -> bool:
    return number == MODE and not ((1 << bits) - 1) << low & ~_KNOWN_MODE_BITS


def _is_place(number: int, low: int, bits: int) -> bool:
    """Whether its bits are of those of HW_ID that number compute unit, array and engine: the simulator has one of each."""
    return number == HW_ID and low >= 8 and low + bits <= 16


@row("s_getreg_b32 d:b32, =hwreg", sopk=17, unit="salu", section="SOPK", wave=True)
def s_getreg_b32(m):
    """d = some bits of a hardware register: of MODE those of floating point, of HW_ID the compute unit's number, which is 0."""
    number, low, bits = hardware_register(m.hwreg)
    if _known(number, low, bits) or _is_place(number, low, bits):
        value = mode_register(m.mode) >> low & (1 << bits) - 1 if number == MODE else 0
        return lambda lanes: lanes.const(value, 32)
    return refused("", f"s_getreg_b32: the simulator does not know bits {low} to {low + bits - 1} of register {number}", 32)(m)


def _set_register(m):
    """Set some bits of a hardware register: of MODE those of floating point, which `mode` follows through the program."""
    number, low, bits = hardware_register(m.hwreg)
    if _known(number, low, bits):
        return lambda lanes, a: None
    return refused("", f"s_setreg: the simulator does not know bits {low} to {low + bits - 1} of register {number}")(m)


row("s_setreg_b32 =hwreg, a:b32=s", sopk=18, unit="salu", section="SOPK", wave=True, facts="setreg")(_set_register)
row("s_setreg_imm32_b32 =hwreg, a:b32=l", sopk=20, unit="salu", section="SOPK", wave=True, facts="setreg")(_set_register)


# --- registers by number: not in the simulator -----------------------------------------------------------------------------------

_RELATIVE = "the simulator does not choose registers by a number that the code computes"
for _bits in (32, 64):
    row(f"s_movrels_b{_bits} d:b{_bits}, a:b{_bits}=s, <m0", sop1=42 + _bits // 64, unit="salu", section="SOP1", wave=True,
        facts="relative")(
        refused("d = the scalar register M0 further than a.", f"s_movrels_b{_bits}: {_RELATIVE}", _bits)
    )
    row(f"s_movreld_b{_bits} d:b{_bits}, a:b{_bits}, <m0", sop1=44 + _bits // 64, unit="salu", section="SOP1", wave=True,
        facts="relative")(
        refused("The scalar register M0 further than d = a.", f"s_movreld_b{_bits}: {_RELATIVE}", _bits)
    )

row("s_set_gpr_idx_on a:b32, =gpr_idx, <m0, >m0", sopc=17, unit="salu", section="SOPC", wave=True)(
    refused("Choose vector registers by M0 from here on.", f"s_set_gpr_idx_on: {_RELATIVE}", 32)
)
row("s_set_gpr_idx_mode =gpr_idx, <m0, >m0", sopp=29, unit="salu", section="SOPP", wave=True)(
    refused("Which operands are chosen by M0.", f"s_set_gpr_idx_mode: {_RELATIVE}", 32)
)
row("s_set_gpr_idx_idx a:b32, <m0, >m0", sop1=50, unit="salu", section="SOP1", wave=True)(
    refused("The low byte of M0 = a's.", f"s_set_gpr_idx_idx: {_RELATIVE}", 32)
)


@row("s_set_gpr_idx_off", sopp=28, unit="salu", section="SOPP", wave=True)
def s_set_gpr_idx_off(m):
    """Registers are those that the code names; they are never otherwise here."""
    return lambda lanes: None


row("s_setvskip a:b32, b:b32", sopc=16, unit="salu", section="SOPC", wave=True)(
    refused("Skip vector instructions while bit b of a is set.", "s_setvskip: the simulator does not skip vector instructions")
)
