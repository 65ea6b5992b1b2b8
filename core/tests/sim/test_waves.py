"""A program counter for a wave: lanes go by masks, waves by themselves, and what is one for the wave stays one value."""

import numpy as np
import pytest
from wave_toy import CHIP, assemble, run

from tilefw.api.device import LaunchOptions
from tilefw.sim.engine.execution import Execution
from tilefw.sim.engine.launch import make_launch
from tilefw.sim.engine.load import load_program
from tilefw.sim.memory.regions import GlobalMemory

# w4:w5 is the first array, w6:w7 the second.
ARGUMENTS = """
    wload2 w4:w5, w0:w1, 0
    wload2 w6:w7, w0:w1, 8
    wait near 0
"""
THREAD = """
    mul v1, w2, {block}
    add v1, v1, v0
    mul v1, v1, 4       # byte offset of the thread's element
"""


def out_of(text: str, *arrays, block: int = 8, **options):
    return run(ARGUMENTS + THREAD.format(block=block) + text, *arrays, block=block, **options)


def test_lanes_that_do_not_exist_are_off_from_the_start():
    out = out_of("store w4:w5, v1, v0\nend", np.full(24, 9, np.uint32), 8, block=11, grid=2)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [*range(11), *range(11), 9, 9]


COLLATZ = """
        load v2, w4:w5, v1
        wait far 0
        mov v3, 0
        less w8, 1, v2              # lanes that are not at 1
loop:   mask w8
        jz w8, done
        odd w9, v2
        mask w9
        mul v2, v2, 3
        add v2, v2, 1
        wnot w10, w9
        wand w10, w10, w8
        mask w10
        mov v4, v2
        mov v5, 0
        less w11, 1, v4
half:   mask w11
        jz w11, halved
        sub v4, v4, 2
        add v5, v5, 1
        less w11, 1, v4
        jump half
halved: mask w10
        mov v2, v5
        mask w8
        add v3, v3, 1
        less w8, 1, v2
        jump loop
done:   mask 255
        store w6:w7, v1, v3
        end
"""


def _collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_lanes_diverge_by_masks_and_waves_by_their_counters(seed):
    x = np.array([1 + i * 5 % 18 for i in range(72)], dtype=np.uint32)
    out = out_of(COLLATZ, x, 288, block=24, grid=3, seed=seed)
    assert out.report.findings == ()
    assert out.arrays[1].tolist() == [_collatz(int(n)) for n in x]
    assert "divergent_branches" not in out.report.counters  # lanes are masked: no wave parts


def test_results_for_the_wave_stay_one_value_a_wave():
    """Under a control mask of some waves and under masks of some lanes."""
    memory = GlobalMemory()
    program = assemble("""
        wmov w3, wave
        wand w4, w3, 1
        mask 7
        jz w4, even
        wadd w5, w3, 100
        less w6, v0, 1000
        both v2, w8, v0, 0
        jump meet
even:   wmov w5, 5
        less w6, v0, 1
        both v2, w8, v0, 1000
meet:   getlane w7, v0, 6
        end
    """)
    loaded = load_program(program, CHIP, memory)
    launch = make_launch(loaded, memory, (2, 1, 1), (32, 1, 1), b"", LaunchOptions(checks=frozenset({"initialisation"})))
    execution = Execution(launch, np.arange(2))
    with np.errstate(all="ignore"):
        assert execution.run(1000)
    batch = execution.batch
    registers = {n: batch.frame.registers[i] for i, n in enumerate(program.register_names)}
    poison = {n: batch.frame.poison[i] for i, n in enumerate(program.register_names)}
    assert all(registers[f"w{i}"].shape[2] == 1 for i in range(16))
    assert np.broadcast_to(registers["w5"], (2, 4, 1)).tolist() == [[[5], [101], [5], [103]]] * 2
    assert np.broadcast_to(registers["w6"], (2, 4, 1)).tolist() == [[[1], [7], [0], [7]]] * 2
    assert np.broadcast_to(registers["w8"], (2, 4, 1)).tolist() == [[[7], [0], [7], [0]]] * 2
    assert np.broadcast_to(registers["w7"], (2, 4, 1)).tolist() == [[[6], [14], [22], [30]]] * 2
    assert all(poison[f"w{i}"] is None for i in range(3, 9))
    assert np.broadcast_to(poison["v2"] != 0, (2, 4, 8))[:, :, 3:].all(), "lanes that were off stay undefined"
    assert not np.broadcast_to(poison["v2"] != 0, (2, 4, 8))[:, :, :3].any()


