"""The launch queue keeps its order, its depth and its clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ridgepole.price.queue import Costs, Issue, Target, simulate
from ridgepole.timeline.model import DEVICE_KINDS, DeviceInfo, Span, Timeline
from ridgepole.work.op import Call, Op, Unpriced

OP = Op(Call("aten::mul", ()), Unpriced("test"))


def run(issues: list[Issue], costs: Costs, mode: str = "eager") -> Timeline:
    return simulate(issues, costs, Target("test", (OP,) * len(issues), DeviceInfo("0")), mode)  # type: ignore[arg-type]


def kernels(timeline: Timeline) -> list[Span]:
    return [span for span in timeline.spans if span.kind in DEVICE_KINDS]


def even(count: int, dispatch: int, kernel: int) -> list[Issue]:
    return [Issue(i, "aten::mul", dispatch, (kernel,)) for i in range(count)]


programs = st.lists(
    st.builds(
        lambda dispatch, durations, syncs: (dispatch, tuple(durations), syncs),
        st.integers(0, 50_000),
        st.lists(st.integers(1, 200_000), max_size=3),
        st.booleans(),
    ),
    max_size=30,
).map(lambda rows: [Issue(i, "aten::mul", d, k, syncs=s) for i, (d, k, s) in enumerate(rows)])
costs = st.builds(Costs, st.integers(0, 20_000), st.integers(0, 20_000), st.integers(0, 2_000), st.integers(1, 8))
modes = st.sampled_from(["eager", "graph", "compiled"])


@given(programs, costs, modes)
def test_kernels_of_a_stream_never_overlap_and_never_start_before_their_launch_ends(
    issues: list[Issue], cost: Costs, mode: str
) -> None:
    timeline = run(issues, cost, mode)
    before = 0
    for span in kernels(timeline):
        assert span.start >= before
        before = span.end
        assert span.launch is not None
        launch = timeline.spans[span.launch]
        assert launch.kind == "launch" and span.start >= launch.end


@given(programs, costs, modes)
def test_the_wall_is_no_shorter_than_the_cpu_or_the_gpu(issues: list[Issue], cost: Costs, mode: str) -> None:
    timeline = run(issues, cost, mode)
    busy = sum(sum(issue.kernels) for issue in issues)
    assert sum(span.ns for span in kernels(timeline)) == busy == timeline.devices[0].busy_ns
    cpu = cost.launch
    if mode != "graph":
        cpu = sum(issue.dispatch + cost.launch * len(issue.kernels) for issue in issues)
    assert timeline.window.ns >= max(cpu, busy)


@given(programs, costs)
def test_the_cpu_never_runs_further_ahead_than_the_queue_is_deep(issues: list[Issue], cost: Costs) -> None:
    timeline = run(issues, cost)
    spans = kernels(timeline)
    for span in spans:
        issued = timeline.spans[span.launch or 0].end
        launched = sum(timeline.spans[other.launch or 0].end <= issued for other in spans)
        done = sum(other.end <= issued for other in spans)
        # With launches that take no time several return in the same instant; they still count one by one.
        same = sum(timeline.spans[other.launch or 0].end == issued for other in spans)
        assert launched - done <= cost.depth + same - 1


@given(programs, costs, modes, st.data())
def test_a_slower_kernel_or_launch_never_makes_the_wall_shorter(
    issues: list[Issue], cost: Costs, mode: str, data: st.DataObject
) -> None:
    wall = run(issues, cost, mode).window.ns
    slower = Costs(cost.launch + data.draw(st.integers(0, 9_000)), cost.sync, cost.gap, cost.depth)
    assert run(issues, slower, mode).window.ns >= wall
    if issues:
        at = data.draw(st.integers(0, len(issues) - 1))
        old = issues[at]
        longer = Issue(old.op, old.name, old.dispatch, tuple(k + 5_000 for k in old.kernels), syncs=old.syncs)
        assert run([*issues[:at], longer, *issues[at + 1 :]], cost, mode).window.ns >= wall


@given(programs, costs, modes)
def test_spans_are_in_order_and_their_links_hold(issues: list[Issue], cost: Costs, mode: str) -> None:
    timeline = run(issues, cost, mode)
    keys = [(span.start, -span.end) for span in timeline.spans]
    assert keys == sorted(keys)
    for span in timeline.spans:
        if span.parent is None:
            continue
        parent = timeline.spans[span.parent]
        assert parent.kind == "op" and parent.op == span.op
        assert parent.start <= span.start and span.end <= parent.end


def test_a_cpu_that_stays_ahead_costs_only_the_first_launch() -> None:
    timeline = run(even(100, 2_000, 50_000), Costs(3_000, 0, 0, 1024))
    assert timeline.window.ns == 100 * 50_000 + 2_000 + 3_000


def test_a_cpu_that_falls_behind_sets_the_pace() -> None:
    timeline = run(even(100, 4_000, 1_000), Costs(6_000, 0, 0, 1024))
    assert timeline.window.ns == 100 * 10_000 + 1_000


def test_a_graph_costs_one_launch_and_its_gaps() -> None:
    timeline = run(even(100, 4_000, 1_000), Costs(6_000, 0, 100, 1024), "graph")
    assert timeline.window.ns == 6_000 + 100 * 1_000 + 99 * 100
    assert all(span.graph for span in kernels(timeline))
    assert sum(span.kind == "launch" for span in timeline.spans) == 1


def test_an_op_that_synchronises_waits_for_every_kernel_before_it() -> None:
    issues = [Issue(0, "aten::mul", 0, (90_000,)), Issue(1, "aten::item", 1_000, (2_000,), syncs=True)]
    timeline = run([*issues, Issue(2, "aten::mul", 1_000, (1_000,))], Costs(1_000, 500, 0, 8))
    (wait,) = [span for span in timeline.spans if span.kind == "sync"]
    last = [span for span in kernels(timeline) if span.op == 2]
    assert wait.end == 1_000 + 90_000 + 2_000 + 500
    assert last[0].start == wait.end + 2_000


def test_a_full_queue_holds_the_launch_until_a_kernel_ends() -> None:
    timeline = run(even(4, 0, 10_000), Costs(1_000, 0, 0, 2))
    launches = [span for span in timeline.spans if span.kind == "launch"]
    assert [span.end for span in launches] == [1_000, 2_000, 11_000, 21_000]
