"""`simops doctor`: does this policy fit this task, and why does it fail in one world and not in another?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simops.core.errors import Problem, SpecError

if TYPE_CHECKING:
    import argparse

    from simops.core.protocols import Engine
    from simops.core.task import Task

EPILOG = """\
With a bundle and a task: is everything between them what its name says? Exit code 0: everything agrees. 2:
something does not; what, and how to mend it, is printed.

With a spec of two worlds (.yaml), one that the policy works in and one that it fails in: which difference is to
blame, and for how much of the gap? Exit code 0.

  simops doctor out/go2/bundle velocity
  simops doctor out/go2/bundle velocity --tested ./driver.py:Driver
  simops doctor worlds.yaml
  simops doctor worlds.yaml out/go2/bundle
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take a bundle and a task, or two worlds."""
    from argparse import RawDescriptionHelpFormatter

    parser.epilog = EPILOG
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.add_argument("bundle", type=Path, help="the folder that an export made, or a spec of two worlds (.yaml)")
    parser.add_argument(
        "task",
        nargs="?",
        default="",
        help="an installed task, ./file.py:thing, or a spec (.yaml); after two worlds, a bundle",
    )
    parser.add_argument("--engine", default="mujoco", help="one that is as the task says (default: %(default)s)")
    parser.add_argument("--tested", default="", help="one that may not be: compared with the first")
    parser.add_argument("--static", action="store_true", help="nudge nothing: contract and golden vectors only")


def run(args: argparse.Namespace) -> int:
    """Print what was compared and what was found."""
    if args.bundle.suffix in {".yaml", ".yml"}:
        return _worlds(args.bundle, args.task)
    if not args.task:
        raise SpecError("command line", [Problem("", "which task?", attempt=f"simops doctor {args.bundle} TASK")])
    from simops.ops.doctor import doctor

    task, engine = _chosen(args.task, args.engine)
    tested = _engine(args.tested) if args.tested else None
    report = doctor(args.bundle, task, engine=None if args.static else engine, tested=tested)
    for looked in report.looked:
        print(f"compared  {looked}")
    for mismatch in report.mismatches:
        print(f"\n{mismatch}")
    count = len(report.mismatches)
    print("\neverything agrees" if report.clean else f"\n{count} mismatch{'' if count == 1 else 'es'}: do not run this")
    return 0 if report.clean else 2


def _worlds(spec: Path, bundle: str) -> int:
    """Print which difference between two worlds is to blame."""
    from rich.console import Console

    from simops.ops.gap import Case, explain, lines
    from simops.spec.gap import load_gap

    policy = None
    if bundle:
        from simops.deploy.bundle import load

        policy = load(bundle)
    case = Case.of(load_gap(spec).value, policy)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    with console.status("both worlds") as status:
        found = explain(case, lambda swap: status.update(f"swapping {swap}"))
    for line in lines(found):
        console.print(line)
    return 0


def _chosen(task: str, engine: str) -> tuple[Task, Engine]:
    """The task by name, or that of a spec with the engine of the spec."""
    from simops.core.plugin import Registry
    from simops.core.task import Task

    if task.endswith((".yaml", ".yml")):
        from simops.spec.run import load_run

        loaded = load_run(Path(task)).value
        return loaded.scene.task, loaded.engine
    return Registry[Task]("task").load(task, allow_files=True)(), _engine(engine)


def _engine(name: str) -> Engine:
    from simops.core.plugin import Registry
    from simops.core.protocols import Engine

    return Registry[Engine]("engine").load(name, allow_files=True)()
