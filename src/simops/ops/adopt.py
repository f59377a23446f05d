"""A bundle becomes a version of a policy: verified first, its provenance read for its lineage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simops.deploy import bundle
from simops.ops.lineage import Lineage
from simops.ops.records import Version
from simops.ops.registry import Registry


def adopt(registry: Registry, name: str, folder: Path, *, parents: Sequence[str] = (), why: str = "") -> Version:
    """Keep the bundle in `folder` as the next version of policy `name`.

    Args:
        registry: Where to keep it.
        name: Of the policy.
        folder: A bundle; it is loaded and tested before it is kept.
        parents: What it was made out of besides what its provenance says, as `go2@3`.
        why: For whoever asks later.
    """
    made = bundle.load(folder)
    told = Lineage.read(made.provenance)
    facts = [*told.facts, ("identity", made.digest), *(("parent", f"policy/{parent}") for parent in parents)]
    return registry.add(name, folder, lineage=Lineage.of(facts), why=why)
