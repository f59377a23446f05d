"""What a dataset holds and where it came from: written once, compared on every resume."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from simops.core.belief import text
from simops.core.errors import DataError
from simops.core.rollout import Recipe
from simops.core.signal import Schema
from simops.core.trajectory import Provenance
from simops.data import files

FORMAT = 1
"""Version of the layout on disk."""
NAME = "dataset.json"
KEYS = ("episode", "step")
"""Columns of the steps table that are not the schema's."""


@final
@dataclass(frozen=True, kw_only=True)
class Header:
    """What is the same for every episode of a dataset."""

    schema: Schema
    provenance: Provenance
    control_dt_s: float
    """Time between two rows of an episode."""
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    """Units of the params that every episode records, by name, in order."""
    terms: tuple[str, ...] = ()
    """Names of what is summed over an episode, as `reward` and its terms."""
    belief: str = ""
    """What the params were drawn from, as `core.belief.text` writes it."""
    lock: str = ""
    """Text of the spec that began it, with every default written out. How many episodes, and on how many copies
    and threads, is no part of what an episode is: a dataset may be continued under another lock."""

    def __post_init__(self) -> None:
        taken = [name for name in KEYS if name in self.schema.scalars]
        if taken:
            raise DataError(f"a signal may not be stored as {taken[0]!r}", attempt="another name for it")

    @classmethod
    def of(cls, recipe: Recipe, *, lock: str = "") -> Header:
        """Describe what `recipe` produces."""
        belief = recipe.belief or recipe.task.belief
        return cls(
            schema=recipe.schema,
            provenance=recipe.provenance,
            control_dt_s=recipe.task.control_dt_s,
            params={param.name: param.unit for param in belief.params},
            terms=("reward", *(term.name for term in recipe.task.reward)),
            belief=text(belief),
            lock=lock,
        )

    def body(self) -> dict[str, object]:
        """Say everything in JSON's own types."""
        return {
            "format": FORMAT,
            "schema": json.loads(self.schema.text()),
            "digest": self.schema.digest,
            "provenance": dataclasses.asdict(self.provenance),
            "control_dt_s": self.control_dt_s,
            "params": [[name, unit] for name, unit in self.params.items()],
            "terms": list(self.terms),
            "belief": self.belief,
            "lock": self.lock,
        }

    @classmethod
    def parse(cls, body: Mapping[str, Any], where: Path) -> Header:
        """Read what `body` said; refuse what a newer simops wrote."""
        if body.get("format") != FORMAT:
            raise DataError(
                f"format {body.get('format')} is not known here, only {FORMAT}",
                where=str(where),
                attempt="a newer simops",
                fault="DAT-012",
            )
        made: dict[str, Any] = dict(body["provenance"])
        made.update({name: tuple(made[name]) for name in ("sensors", "packages")})
        return cls(
            schema=Schema.parse(json.dumps(body["schema"])),
            provenance=Provenance(**made),
            control_dt_s=body["control_dt_s"],
            params=dict(body["params"]),
            terms=tuple(body["terms"]),
            belief=body["belief"],
            lock=body["lock"],
        )

    def write(self, folder: Path) -> None:
        """Put the header into `folder`, to stay."""
        files.publish(folder / NAME, files.seal(self.body()))

    @classmethod
    def read(cls, folder: Path) -> Header:
        """Read the header of the dataset in `folder`."""
        if not (folder / NAME).is_file():
            raise DataError(f"{folder} is not a dataset: it has no {NAME}", where=str(folder), attempt="another path")
        return cls.parse(files.unseal(folder / NAME), folder)

    def require_same(self, other: Header, where: Path) -> None:
        """Raise saying what differs, if anything does: episodes of two recipes do not mix."""
        mine, theirs = _flat(self.body()), _flat(other.body())
        differences = [
            f"{key} was {_short(mine.get(key))} and is now {_short(theirs.get(key))}"
            for key in sorted({*mine, *theirs})
            if mine.get(key) != theirs.get(key) and key not in {"digest", "lock"}
        ]
        if differences:
            raise DataError(
                "the dataset was made otherwise: " + "; ".join(differences),
                where=str(where),
                attempt="another folder, or what it was made with",
                fault="CFG-008",
            )


def _flat(body: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(body))
    made: dict[str, Any] = plain.pop("provenance")
    return plain | {f"provenance.{key}": value for key, value in made.items()}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}… ({files.digest(text.encode())[:8]})"
