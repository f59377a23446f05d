"""The crank: turns that each leave simulator, policy and data better than before, or say that they did not."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from simops.core.errors import DataError, Problem, SpecError
from simops.core.robot import Reality
from simops.core.task import Task
from simops.data.files import Lock, make_folder, publish, seal
from simops.ops import ratchet, stages, steps, train
from simops.ops.beat import Beat
from simops.ops.hardening import ended
from simops.ops.kept import LOCKED, SPEC, SUMMARY
from simops.ops.patches import Patches
from simops.ops.sealed import Sealed
from simops.ops.stages import Bench
from simops.ops.steps import Done
from simops.ops.turn import Standing, Turn, turn
from simops.spec.crank import Crank, load_crank
from simops.spec.load import Loaded, text_of
from simops.spec.lock import lock
from simops.spec.patched import overridden

OUT = Path("out")
ALPHA = 0.05
"""Probability, at most, that a whole crank promotes a policy that is no better; and the same of a simulator."""
FIGURES = ("reward", "success", "steps_per_s")
"""Of a lap of training, that are told outside."""


@final
@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be cranked, and where it is kept."""

    text: str
    """Of the spec, as somebody wrote it."""
    loaded: Loaded[Crank]
    root: Path
    """Folder that paths in the spec are beside."""
    out: Path
    turns: int
    """After the first, which has nothing to learn from."""

    @property
    def home(self) -> Path:
        """Of the steps."""
        return self.out / "steps"


@final
@dataclass
class Run:
    """What has happened so far, for whoever watches."""

    order: Order
    turn: int = 0
    stage: str = "starting"
    about: str = ""
    standing: Standing | None = None
    done: list[Done] = field(default_factory=list[Done])
    training: train.Run | None = None
    began: float = field(default_factory=time.perf_counter)
    turn_began: float = 0.0
    """When this turn did, by the same clock."""
    stage_at: float = field(default_factory=time.time)
    """When the stage began, seconds since 1970."""
    lap_at: float = 0.0
    """When the last lap of a training ended."""
    ended: str = ""
    """Why it was over, once it is."""

    @property
    def left_s(self) -> float | None:
        """Seconds to go, by what the turns so far took; in the first, of its training alone."""
        if not self.turn:
            return None if self.training is None else self.training.left_s
        each = (self.turn_began - self.began) / self.turn
        spent = time.perf_counter() - self.turn_began
        return max(0.0, each * (self.order.turns + 1 - self.turn) - spent)


Watch = Callable[[Run], None]


def load_order(path: Path, *, turns: int, overrides: Sequence[str] = (), out: Path | None = None) -> Order:
    """Read a spec and say what would be cranked and where it would go; touches nothing."""
    if turns < 0:
        raise SpecError("command line", [Problem("--turns", f"{turns} turns", attempt="0 or more", fault="CFG-005")])
    written = text_of(path)
    text = overridden(written, overrides, source=str(path)) if overrides else written
    loaded = load_crank(text, root=path.parent) if overrides else load_crank(path)
    spec = loaded.value
    name = f"crank-{spec.scene.task.name}-{loaded.digest.removeprefix('sha256:')[:8]}"
    return Order(
        text=text,
        loaded=loaded,
        root=path.parent,
        out=out or spec.out or OUT / name,
        turns=turns,
    )


def crank(order: Order, watch: Watch) -> Run:
    """Turn it, or go on with what was stopped; the same order comes to the same, however often it was."""
    make_folder(order.home)
    writer = Lock(order.out)
    try:
        _begin(order)
        seen = Run(order)
        with Beat(order.out, lambda: now(seen)):
            _turned(order, seen, watch)
        return seen
    finally:
        writer.release()


def now(seen: Run) -> dict[str, Any]:
    """What is being done, for whoever looks from outside."""
    training = seen.training
    last = training.history[-1] if training is not None and training.history else None
    figures = {} if last is None else {name: float(last.figures[name]) for name in FIGURES if name in last.figures}
    return {
        "turn": seen.turn,
        "turns": seen.order.turns,
        "stage": seen.stage,
        "about": seen.about,
        "stage_at": seen.stage_at,
        "left_s": seen.left_s,
        "laps": 0 if training is None else training.laps,
        "lap": 0 if last is None else last.number,
        "lap_at": seen.lap_at,
        "figures": {name: value for name, value in figures.items() if math.isfinite(value)},
        "ended": seen.ended,
    }


