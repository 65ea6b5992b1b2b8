"""Every check: a small program with the fault is reported with its place, and the same program without it is clean."""

import numpy as np
import pytest
from running import run
from toy import CHIP, assemble

from tilefw.api.device import LaunchOptions
from tilefw.sim.engine.load import load_program
from tilefw.sim.engine.run import launch
from tilefw.sim.memory.regions import GlobalMemory

INDEX = "param a0, arg0\nindex a1, a0, tid\n"


def test_a_load_out_of_bounds_names_buffer_lane_and_offset():
    out = run(INDEX + "load r0, a1\nend", np.zeros(6, np.uint32), block=16)
    finding = out.finding("bounds")
    assert (finding.wave, finding.lane, finding.code_place.line) == (0, 6, 3)
    assert "offset 24 of arg0, which has 24 bytes" in finding.message and finding.count == 10


def test_a_guard_keeps_lanes_in_bounds():
    assert run(INDEX + "lt p0, tid, 6\n@p0 load r0, a1\nend", np.zeros(6, np.uint32), block=16).report.findings == ()


def test_a_null_pointer_is_called_one():
    assert "null pointer" in run("mov a0, 0l\nload r0, a0\nend", np.zeros(1, np.uint32)).finding("bounds").message


def test_a_store_to_a_read_only_buffer_is_refused():
    assert run(INDEX + "store a1, tid\nend", np.zeros(8, np.uint32), readonly=True).finding("bounds").code == "TFW0809"


def test_a_misaligned_access_is_reported():
    out = run("param a0, arg0\nadd a0, a0, 2l\nload r0, a0\nend", np.zeros(8, np.uint32))
    assert out.finding("alignment").code == "TFW0802"


def test_misaligned_bytes_are_right_when_the_check_is_off():
    x = np.arange(8, dtype=np.uint32)
    out = run("param a0, arg0\nparam a1, arg1\nadd a2, a0, 2l\nload r0, a2\nstore a1, r0\nend", x, 4, checks=frozenset())
    assert out.arrays[1][0] == int.from_bytes(x.tobytes()[2:6], "little")


def test_an_unwritten_register_is_reported_where_it_is_stored():
    out = run(INDEX + "add r1, r0, 1\nstore a1, r1\nend", 32)
    assert out.finding("initialisation").code_place.line == 4


def test_unwritten_memory_is_reported_where_it_decides():
    out = run(INDEX + "load r1, a1\neq p0, r1, 0\n@p0 jump out\nout: end", 32)
    assert "condition" in out.finding("initialisation").message


def test_poison_in_an_address_is_reported():
    out = run("param a0, arg0\nundef r0\nindex a1, a0, r0\nload r1, a1\nend", np.zeros(8, np.uint32))
    assert "address" in out.finding("initialisation").message


def test_poison_that_a_select_or_mask_drops_is_no_fault():
    out = run(INDEX + """
        undef r0
        lt p0, tid, 100
        select r1, p0, tid, r0
        and r2, r0, 0
        add r1, r1, r2
        store a1, r1
        end""", 32)
    assert out.report.findings == () and out.arrays[0].tolist() == list(range(8))


def test_partial_writes_initialise_only_their_lanes():
    out = run(INDEX + "lt p0, tid, 4\n@p0 mov r1, tid\nstore a1, r1\nend", 32)
    finding = out.finding("initialisation")
    assert finding.count == 4 and finding.lane == 4
    assert run(INDEX + "lt p0, tid, 4\n@p0 mov r1, tid\n@p0 store a1, r1\nend", 32).report.findings == ()


def test_shared_memory_starts_uninitialised():
    text = INDEX + "index a2, shared, tid\nlt p0, tid, 7\n@p0 lstore a2, tid\nlload r1, a2\nstore a1, r1\nend"
    finding = run(text, 32, shared=64).finding("initialisation")
    assert finding.lane == 7 and finding.count == 1


def test_reading_an_inactive_lane_gives_poison():
    out = run(INDEX + "mov r1, tid\nlt p0, tid, 4\n@p0 readlane r2, r1, 5\n@p0 store a1, r2\nend", 32)
    assert out.finding("initialisation").count == 4


SHARED = """
    param a0, arg0
    index a1, shared, tid
    lstore a1, tid
    {barrier}
    sub r0, 15, tid
    index a2, shared, r0
    lload r1, a2
    index a3, a0, tid
    store a3, r1
    end
"""


def test_a_missing_barrier_is_a_race_with_both_sides():
    finding = run(SHARED.format(barrier=""), 64, block=16, shared=64, seed=0).finding("races")
    assert finding.instruction.startswith("lload") and "lstore" in finding.other and "wave" in finding.other
    assert run(SHARED.format(barrier="bar 0"), 64, block=16, shared=64).report.findings == ()


