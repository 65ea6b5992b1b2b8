"""The timeline has every byte of every rank, in rows whose spans do not overlap."""

import json
from itertools import pairwise

from toy_system import toy

from tilefw.distributed.links import collective
from tilefw.distributed.links.timeline import collective_timeline, perfetto


def test_the_timeline_has_what_every_rank_did():
    played = collective(toy(), "all_reduce", 4, 1 << 20, "ring")
    timeline = collective_timeline(played)
    assert [row.group for row in timeline.rows] == [f"rank {rank}" for rank in range(4)]
    for row in timeline.rows:
        assert all(one.begin + one.length <= other.begin for one, other in pairwise(row.spans))
        sent = sum(int(span.facts["bytes"]) for span in row.spans if span.kind == "send")
        assert abs(sent - 1.5 * (1 << 20)) <= len(row.spans)
        assert row.spans[-1].begin + row.spans[-1].length <= timeline.cycles + 1


def test_the_trace_is_json_with_a_process_for_each_rank():
    trace = json.loads(perfetto(collective(toy(), "all_to_all", 3, 1 << 16), "all-to-all"))
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert names == ["rank 0", "rank 1", "rank 2"]
    assert trace["otherData"]["unit"] == "1 us is 1 ns"