def test_a_result_for_the_wave_needs_no_lane():
    """A comparison with all lanes off gives 0; a vector register keeps what it had."""
    text = "mov v2, 7\nwmov w3, 9\nmask 0\nless w3, v0, 99\nmov v2, 8\nmask 255\nadd v2, v2, w3\nstore w4:w5, v1, v2\nend"
    out = out_of(text, 32, 8)
    assert out.report.findings == () and out.arrays[0].tolist() == [7] * 8


def test_lanes_that_are_off_touch_no_memory():
    out = out_of("mask 15\nload v2, w4:w5, v1\nwait far 0\nstore w4:w5, v1, 5\nend", np.arange(4, dtype=np.uint32), 8)
    assert out.report.findings == () and out.arrays[0].tolist() == [5] * 4
    out = out_of("load v2, w4:w5, v1\nend", np.arange(4, dtype=np.uint32), 8)
    assert out.finding("bounds").lane == 4


def test_a_lane_that_is_off_can_be_read():
    out = out_of("mask 1\ngetlane w3, v0, 5\nstore w4:w5, v1, w3\nend", np.zeros(8, np.uint32), 8)
    assert out.report.findings == () and out.arrays[0].tolist()[0] == 5


def test_undefined_bits_of_a_mask_are_those_of_its_lanes():
    """v2 is defined in four lanes: only their bits of the comparison are, and only those may decide."""
    text = "mask 15\nmov v2, v0\nmask 255\nless w3, v2, 2\nwand w3, w3, {keep}\nmask w3\nmov v3, 1\nstore w4:w5, v1, v3\nend"
    assert out_of(text.format(keep=15), np.zeros(8, np.uint32), 8).arrays[0].tolist() == [1, 1] + [0] * 6
    assert out_of(text.format(keep=15), np.zeros(8, np.uint32), 8).report.findings == ()
    assert "initialisation" in out_of(text.format(keep=31), np.zeros(8, np.uint32), 8).checks


def test_registers_without_a_first_value_are_undefined():
    assert out_of("store w4:w5, v1, w15\nend", 32, 8).arrays[0].tolist() == [15] * 8
    assert out_of("store w4:w5, v1, w14\nend", 32, 8).finding("initialisation").count == 8


def test_the_arguments_are_memory_that_is_not_written():
    assert run("wload2 w4:w5, w0:w1, 8\nend", 8).finding("bounds").message.count("the arguments")
    assert run("store w0:w1, 0, 1\nend", 8).finding("bounds").code == "TFW0809"


CALLS = """
        where w8:w9, &twice
        wand w3, wave, 1
        jz w3, even
        where w8:w9, &thrice
even:   call w10:w11, w8:w9
        store w4:w5, v1, v2
        end
twice:  add v2, v0, v0
        goto w10:w11
thrice: mul v2, v0, 3
        goto w10:w11
"""