def test_one_load_races_with_each_store_by_itself():
    halves = "and r2, tid, 1\nlt p0, r2, 1\n@p0 lstore a1, tid\n@!p0 lstore a1, tid"
    two_stores = SHARED.format(barrier="").replace("lstore a1, tid", halves)
    found = run(two_stores, 64, block=16, shared=64, seed=0).report.findings
    assert {finding.other.partition("lstore")[0] for finding in found} == {"`@p0 ", "`@!p0 "}
    assert all(finding.instruction.startswith("lload") for finding in found)


def test_a_write_after_another_waves_read_is_a_race():
    text = SHARED.format(barrier="bar 0").replace("end", "{again}\nlstore a1, r1\nlload r2, a1\nend")
    assert run(text.format(again=""), 64, block=16, shared=64).finding("races").instruction.startswith("lstore")
    assert run(text.format(again="bar 0"), 64, block=16, shared=64).report.findings == ()


def test_lanes_of_one_wave_never_race_and_the_highest_wins():
    out = run("param a0, arg0\nstore a0, tid\nend", 4, block=8)
    assert out.report.findings == () and out.arrays[0][0] == 7


def test_waves_that_store_different_bytes_race_and_equal_bytes_do_not():
    assert run("param a0, arg0\nstore a0, tid\nend", 4, block=16).checks == ["races"]
    assert run("param a0, arg0\nstore a0, 3\nend", 4, block=16).report.findings == ()


def test_neighbouring_bytes_do_not_race():
    out = run("param a0, arg0\nwide a1, tid\nadd a1, a1, a0\nstore8 a1, tid\nend", 16, block=16)
    assert out.report.findings == ()


def test_workgroups_race_unless_an_atomic_orders_them():
    plain = "param a0, arg0\nstore a0, group\nend"
    assert "workgroup" in run(plain, 4, grid=2).finding("races").other
    handed = """
        param a0, arg0
        param a1, arg1
        lt p0, group, 1
        @!p0 jump second
        store a0, 5
        {tell} r0, a1, 1
        end
second: {wait} r1, a1
        eq p1, r1, 1
        @!p1 jump second
        load r2, a0
        add a2, a0, 4l
        store a2, r2
        end
    """

    def checks(tell: str, wait: str) -> list[str]:
        return run(handed.format(tell=tell, wait=wait), 8, np.zeros(1, np.uint32), grid=2).checks

    assert checks("release", "acquire") == []
    assert "races" in checks("release", "load")
    # Of the workgroup's scope they say nothing to another workgroup.
    assert checks("release_near", "acquire") == ["races"]
    assert checks("release", "acquire_near") == ["races"]


@pytest.mark.parametrize(("wait", "found"), [("acquire", []), ("load", ["races"])])
def test_a_wave_that_acquires_a_flag_is_ordered_behind_the_wave_of_its_workgroup_that_released_it_without_a_barrier(wait, found):
    handed = """
        param a0, arg0
        param a1, arg1
        lt p0, tid, 8
        @!p0 jump second
        lstore shared, 5
        release r0, a1, 1
        end
second: {wait} r1, a1
        eq p1, r1, 1
        @!p1 jump second
        lload r2, shared
        store a0, r2
        end
    """
    for scope in ("", "_near"):
        of_scope = handed.format(wait=wait).replace("release", f"release{scope}").replace("acquire", f"acquire{scope}")
        out = run(of_scope, 4, np.zeros(1, np.uint32), block=16, shared=4)
        assert out.checks == found and out.arrays[0][0] == 5


def test_what_one_wave_has_acquired_its_neighbours_do_not_know():
    """Wave 1 acquires, wave 2 has seen only what wave 1 says without a release."""
    out = run("""
        param a0, arg0
        param a1, arg1
        add a2, a1, 4l
        lt p0, tid, 8
        @p0 jump first
        lt p0, tid, 16
        @p0 jump second
third:  load r1, a2
        eq p1, r1, 1
        @!p1 jump third
        lload r2, shared
        store a0, r2
        end
second: acquire r1, a1
        eq p1, r1, 1
        @!p1 jump second
        store a2, 1
        end
first:  lstore shared, 5
        release r0, a1, 1
        end
    """, 4, np.zeros(2, np.uint32), block=24, shared=4)
    assert any("lstore" in (finding.other or "") for finding in out.report.findings)


def test_a_place_of_many_that_one_instruction_releases_can_be_acquired_alone():
    out = run("""
        param a0, arg0
        param a1, arg1
        index a2, a1, tid
        lt p0, group, 1
        @!p0 jump second
        store a0, 5
        bar 0
        release r0, a2, 1
        end
second: acquire r1, a1
        eq p1, r1, 1
        @!p1 jump second
        load r2, a0
        add a2, a0, 4l
        store a2, r2
        end
    """, 8, np.zeros(128, np.uint32), block=128, grid=2)
    assert out.report.findings == ()


