"""The charts of a crank: success up and error down, turn by turn, and what came out of what."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from simops.ops.axes import Axis, Drawing, Span, short, span, words
from simops.ops.kept import Kept, Told

WIDTH, HEIGHT = 440.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 30.0, 40.0
STAGES = ("explore", "learn", "train", "export", "validate", "trials", "diagnose")
BOX, TALL, GAP, ROW = 112.0, 38.0, 22.0, 74.0


class Node(NamedTuple):
    """A box of the graph."""

    row: int
    column: int
    head: str
    text: str
    kind: str
    """`pass`, `fail`, `marginal`, or nothing: its colour."""
    title: str


def success(turns: Sequence[Told]) -> Drawing:
    """Trials of each turn's candidate, with the interval, and of what was live."""
    across, up = _frame(turns, Axis(low=0.0, high=1.0), [[0.0, 1.0]])
    parts = [_grid(turns, across, up, percent=True)]
    live = [(one.number, one.live.share) for one in turns if one.live is not None]
    steps = "".join(
        f"{'M' if not i else 'H'}{across.at(at):.1f}{'' if i else f' {up.at(y):.1f}'}{f'V{up.at(y):.1f}' if i else ''}"
        for i, (at, y) in enumerate(live)
    )
    if live:
        parts.append(f'<path class="line c2" d="{steps}H{across.at(turns[-1].number + 0.25):.1f}"/>')
    for one in turns:
        if (found := one.tried) is None:
            said = "refused" if one.said["ending"] == "refused" else "no trials"
            parts.append(words(across.at(one.number), up.at(0.04), said, anchor="middle", size=10))
            continue
        kind = "pass" if one.said["ending"] == "promoted" else "marginal"
        title = f"turn {one.number}: {found}; {one.said['ending']}"
        parts.append(_whisker(across.at(one.number), up, (found.share, found.low, found.high), kind, title))
    parts.append(_key([("pass", "candidate, promoted"), ("marginal", "candidate, not promoted"), ("c2", "live")]))
    return _svg(parts, WIDTH, HEIGHT, "sealed success, turn by turn")


def error(turns: Sequence[Told]) -> Drawing | None:
    """How far the simulator was off on trials nobody learned from, before and after each lesson."""
    taught = [one for one in turns if one.said["error_after"] is not None]
    if not taught:
        return None
    ends = [float(one.said[key]) for one in taught for key in ("error_before", "error_after")]
    log = min(ends) > 0.0 and max(ends) / min(ends) > 4.0
    low, high = (min(ends) * 0.7, max(ends) * 1.4) if log else (0.0, max(ends) * 1.1)
    across, up = _frame(turns, Axis(low=low, high=high, log=log), [ends])
    parts = [_grid(turns, across, up)]
    for one in taught:
        before, after = float(one.said["error_before"]), float(one.said["error_after"])
        x, kept = across.at(one.number), bool(one.said["kept_simulator"])
        title = escape(f"turn {one.number}: {before:.4g} to {after:.4g}, {'kept' if kept else 'not kept'}")
        kind = "k-pass" if kept else "k-marginal"
        parts.append(
            f'<g><title>{title}</title><path class="line {kind}" d="M{x:.1f} {up.at(before):.1f}V{up.at(after):.1f}"/>'
            f'<circle class="fill c7" cx="{x:.1f}" cy="{up.at(before):.1f}" r="4.5"/>'
            f'<circle class="fill {kind}" cx="{x:.1f}" cy="{up.at(after):.1f}" r="4.5"/></g>'
        )
        parts.append(words(x + 8, up.at(after), short(after), size=10))
    parts.append(_key([("c7", "before"), ("pass", "after, kept"), ("marginal", "after, not kept")]))
    return _svg(parts, WIDTH, HEIGHT, "prediction error on held-out trials, turn by turn")


def lineage(turns: Sequence[Told]) -> Drawing:
    """Every step as a box, a row a turn, and what each was made out of."""
    nodes = {key: node for one in turns for key, node in _nodes(one)}
    parts = [
        words(16.0 + 28.0 + column * (BOX + GAP) + BOX / 2, 14.0, stage, anchor="middle", size=11)
        for column, stage in enumerate(STAGES)
    ]
    parts += [_edge(nodes[a], nodes[b]) for a, b in _edges(turns) if a in nodes and b in nodes]
    parts += [_box(node) for node in nodes.values()]
    parts += [words(8.0, _y(one.number) + TALL / 2, str(one.number), size=13) for one in turns]
    width = 44.0 + len(STAGES) * (BOX + GAP)
    return _svg(parts, width, 26.0 + ROW * len(turns), "what came out of what", kind="wide-chart")


def _nodes(one: Told) -> list[tuple[str, Node]]:
    found: list[tuple[str, Node]] = []
    for stage in STAGES:
        steps = [each for each in one.steps if each.stage == stage]
        if steps:
            text, kind = _about(one, steps)
            title = "\n".join(f"{each.name} came to {each.digest[:12]}, {each.took_s:.1f} s" for each in steps)
            found.append((f"{one.number}/{stage}", Node(one.number, STAGES.index(stage), stage, text, kind, title)))
    return found


def _about(one: Told, steps: Sequence[Kept]) -> tuple[str, str]:
    """What a box says, and its colour."""
    first, said = steps[0], one.said
    match first.stage:
        case "learn":
            kept = bool(said["kept_simulator"])
            return f"error {short(float(said['error_after']))}", "pass" if kept else "marginal"
        case "train":
            return f"{first.said['laps']} laps", ""
        case "export":
            return one.bundle[:10], "pass" if said["ending"] == "promoted" else ""
        case "validate":
            return f"{first.said['status']}", str(first.said["status"]).replace(" ", "-")
        case "trials":
            tried = one.tried
            return "" if tried is None else f"{tried.good} of {tried.of}", (
                "pass" if said["ending"] == "promoted" else "marginal"
            )
        case "diagnose":
            return str(first.said["cause"]), ""
        case _:
            return f"{len(first.said.get('outcomes', ()))} trials", ""