@pytest.mark.parametrize("seed", [0, 1])
def test_jumps_go_where_the_address_says_and_calls_come_back(seed):
    out = out_of(CALLS, np.zeros(32, np.uint32), 8, block=32, seed=seed)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [i * (3 if i // 8 % 2 else 2) for i in range(32)]


def test_a_jump_to_nowhere_is_told():
    out = out_of("wmov w8, 0\nwmov w9, 0\ngoto w8:w9\nend", 8, 8)
    finding = out.finding("bounds")
    assert finding.code == "TFW0814" and "no instruction" in finding.message
    assert out_of("goto w8:w9\nend", 8, 8).checks[-1] == "initialisation"


def test_waves_meet_at_a_barrier_from_different_places():
    out = out_of("""
        mul v2, v0, 4
        lstore v2, v0
        wand w3, wave, 1
        wait near 0
        jz w3, even
        bar
        jump read
even:   bar
read:   sub v3, 31, v0
        mul v3, v3, 4
        lload v4, v3
        wait near 0
        store w4:w5, v1, v4
        end
    """, np.zeros(32, np.uint32), 8, block=32, shared=128)
    assert out.report.findings == () and out.arrays[0].tolist() == list(range(31, -1, -1))


def test_a_barrier_that_a_wave_never_reaches_ends_by_the_budget():
    out = out_of("wand w3, wave, 1\njz w3, spin\nbar\nend\nspin: jump spin", 8, 8, block=16, budget=10**5)
    assert out.checks == ["budget"]


def test_wide_accesses_may_stand_at_parts_of_their_size():
    x = np.arange(20, dtype=np.uint32)
    text = """
        mul v1, v0, 8
        add v1, v1, {by}
        load2 v2, v3, w4:w5, v1
        wait far 0
        add v2, v2, v3
        mul v1, v0, 4
        store w6:w7, v1, v2
        end
    """
    out = out_of(text.format(by=4), x, 32)
    assert out.report.findings == () and out.arrays[1].tolist() == [4 * i + 3 for i in range(8)]
    assert out_of(text.format(by=2), x, 32).finding("alignment").code == "TFW0802"


HANDED = """
        jz w2, first
spin:   exchange v2, w6:w7, 0, 0
        wait far 0
        less w3, 0, v2
        jz w3, spin
        {take}
        load v3, w4:w5, 0
        wait far 0
        store w4:w5, 4, v3          # a load whose value nobody uses would be in no race
        end
first:  store w4:w5, 0, 5
        {give}
        wait far 0
        mask 1
        exchange v2, w6:w7, 0, 1
        end
"""


@pytest.mark.parametrize("seed", [0, 1])
def test_workgroups_hand_over_by_a_release_and_an_acquire(seed):
    def checks(give: str, take: str) -> list[str]:
        flag = np.zeros(1, np.uint32)
        return out_of(HANDED.format(give=give, take=take), 8, flag, grid=2, seed=seed).checks

    assert checks("give", "take") == []
    assert checks("give", "pause 1") == ["races"] and checks("pause 1", "take") == ["races"]


WITHIN = """
        where w3, wave
        jz w3, first
spin:   exchange v2, w6:w7, 0, 0
        wait far 0
        less w3, 0, v2
        jz w3, spin
        {take}
        lload v3, 0
        wait near 0
        store w4:w5, 4, v3
        end
first:  lstore 0, 5
        {wait}
        {give}
        mask 1
        exchange v2, w6:w7, 0, 1
        end
"""


@pytest.mark.parametrize("scope", ["", "_near"])
def test_waves_of_a_workgroup_hand_over_by_fences_once_what_they_did_is_finished(scope):
    def checks(give: str, take: str, wait: str = "wait near 0") -> list[str]:
        flag = np.zeros(1, np.uint32)
        return out_of(WITHIN.format(give=give, take=take, wait=wait), 8, flag, block=16, shared=4).checks

    give, take = f"give{scope}", f"take{scope}"
    assert checks(give, take) == []
    for missing in ((give, "pause 1"), ("pause 1", take), (give, take, "pause 1")):
        assert checks(*missing) == ["races"]


AND_BACK = """
        where w3, wave
        jz w2, own
        jz w3, spin
        end
spin:   exchange v2, w6:w7, 0, 0
        wait far 0
        less w3, 0, v2
        jz w3, spin
        take
        give
        mask 1
        exchange v2, w6:w7, 4, 1
        end
own:    jz w3, first
second: exchange v2, w6:w7, 8, 0
        wait far 0
        less w3, 0, v2
        jz w3, second
        take
        lload v3, 0
        wait near 0
        store w4:w5, 4, v3
        end
first:  give
        mask 1
        exchange v2, w6:w7, 0, 1
again:  exchange v2, w6:w7, 4, 0
        wait far 0
        less w3, 0, v2
        jz w3, again
        lstore 0, 5
        {wait}
        give
        exchange v2, w6:w7, 8, 1
        end
"""


def test_what_another_workgroup_says_of_a_wave_finishes_nothing_that_it_begins_then():
    found = [
        out_of(AND_BACK.format(wait=wait), 8, np.zeros(3, np.uint32), block=16, grid=2, shared=4).checks
        for wait in ("wait near 0", "pause 1")
    ]
    assert found == [[], ["races"]]


def test_a_fence_of_the_workgroups_scope_says_nothing_to_another_workgroup():
    found = [out_of(HANDED.format(give=give, take=take), 8, np.zeros(1, np.uint32), grid=2).checks
             for give, take in (("give_near", "take"), ("give", "take_near"))]
    assert found == [["races"], ["races"]]


def test_a_race_with_what_was_released_and_seen_names_the_fence_that_is_missing():
    def note(give: str, take: str) -> str:
        found = out_of(HANDED.format(give=give, take=take), 8, np.zeros(1, np.uint32), grid=2).report.findings
        return next(f.note or "" for f in found if f.check == "races")

    assert "without acquiring it: a fence" in note("give", "pause 1")
    assert "fence" not in note("pause 1", "take"), "nothing was released"


@pytest.mark.parametrize("mode", ["0", "always"])
def test_a_load_of_shared_memory_for_the_wave_has_no_bank_conflicts(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("TILEFW_JIT", mode)
    out = run("""
        wload2 w4:w5, w0:w1, 0
        wait near 0
        mul v1, v0, 4
        lstore v1, v0
        wait near 0
        bar
        where w7, wave
        wadd w7, w7, w7
        wadd w7, w7, w7
        wlload w6, w7
        wait near 0
        mov v2, w6
        store w4:w5, v1, v2
        wait far 0
        end
    """, np.zeros(32, np.uint32), block=32, shared=128)
    assert out.report.findings == () and out.report.counters.get("bank_conflicts", 0) == 0
    assert out.arrays[0].tolist() == np.repeat(np.arange(4), 8).tolist()
