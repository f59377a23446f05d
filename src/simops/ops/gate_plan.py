"""What a gate will take, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

from simops.core.errors import SimOpsError
from simops.gate.plan import Plan, fixed, plan
from simops.ops.campaign import share
from simops.ops.validate import WHOLE, Order


@final
class Planned(NamedTuple):
    """Of one kind of scenario."""

    planned: Plan
    fixed: int | None
    """Episodes of the test of fixed size with the same two errors, where there is one."""


def plans(order: Order, rate: float = 0.0) -> Mapping[str, Planned]:
    """What every kind of scenario that is drawn takes, for a policy of this true rate.

    Args:
        order: The gate.
        rate: The true success rate that is hoped for; four fifths of the way from what is asked to 1 when left out.
    """
    candidates = order.campaign.candidates if order.campaign else 1
    alpha = share(order.alpha, 1, candidates) if order.campaign else order.alpha
    found: dict[str, Planned] = {}
    for name in order.suite.categories:
        if name in WHOLE:
            continue
        asked = order.rates[name]
        hoped = rate or asked + 0.8 * (1 - asked)
        made = plan(asked, alpha, hoped, budget=len(order.suite.of(name)))
        try:
            size = fixed(asked, alpha, hoped, min(made.power, 0.999)).episodes
        except SimOpsError:
            size = None
        found[name] = Planned(made, size)
    return found
