"""What is learned from by imitation: observations as they were shown, what was done, and what should have been."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from simops.core import chance
from simops.core.contract import Contract
from simops.core.errors import DataError
from simops.core.signal import Array, Schema
from simops.core.task import Task
from simops.core.trajectory import OUTCOMES, Block, shown
from simops.data.header import Header
from simops.data.store import Dataset


@final
@dataclass(frozen=True)
class Lessons:
    """Steps of many episodes end to end; the last row of an episode, which has no action, is left out."""

    observation: Array
    """(rows, observation size) float32, packed as the task says."""
    label: Array
    """(rows, action size) float32, what should be done; NaN where nothing is to be learned."""
    lengths: Array
    """(episodes,) rows of each episode."""

    @property
    def first(self) -> Array:
        """(rows,) first row of the episode that a row belongs to."""
        return np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)

    @property
    def last(self) -> Array:
        """(rows,) last row of the episode that a row belongs to."""
        return np.repeat(np.cumsum(self.lengths) - 1, self.lengths)

    def __len__(self) -> int:
        """Episodes."""
        return len(self.lengths)

    def only(self, chosen: Array) -> Lessons:
        """These episodes, chosen by a mask."""
        rows = np.repeat(chosen, self.lengths)
        return Lessons(self.observation[rows], self.label[rows], self.lengths[chosen])


def joined(parts: Sequence[Lessons]) -> Lessons:
    """One after the other."""
    return Lessons(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("observation", "label", "lengths")))


def observed(block: Block, observation: Schema) -> Array:
    """What the policy was shown at every row of a block, packed."""
    columns = block.schema.unpack(block.rows)
    return observation.pack({name: columns[_column(block.schema, name)] for name in observation.names})


def lessons(block: Block, task: Task, *, label: Array | None = None) -> Lessons:
    """Every step of a block; what was done is what should be, unless `label` (one for each row) says otherwise."""
    rows = observed(block, task.observation)
    done = block.schema.unpack(block.rows)["action"].reshape(len(rows), -1) if label is None else label
    kept = np.ones(len(rows), bool)
    kept[block.starts + block.lengths] = False
    return Lessons(rows[kept], done[kept], block.lengths)


class Split(NamedTuple):
    """Lessons to learn from, and lessons to be asked about."""

    learned: Lessons
    asked: Lessons


def split(found: Lessons, *, held_out: float, seed: int) -> Split:
    """Hold whole episodes out, drawn by the seed; at least one stays to learn from."""
    count = min(round(held_out * len(found)), len(found) - 1)
    drawn = chance.uniform(chance.seeds(seed, np.arange(len(found))), "imitation/held_out")
    held = np.zeros(len(found), bool)
    held[np.argsort(drawn, kind="stable")[:count]] = True
    return Split(found.only(~held), found.only(held))


def require_finite(found: Lessons, *, where: str) -> None:
    """Raise, naming the episode, if a number is none."""
    sound = np.isfinite(found.observation).all(axis=1) & np.isfinite(found.label).all(axis=1)
    if not sound.all():
        number = int(np.searchsorted(np.cumsum(found.lengths), int(np.argmin(sound)), side="right"))
        what = f"an observation or action is not finite, in episode {number} of the {len(found)} to learn from"
        attempt = "simops data check; record such episodes anew, or leave them out"
        raise DataError(what, where=where, attempt=attempt, fault="DAT-007")


@final
@dataclass(frozen=True)
class Source:
    """Which episodes of which dataset."""

    path: Path
    outcomes: tuple[str, ...] = ("success",)
    """How an episode must have ended to be learned from."""
    at_most: int = 0
    """Episodes taken, the first of them; 0 for all."""
    at_least: int = 1
    """Fewer than this are refused."""

    def read(self, task: Task) -> Lessons:
        """Everything to learn from; raises if it is of another task, too little, or not finite."""
        data = Dataset.open(self.path)
        self._require_fit(data.header, task)
        parts: list[Lessons] = []
        left = self.at_most or len(data)
        for block in data.blocks():
            ended = np.isin(np.array(OUTCOMES)[block.outcomes], self.outcomes) & (block.lengths > 0)
            ended &= np.cumsum(ended) <= left
            if ended.any():
                parts.append(lessons(block, task).only(ended))
                left -= int(ended.sum())
        self._require_enough(sum(len(part) for part in parts), data)
        found = joined(parts)
        require_finite(found, where=str(self.path))
        return found

    def _require_fit(self, header: Header, task: Task) -> None:
        differences = _contract(header, task, self.path).differences(Contract.of(task))
        if differences:
            said = "; ".join(f"{d.what} is {d.mine} there and {d.theirs} here" for d in differences[:6])
            more = f"; and {len(differences) - 6} more" if len(differences) > 6 else ""
            raise DataError(
                f"the dataset is not of {task.name} as it is here: {said}{more}",
                where=str(self.path),
                attempt=f"a dataset of {task.name} ({task.scene.robot or 'any robot'}), or its own task",
                fault="CFG-012",
            )

    def _require_enough(self, count: int, data: Dataset) -> None:
        if count == 0:
            ended = ", ".join(f"{n} {how}" for how, n in data.outcomes.items() if n) or "none"
            raise DataError(
                f"no episode ended in {' or '.join(self.outcomes)} (there are: {ended})",
                where=str(self.path),
                attempt="episodes of an expert that succeeds, or `outcomes` that are there",
            )
        if count < self.at_least:
            raise DataError(
                f"{count} episodes to learn from, at least {self.at_least} are needed",
                where=str(self.path),
                attempt=f"{self.at_least - count} more episodes, or a lower `at_least`",
            )


def _contract(header: Header, task: Task, path: Path) -> Contract:
    """What a dataset's policy was shown and did; columns that the task does not observe do not count."""
    schema = header.schema
    missing = [name for name in task.observation.names if name not in schema and shown(name) not in schema]
    if missing or "action" not in schema:
        raise DataError(
            f"the dataset has no {', '.join(missing or ['action'])}, which {task.name} asks for",
            where=str(path),
            attempt=f"a dataset of {task.name}",
            fault="CFG-012" if header.provenance.task != task.name else "DAT-008",
        )
    seen = tuple(replace(schema[_column(schema, name)], name=name) for name in task.observation.names)
    return Contract(
        task=header.provenance.task,
        robot=task.scene.robot,
        observation=Schema(seen),
        action=replace(schema["action"], name=task.action.name),
        control_dt_s=header.control_dt_s,
    )


def _column(schema: Schema, name: str) -> str:
    return shown(name) if shown(name) in schema else name