def test_a_place_that_was_released_alone_can_be_acquired_with_many():
    out = run("""
        param a0, arg0
        param a1, arg1
        lt p0, group, 1
        @!p0 jump second
        store a0, 5
        release r0, a1, 1
        end
second: index a2, a1, tid
again:  acquire r1, a2
        lt p0, tid, 1
        @!p0 jump out
        eq p1, r1, 1
        @!p1 jump again
        load r2, a0
        add a2, a0, 4l
        store a2, r2
out:    end
    """, 8, np.zeros(128, np.uint32), block=128, grid=2)
    assert out.report.findings == ()


COPY = """
    param a0, arg0
    param a3, arg1
    index a1, a0, tid
    index a2, shared, tid
    index a4, a3, tid
    copy a2, a1
    {commit}
    {wait}
    lload r0, a2
    store a4, r0
    end
"""


def test_copies_land_at_their_wait():
    x = np.arange(8, dtype=np.uint32)
    out = run(COPY.format(commit="commit", wait="wait"), x, 32, shared=32)
    assert out.report.findings == () and (out.arrays[1] == x).all()


def test_reading_before_the_wait_is_pending():
    x = np.arange(8, dtype=np.uint32)
    finding = run(COPY.format(commit="commit", wait=""), x, 32, shared=32).report.findings
    assert {f.check for f in finding} >= {"pending", "leftovers"}
    pending = next(f for f in finding if f.check == "pending")
    assert pending.instruction.startswith("lload") and "copy" in pending.other
    one_group_too_few = run(COPY.format(commit="commit", wait="wait1"), x, 32, shared=32)
    assert "pending" in one_group_too_few.checks
    uncommitted = run(COPY.format(commit="", wait="wait"), x, 32, shared=32)
    assert "pending" in uncommitted.checks


def test_a_launch_within_a_launch_leaves_copies_in_flight_and_last_accesses_to_the_outer_one():
    memory = GlobalMemory()
    region = memory.region(memory.allocate(16))
    region.flags, region.races = flags, races = np.arange(16, dtype=np.uint8), object()
    launch(load_program(assemble("end"), CHIP, memory), memory, (1,), (8, 1, 1), b"", LaunchOptions())
    assert region.flags is flags and flags.tolist() == list(range(16)) and region.races is races


def test_another_waves_copy_needs_a_barrier():
    text = COPY.replace("{wait}", "wait\n{barrier}\nsub r5, 15, tid\nindex a2, shared, r5").replace("{commit}", "commit")
    x = np.arange(16, dtype=np.uint32)
    assert run(text.format(barrier="bar 0"), x, 64, shared=64, block=16).report.findings == ()
    assert "races" in run(text.format(barrier=""), x, 64, shared=64, block=16).checks


def test_a_barrier_that_part_of_a_wave_skips_is_reported():
    out = run("lt p0, tid, 3\n@p0 jump over\nbar 0\nover: end", block=8)
    assert out.finding("barriers").code == "TFW0807"


def test_a_deadlock_says_who_waits_on_what():
    out = run("lt p0, wave, 1\n@p0 barn 1, 16\n@!p0 barn 2, 16\nend", block=16)
    finding = next(f for f in out.report.findings if f.code == "TFW0811")
    assert "barrier 1" in finding.note and "barrier 2" in finding.note and "waves [1]" in finding.note


def test_a_kernel_that_never_ends_ends_by_budget():
    out = run("loop: jump loop", budget=10_000)
    assert out.finding("budget").code == "TFW0810"


def test_bank_conflicts_are_counted():
    text = "mul r0, tid, {step}\nindex a0, shared, r0\nlstore a0, tid\nend"
    assert run(text.format(step=1), shared=256).report.counters.get("bank_conflicts", 0) == 0
    assert run(text.format(step=2), shared=256).report.counters["bank_conflicts"] == 1
    assert run(text.format(step=8), shared=256).report.counters["bank_conflicts"] == 7


def test_a_fault_is_reported_once_a_site_with_its_count():
    out = run(INDEX + "mov r9, 0\nloop: store a1, r0\nadd r9, r9, 1\nlt p0, r9, 5\n@p0 jump loop\nend", 32)
    assert out.finding("initialisation").count == 40


@pytest.mark.parametrize("seed", range(12))
def test_the_last_of_an_atomics_lanes_is_the_last_writer_in_any_order_of_their_turns(seed):
    """Six workgroups count to six; who finds five may write the counter without an atomic."""
    out = run("""
        param a0, arg0
        atomadd r0, a0, 1
        eq p0, r0, 5
        @p0 store a0, 100
        end
    """, np.zeros(1, np.uint32), grid=6, block=1, seed=seed)
    assert out.report.findings == () and out.arrays[0].tolist() == [100]
