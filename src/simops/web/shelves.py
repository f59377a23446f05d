"""A registry: versions, tags, what happened, and where each comes from. A copy is read, so that nothing is touched."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from simops.core.errors import DataError
from simops.ops.ledger import FILE
from simops.ops.lineage import tree
from simops.ops.page import Cell, Page
from simops.ops.registry import Registry
from simops.web.places import Place

LARGEST = 64 * 2**20
KINDS = ("policy", "simulator")


def show(place: Place, page: Page) -> None:
    """Put it on the page."""
    with tempfile.TemporaryDirectory(prefix="simops-ui-") as folder:
        for name in (FILE, f"{FILE}-wal"):
            source = place.path / name
            if source.is_file() and not source.is_symlink():
                if source.stat().st_size > LARGEST:
                    raise DataError(f"{name} is too large to show", where=place.name)
                shutil.copyfile(source, Path(folder) / name)
        with Registry(Path(folder)) as registry:
            for kind in KINDS:
                for name in registry.names(kind=kind):
                    _one(registry, page, name, kind)


def _one(registry: Registry, page: Page, name: str, kind: str) -> None:
    page.section(f"{kind} {name}")
    found = registry.versions(name, kind=kind)
    rows: list[tuple[Cell, ...]] = [(f"{name}@{one.version}", ", ".join(one.tags), one.digest[:12]) for one in found]
    page.table(("version", "tags", "content"), rows)
    page.heading("What happened")
    page.table(
        ("when", "who", "what", "tag", "version", "why"),
        [(e.at[:19], e.who, e.action, e.label, e.version, e.why) for e in registry.history(name, kind=kind)],
    )
    if found:
        root, nodes = registry.graph(f"{name}@{found[-1].version}", kind=kind)
        page.heading("Where the newest comes from")
        page.code(tree(nodes, root))