def _edges(turns: Sequence[Told]) -> list[tuple[str, str]]:
    """What each was made out of, by the digests that it names."""
    found: list[tuple[str, str]] = []
    source = ""
    for one in turns:
        at = one.number
        if (learn := one.step("learn")) is not None:
            heard = set(learn.inputs["log"].split())
            found += [
                (f"{was.number}/{each.stage}", f"{at}/learn")
                for was in turns
                if was.number < at
                for each in was.steps
                if each.digest[:16] in heard
            ]
            source = f"{at}/learn" if one.said["kept_simulator"] else source
        if source:
            found.append((source, f"{at}/train"))
        train = one.step("train")
        begun = "" if train is None else train.inputs.get("begun", "")
        found += [
            (f"{was.number}/train", f"{at}/train")
            for was in turns
            if begun
            and was.number < at
            and (made := was.step("train")) is not None
            and made.said["checkpoint"] == begun
        ]
        row = [stage for stage in ("train", "export", "validate", "trials", "diagnose") if one.step(stage)]
        found += [(f"{at}/{a}", f"{at}/{b}") for a, b in itertools.pairwise(row)]
    return list(dict.fromkeys(found))


def _y(row: int) -> float:
    return 26.0 + ROW * row


def _x(column: int) -> float:
    return 44.0 + column * (BOX + GAP)


def _box(node: Node) -> str:
    x, y = _x(node.column), _y(node.row)
    kind = f" k-{node.kind}" if node.kind else ""
    return (
        f'<g><title>{escape(node.title)}</title><rect class="box{kind}" x="{x:.1f}" y="{y:.1f}" width="{BOX:.0f}" '
        f'height="{TALL:.0f}" rx="6"/>{words(x + BOX / 2, y + 12, node.head, anchor="middle", size=11)}'
        f"{words(x + BOX / 2, y + 27, node.text, anchor='middle', size=11)}</g>"
    )


def _edge(source: Node, target: Node) -> str:
    if source.row == target.row:
        y = _y(source.row) + TALL / 2
        return f'<path class="edge" d="M{_x(source.column) + BOX:.1f} {y:.1f}H{_x(target.column):.1f}"/>'
    x, y = _x(source.column) + BOX / 2, _y(source.row) + TALL
    end, top = _x(target.column) + BOX / 2, _y(target.row)
    middle = y + (ROW - TALL) / 2
    return f'<path class="edge" d="M{x:.1f} {y:.1f}C{x:.1f} {middle:.1f} {end:.1f} {middle:.1f} {end:.1f} {top:.1f}"/>'


def _frame(turns: Sequence[Told], axis: Axis, data: Sequence[Sequence[float]]) -> tuple[Span, Span]:
    last = max(1.0, float(turns[-1].number if turns else 0))
    across = span(Axis(low=-0.4, high=last + 0.5), [], LEFT, WIDTH - RIGHT)
    return across, span(axis, data, HEIGHT - BOTTOM, TOP)


def _grid(turns: Sequence[Told], across: Span, up: Span, *, percent: bool = False) -> str:
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0] if percent else up.ticks()
    if up.log and len(ticks) < 3:
        tenfolds = range(math.floor(up.low), math.ceil(up.high) + 1)
        every = [m * 10.0**k for k in tenfolds for m in (1.0, 2.0, 5.0)]
        ticks = [tick for tick in every if up.low <= math.log10(tick) <= up.high]
    parts = [
        f'<path class="grid" d="M{across.start:.1f} {up.at(tick):.1f}H{across.end:.1f}"/>'
        + words(across.start - 6, up.at(tick), f"{tick:.0%}" if percent else f"{tick:.2g}", anchor="end", size=11)
        for tick in ticks
    ]
    parts += [words(across.at(one.number), up.start + 14, str(one.number), anchor="middle", size=11) for one in turns]
    parts.append(f'<path class="axis" d="M{across.start:.1f} {up.start:.1f}H{across.end:.1f}"/>')
    parts.append(words((across.start + across.end) / 2, HEIGHT - 7, "turn", anchor="middle", size=11))
    return "".join(parts)


def _whisker(x: float, up: Span, ends: tuple[float, float, float], kind: str, title: str) -> str:
    value, low, high = (up.at(min(1.0, max(0.0, end))) if math.isfinite(end) else up.start for end in ends)
    return (
        f'<g><title>{escape(title)}</title><path class="line k-{kind}" d="M{x:.1f} {low:.1f}V{high:.1f}'
        f'M{x - 5:.1f} {low:.1f}h10M{x - 5:.1f} {high:.1f}h10"/>'
        f'<circle class="fill k-{kind}" cx="{x:.1f}" cy="{value:.1f}" r="5"/></g>'
    )


def _key(names: Sequence[tuple[str, str]]) -> str:
    parts, x = list[str](), LEFT
    for kind, name in names:
        shown = kind if kind.startswith("c") else f"k-{kind}"
        parts.append(f'<rect class="fill {shown}" x="{x:.1f}" y="5" width="11" height="10"/>')
        parts.append(words(x + 15, 10.0, name, size=11))
        x += 30.0 + 5.7 * len(name)
    return "".join(parts)


def _svg(parts: Sequence[str], width: float, height: float, title: str, *, kind: str = "half") -> Drawing:
    body = "".join(parts)
    said = escape(title, quote=True)
    return Drawing(
        f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{said}">{body}</svg>'
    )
