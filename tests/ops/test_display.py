"""What a person sees, at any moment of a run, in a terminal or in a log."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from simops.core.trajectory import OUTCOMES
from simops.ops.display import display, panel, summary
from simops.ops.factory import Progress


def shown(what: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def at(**changes: object) -> Progress:
    progress = Progress(total=1000, batch=100, control_dt_s=0.02, steps=50, began=0.0, ended=10.0)
    for name, value in changes.items():
        assert hasattr(progress, name)
        setattr(progress, name, value)
    return progress


def outcomes(success: int, failure: int = 0) -> dict[str, int]:
    return {**dict.fromkeys(OUTCOMES, 0), "success": success, "failure": failure}


def row(text: str, name: str) -> str:
    """The value beside a name."""
    [line] = [line for line in text.splitlines() if line.strip(" │").startswith(name)]
    return line.strip(" │").removeprefix(name).strip(" │")


def test_nothing_done_yet_is_shown_without_a_guess() -> None:
    text = shown(panel(Progress(10, 5, 0.02)))
    assert row(text, "episodes") == "0 of 10 on disk, 0 in flight"
    assert row(text, "success") == "after the first wave"
    assert row(text, "left") == "not known yet"
    assert row(text, "disk") == "0 B written, 0 B free"
    assert "filmed" not in text
    done = shown(summary(Progress(10, 5, 0.02)))
    assert row(done, "trajectories") == "0 new"
    assert row(done, "outcomes") == "none"


def test_some_of_it_is_shown_with_rate_share_and_time_left() -> None:
    """300 kept from before, 200 new, 100 half-way: 250 in 10 s, so 450 more take 18 s."""
    now = at(done=500, fresh=200, in_flight=100, running=100, step=25, filmed=7, bytes=1_234_567, free_bytes=5e9)
    now.outcomes = outcomes(150, 50)
    text = shown(panel(now))
    assert text.startswith("starting\n━")
    assert row(text, "episodes") == "500 of 1,000 on disk, 100 in flight"
    assert row(text, "rate") == "25.0/s"
    assert row(text, "success") == "75.0% of 200"
    assert row(text, "left") == "18.0 s"
    assert row(text, "filmed") == "7 episodes"
    assert row(text, "disk") == "1.2 MB written, 5.0 GB free"


def test_all_of_it_is_summed_up_beside_the_yardstick() -> None:
    end = at(done=1000, fresh=800, bytes=4_000_000, simulated_s=500.0, physics_s=7.5, writing_s=1.0)
    end.outcomes = outcomes(780, 20)
    text = shown(summary(end))
    assert row(text, "trajectories") == "800 new, 200 there before"
    assert row(text, "outcomes") == "success 780, failure 20"
    assert row(text, "rate") == "80.0 trajectories/s"
    assert row(text, "a yardstick").startswith("19.7 trajectories/s: 780,000 in 11 h")
    assert row(text, "times real time") == "50"
    assert row(text, "inside physics") == "75% of wall time, writing 10%"
    assert row(text, "on disk") == "4.0 MB, 5,000 bytes a trajectory"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (59.9, "59.9 s"),
        (60.0, "1 min 00 s"),
        (61.2, "1 min 01 s"),
        (3599.6, "1 h 00 min"),
        (3600.0, "1 h 00 min"),
        (45_296.0, "12 h 34 min"),
        (400_000.0, "111 h 06 min"),
    ],
)
def test_times_are_for_people(seconds: float, words: str) -> None:
    assert row(shown(summary(at(ended=seconds))), "wall time") == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (23_456_789, "23.5 MB"), (7.2e12, "7.2 TB")]
)
def test_sizes_are_for_people(count: float, words: str) -> None:
    assert row(shown(panel(at(free_bytes=count))), "disk") == f"0 B written, {words} free"


@given(
    total=st.integers(1, 10**6),
    done=st.integers(0, 10**6),
    fresh=st.integers(0, 10**6),
    in_flight=st.integers(0, 5000),
    running=st.integers(0, 5000),
    step=st.integers(0, 50),
    ended=st.floats(0.0, 1e7),
)
def test_no_moment_breaks_it(
    total: int, done: int, fresh: int, in_flight: int, running: int, step: int, ended: float
) -> None:
    done, fresh, running = min(done, total), min(fresh, done, total), min(running, in_flight)
    now = at(total=total, done=done, fresh=fresh, in_flight=in_flight, running=running, step=step, ended=ended or None)
    now.outcomes = outcomes(fresh)
    text = shown(panel(now)) + shown(summary(now))
    assert "nan" not in text
    assert "inf" not in text


def test_a_log_gets_a_line_at_once_and_no_control_characters() -> None:
    console = Console(file=io.StringIO(), width=200)
    with display(console) as watch:
        watch(at(stage="simulating", ended=None, in_flight=100, running=100))
        watch(at(stage="simulating", done=500, fresh=500))
        watch(at(stage="done", done=1000, fresh=1000))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "simulating: 0 of 1,000 episodes on disk, 100 in flight\n"


def test_a_line_of_a_log_tells_the_time_left_once_it_is_known() -> None:
    console = Console(file=io.StringIO(), width=200)
    with display(console) as watch:
        watch(at(stage="writing", done=500, fresh=500))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "writing: 500 of 1,000 episodes on disk, 0 in flight, 50.0/s, 10.0 s left\n"


def test_a_terminal_gets_a_panel_and_is_left_clean() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    with display(console) as watch:
        watch(at(stage="simulating", done=500, fresh=500))
    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    assert "500 of 1,000 on disk" in written
    assert written.rstrip("\n\r").endswith("\x1b[2K")  # the panel was wiped; the summary takes its place
