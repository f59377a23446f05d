"""A failure: an episode that did not do what was asked, made as small as it can be, with what kind it is of and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final, get_args

from simops.core.patch import Cause
from simops.core.scenario import Scenario

Class: TypeAlias = Literal["kinematic", "dynamic", "contact", "perception", "planning", "generalization"]
CLASSES: tuple[Class, ...] = get_args(Class)


@final
@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failure, or many of one kind."""

    kind: Class
    scenario: Scenario
    """The smallest one that still fails, or, of a trial, the one that is most like it."""
    left: Mapping[str, float] = field(default_factory=dict[str, float])
    """What it takes: params that cannot go back to the middle of what is believed, and how far off they are."""
    source: Literal["gate", "trial"] = "gate"
    alike: tuple[str, ...] = ()
    """Hashes, or numbers of trials, of those that it stands for; itself among them."""

    def body(self) -> dict[str, Any]:
        """Say everything in JSON's own types."""
        return {
            "kind": self.kind,
            "source": self.source,
            "alike": list(self.alike),
            "left": {name: float(value) for name, value in self.left.items()},
            "scenario": self.scenario.body(),
        }


@final
@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What counterfactual replays came to; shares of episodes, `None` where there was nothing to replay."""

    trained: float
    """Succeed in the training's own worlds, from where the task begins."""
    failed: int = 0
    """Scenarios of the gate that failed."""
    mended_by_engine: float | None = None
    """Of those: succeed in the engine that trained."""
    mended_by_centre: float | None = None
    """Of those: succeed at the middle of what is believed."""
    outside: float | None = None
    """Of those: lie where the training never was."""
    trials: int = 0
    """Trials on the robot."""
    real: float | None = None
    """Of those: succeeded."""
    predicted: float | None = None
    """Of those: succeed in the simulator, from where they began."""
    error: float | None = None
    """Of the simulator's prediction of the trials, a window ahead, as a share of how far things move in it."""
    error_miswired: float | None = None
    """The same if one wire were other than believed: the best of all such wires."""
    wire: str = ""
    """Which one, in words."""
    preferred: float | None = None
    """Return of what the policy does, less that of an episode that succeeded, a share of the latter's size: above 0,
    the reward prefers failing."""
    rising: float | None = None
    """By how much the share of successes still rose over the last quarter of the training."""

    def numbers(self) -> dict[str, float]:
        """What there is, by name."""
        named = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "wire"}
        return {name: float(value) for name, value in named.items() if value is not None}


def attribute(found: Evidence) -> tuple[Cause, str]:
    """What most likely lies behind, and a sentence that says why: the nearest thing to the policy that explains it."""
    if found.error is not None and found.error_miswired is not None and found.error_miswired < 0.6 * found.error:
        why = (
            f"the trials fit far better if {found.wire}: error {found.error_miswired:.2f} instead of {found.error:.2f}"
        )
        return "contract", why
    weak = found.trained < 0.75
    if weak and found.preferred is not None and found.preferred > 0.0:
        why = f"the reward prefers what the policy does to what succeeds, by {found.preferred:.0%}"
        return "reward", why
    if not weak and found.outside is not None and found.outside >= 0.5:
        return "range", f"{found.outside:.0%} of what failed lies where the training never was"
    if weak:
        return "capacity", f"it succeeds in {found.trained:.0%} of the very worlds it was trained in"
    if found.real is not None and found.predicted is not None and found.predicted - found.real > 0.1:
        why = f"the simulator lets {found.predicted:.0%} of the trials succeed, and {found.real:.0%} did"
        return "simulator", why
    if found.mended_by_engine is not None and found.mended_by_engine >= 0.5:
        why = f"{found.mended_by_engine:.0%} of what failed succeeds in the engine that trained"
        return "simulator", why
    if found.failed:
        return "capacity", "it fails where it was trained, and at no edge in particular"
    return "unknown", "nothing failed often enough to say"


def words(body: Mapping[str, Any]) -> str:
    """One kind of failure, as `body` says it, for a person."""
    off = ", ".join(f"{name} {value:+.4g}" for name, value in body["left"].items())
    where = off or "at the middle of what is believed"
    scenario = Scenario.of(body["scenario"])
    return f"{len(body['alike'])} of the {body['source']}: {body['kind']}; {where}; scenario {scenario.hash[:12]}"
