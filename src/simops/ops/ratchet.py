"""The ratchet: what is live is replaced only by what passed its gate, and what was live when, and why, is known.

A turn that did not help changes nothing here.
"""

from __future__ import annotations

from pathlib import Path

from simops.ops.lineage import Lineage
from simops.ops.registry import Registry
from simops.ops.stages import BUNDLE, SIMULATOR
from simops.ops.steps import Done
from simops.ops.turn import Turn

LIVE = "live"
"""The tag of what is live; a version that had it before can have it back."""
HOME = "registry"


def look(out: Path) -> None:
    """Raise now, and not after hours of work, if there is a registry that cannot be written to."""
    if (out / HOME).is_dir():
        Registry(out / HOME, create=True).close()


def keep(out: Path, task: str, turn: Turn) -> None:
    """Note what a turn promoted; once more is as good as once."""
    exported = _step(turn, "export")
    promoted = turn.ending == "promoted" and exported is not None
    learned = _step(turn, "learn") if turn.kept_simulator else None
    if not promoted and learned is None:
        return
    with Registry(out / HOME, create=True) as registry:
        if learned is not None:
            said = learned.said
            error = f"{said['before']:.4g} to {said['after']:.4g}"
            why = f"turn {turn.number}: prediction error on what was held out from {error}"
            facts = Lineage.of([("data", digest) for digest in learned.step.inputs["log"].split()])
            _live(registry, task, learned.folder / SIMULATOR, "simulator", facts, why)
        if promoted and exported is not None:
            facts = [("identity", str(exported.said["bundle"]))]
            if (trained := _step(turn, "train")) is not None:
                facts.append(("spec", trained.step.inputs["spec"]))
                facts.append(("simulator", trained.step.inputs["belief"]))
            why = f"turn {turn.number}: {turn.why}"
            _live(registry, task, exported.folder / BUNDLE, "policy", Lineage.of(facts), why)


def _live(registry: Registry, name: str, folder: Path, kind: str, lineage: Lineage, why: str) -> None:
    version = registry.add(name, folder, kind=kind, lineage=lineage, why=why)
    registry.tag(f"{name}@{version.version}", LIVE, why=why, kind=kind)


def _step(turn: Turn, stage: str) -> Done | None:
    return next((done for done in turn.steps if done.step.stage == stage), None)
