"""What a gate says about one policy: numbers with intervals, and pass, marginal, fail or not enough evidence.

A verdict is about the bytes it names and about no others. No evidence is not a pass, and a gate whose own
instruments came out wrong has no evidence.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, cast, final, get_args

from simops.core.errors import DataError, GateRefused

Status: TypeAlias = Literal["pass", "marginal", "fail", "not enough evidence"]
"""Marginal: everything that was to be looked at was, and it lies too near the requirement to say."""
STATUSES: tuple[Status, ...] = get_args(Status)
FORMAT = 1


class Interval(NamedTuple):
    """Where the true value lies; each end is wrong with a probability of at most the verdict's alpha, at any time."""

    low: float
    high: float


@final
@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check: what was measured, what was asked, on how much evidence, and what follows."""

    check: str
    """As `success rate`, `penetration` or `canary`."""
    category: str = ""
    """The kind of scenario it is about; empty for all of them."""
    value: float | None = None
    """What was measured; `None` where nothing was."""
    bound: float | None = None
    """What it had to reach, or to stay within."""
    interval: Interval | None = None
    count: int = 0
    """Pieces of evidence, mostly episodes."""
    status: Status
    fault: str = ""
    """The catalogue's code, where one fits."""
    note: str = ""
    voids: bool = False
    """Whether this says that the gate itself is broken, so that nothing else it says counts."""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise DataError(f"{self.status!r} is no status", attempt=", ".join(STATUSES))
        numbers = (self.value, self.bound, *(self.interval or ()))
        if self.status == "pass" and (self.count < 1 or any(n is not None and not math.isfinite(n) for n in numbers)):
            raise DataError(f"{self.check} passes on {self.count} pieces of evidence and {numbers}")

    def __str__(self) -> str:
        about = f"{self.check} of {self.category}" if self.category else self.check
        value = "nothing measured" if self.value is None else f"{self.value:.4g}"
        within = f" [{self.interval.low:.4g}, {self.interval.high:.4g}]" if self.interval else ""
        asked = "" if self.bound is None else f", asked {self.bound:.4g}"
        fault, note = f"{self.fault} " if self.fault else "", f"; {self.note}" if self.note else ""
        return f"{fault}{about}: {self.status}; {value}{within}{asked}, on {self.count}{note}"


@final
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Every finding about one policy in one suite of scenarios."""

    policy: str
    """Digest of the bundle, or of the policy, that was judged."""
    suite: str
    """Digest of the scenarios it was judged in."""
    realm: str
    """Namespace of the seeds; never the one that trained."""
    alpha: float
    """Probability, at most, with which this gate lets a policy through that is not as asked."""
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """What follows from all findings together."""
        found = {finding.status for finding in self.findings}
        if not found or any(finding.voids for finding in self.findings):
            return "not enough evidence"
        return next(status for status in ("fail", "not enough evidence", "marginal", "pass") if status in found)

    @property
    def digest(self) -> str:
        """SHA-256 of its text."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def against(self) -> tuple[Finding, ...]:
        """The findings that stand against a pass, the broken gate's own first."""
        order = ("fail", "not enough evidence", "marginal")
        found = [finding for finding in self.findings if finding.status != "pass" or finding.voids]
        return tuple(sorted(found, key=lambda f: (not f.voids, order.index(f.status) if f.status in order else 3)))

    def require(self, policy: str = "") -> Verdict:
        """Give this verdict back if it lets its policy through, and, if one is given, this very policy; or raise."""
        if policy and policy != self.policy:
            raise GateRefused(
                f"the verdict is about {self.policy[:16]}, not about {policy[:16]}",
                attempt="judge the very artefact that shall go out; it was changed, or exported anew, since",
                fault="GAT-009",
            )
        if self.status != "pass":
            against = self.against()
            said = "; ".join(str(finding) for finding in against[:3]) or "nothing was looked at"
            more = f"; and {len(against) - 3} more" if len(against) > 3 else ""
            attempt = {
                "fail": "train on what failed",
                "marginal": "train on what is marginal, or a larger budget in a new gate",
            }.get(self.status, "finish what is missing; no evidence is not a pass")
            fault = against[0].fault if against else ""
            message = f"the gate says {self.status}: {said}{more}"
            raise GateRefused(message, where=self.policy[:16], attempt=attempt, fault=fault)
        return self

    def text(self) -> str:
        """Write it as JSON, one finding a line."""
        head = {
            "format": FORMAT,
            "status": self.status,
            "policy": self.policy,
            "suite": self.suite,
            "realm": self.realm,
            "alpha": self.alpha,
        }
        lines = ",\n".join(f"  {json.dumps(_body(finding))}" for finding in self.findings)
        return f'{json.dumps(head)[:-1]}, "findings": [\n{lines}\n]}}\n'

    @classmethod
    def parse(cls, text: str) -> Verdict:
        """Read what `text` wrote; refuses one whose status does not follow from its findings."""
        try:
            body: dict[str, Any] = json.loads(text)
            if body["format"] != FORMAT:
                raise DataError(f"a verdict of format {body['format']}", attempt="the version that wrote it")
            verdict = cls(
                policy=str(body["policy"]),
                suite=str(body["suite"]),
                realm=str(body["realm"]),
                alpha=float(body["alpha"]),
                findings=tuple(_finding(each) for each in cast("list[dict[str, Any]]", body["findings"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"this is no verdict: {type(error).__name__} {error}") from error
        if body.get("status") != verdict.status:
            said = f"it says {body.get('status')!r}, and its findings say {verdict.status!r}"
            raise DataError(f"a verdict that was changed: {said}", attempt="judge again")
        return verdict


def _body(finding: Finding) -> Mapping[str, object]:
    numbers = (finding.value, finding.bound)
    value, bound = (_number(n) for n in numbers)
    return {
        "check": finding.check,
        "category": finding.category,
        "value": value,
        "bound": bound,
        "interval": [_number(n) for n in finding.interval] if finding.interval else None,
        "count": finding.count,
        "status": finding.status,
        "fault": finding.fault,
        "note": finding.note,
        "voids": finding.voids,
    }


def _finding(body: Mapping[str, Any]) -> Finding:
    interval = body["interval"]
    return Finding(
        check=str(body["check"]),
        category=str(body["category"]),
        value=_read(body["value"]),
        bound=_read(body["bound"]),
        interval=None if interval is None else Interval(*(float(n) for n in interval)),
        count=int(body["count"]),
        status=body["status"],
        fault=str(body["fault"]),
        note=str(body["note"]),
        voids=bool(body["voids"]),
    )


def _number(value: float | None) -> float | str | None:
    """JSON has no word for what is not finite."""
    return value if value is None or math.isfinite(value) else str(value)


def _read(value: float | str | None) -> float | None:
    return None if value is None else float(value)