def _turned(order: Order, seen: Run, watch: Watch) -> None:
    bench = bench_of(order, lambda run: _training(seen, run, watch))
    standing = Standing(simulator=stages.untouched(bench.spec), text=order.text)
    for number in range(order.turns + 1):
        seen.turn, seen.standing, seen.turn_began = number, standing, time.perf_counter()
        bench = at(bench, order, standing.text)
        walk = turn(bench, standing, number, root=order.root, alpha=ALPHA / max(1, order.turns))
        standing = _walked(walk, order.home, seen, watch)
        seen.standing = standing
        _keep(order, standing.turns[-1])
        watch(seen)
        seen.ended = ended(standing.turns, bench.spec.hardened)
        if seen.ended:
            break
    seen.ended = seen.ended or f"{order.turns} turns were asked for"
    publish(order.out / SUMMARY, seal(_summary(order, standing, seen.ended)))


def bench_of(order: Order, watch: Callable[[train.Run], None]) -> Bench:
    """What the stages share; asks the robot who it is."""
    reality = reality_of(order.loaded.value, order.root)
    identity = _identity(reality, order.loaded.value.task) if reality is not None else ""
    return Bench(text=order.text, loaded=order.loaded, reality=reality, identity=identity, watch=watch)


def at(bench: Bench, order: Order, text: str) -> Bench:
    """The same bench with the spec as it is by now."""
    if text == bench.text:
        return bench
    return replace(bench, text=text, loaded=load_crank(text, root=order.root))


def reality_of(spec: Crank, root: Path) -> Reality | None:
    """The robot that the spec names; none where it names none."""
    if spec.reality is None:
        return None
    return Sealed(root / spec.reality.path, spec.reality.seed)


def _identity(reality: Reality, task: Task) -> str:
    with reality.open(task, 1) as robot:
        return robot.identity


def _walked(walk: steps.Steps[Standing], home: Path, seen: Run, watch: Watch) -> Standing:
    """Do the steps of a turn one after the other."""
    try:
        step = next(walk)
        while True:
            seen.stage, seen.about, seen.training = step.stage, step.about, None
            seen.stage_at = time.time()
            watch(seen)
            done = steps.do(home, step)
            seen.done.append(done)
            step = walk.send(done)
    except StopIteration as end:
        return end.value


def _begin(order: Order) -> None:
    """Write down what is cranked; refuse a folder in which something else was."""
    path = order.out / LOCKED
    said = lock(order.loaded)
    if path.is_file() and path.read_text(encoding="utf-8") != said:
        raise DataError(
            "another spec was cranked there", where=str(order.out), attempt="another --out", fault="CFG-008"
        )
    ratchet.look(order.out)
    publish(order.out / SPEC, order.text.encode())
    publish(path, said.encode())


def _keep(order: Order, one: Turn) -> None:
    """Write a turn down, unless it was before: what it came to, the spec it had, what it proposes, what is live."""
    path, body = order.out / f"turn-{one.number}.json", seal(_body(one))
    if path.is_file() and path.read_bytes() == body:
        return
    publish(order.out / f"turn-{one.number}.yaml", one.spec.encode())
    kept = Patches(order.out)
    for patch in (*one.applied, *one.waiting):
        kept.keep(patch)
    ratchet.keep(order.out, order.loaded.value.scene.task.name, one)
    publish(path, body)


def _training(seen: Run, run: train.Run, watch: Watch) -> None:
    seen.training, seen.lap_at = run, time.time()
    watch(seen)


def _body(one: Turn) -> dict[str, Any]:
    return {
        "turn": one.number,
        "ending": one.ending,
        "why": one.why,
        "kept_simulator": one.kept_simulator,
        "success": one.success,
        "live_success": one.live_success,
        "error_before": None if one.learned is None else one.learned["before"],
        "error_after": None if one.learned is None else one.learned["after"],
        "validated": None if one.validated is None else one.validated["success"],
        "diagnosed": None if one.diagnosed is None else {key: one.diagnosed[key] for key in ("cause", "why")},
        "applied": [patch.name for patch in one.applied],
        "waiting": [patch.name for patch in one.waiting],
        "steps": [[done.step.stage, done.step.name, done.digest] for done in one.steps],
    }


def _summary(order: Order, standing: Standing, ended: str) -> dict[str, Any]:
    return {
        "spec": order.loaded.digest,
        "task": order.loaded.value.scene.task.name,
        "ended": ended,
        "champion": "" if standing.champion is None else standing.champion.said["bundle"],
        "turns": [_body(one) for one in standing.turns],
    }
