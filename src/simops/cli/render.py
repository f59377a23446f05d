"""`simops render`: a film, a contact sheet or a gallery of episodes, run anew or taken from a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Take what to show, how it looks and where it goes."""
    parser.add_argument("target", help="a task to run (a name or ./file.py:task), or the folder of a dataset")
    parser.add_argument("--episode", type=int, default=0, help="number of the episode (default 0)")
    parser.add_argument("--seed", type=int, default=0, help="root seed of an episode that is run (default 0)")
    parser.add_argument("--policy", default="expert", help="a policy; by default the task's own expert")
    parser.add_argument("--engine", default="mujoco", help="an engine (default mujoco)")
    parser.add_argument("--task", default="", help="the task of a dataset, if it is not found as recorded")
    parser.add_argument("--nominal", action="store_true", help="run it with nothing randomised")
    parser.add_argument("--camera", default="", help="a camera of the scene (default its first)")
    parser.add_argument("--size", type=_size, default=(640, 480), metavar="WxH", help="pixels (default 640x480)")
    parser.add_argument("--fps", type=float, default=25.0, help="frames a second (default 25)")
    parser.add_argument("--speed", type=float, default=1.0, help="times as fast as it happened (default 1)")
    parser.add_argument("--fast", action="store_true", help="no shadows, no anti-aliasing: four times as fast")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the film, .mp4 or .gif (default episode.mp4)")
    parser.add_argument("--sheet", type=Path, metavar="FILE", help="a PNG of the episode's moments side by side")
    parser.add_argument("--gallery", type=Path, metavar="FILE", help="a PNG of many episodes side by side")
    parser.add_argument("--count", type=int, default=12, help="episodes in the gallery (default 12)")


def run(args: argparse.Namespace) -> int:
    """Make the pictures and say where they are."""
    from rich.console import Console
    from rich.progress import Progress

    from simops.ops.picture import Cut, Order, describe, show
    from simops.sim.render import FAST, Look

    nothing = args.out is None and args.sheet is None and args.gallery is None
    count = args.count if args.gallery is not None else 1
    order = Order(
        target=args.target,
        episodes=tuple(range(args.episode, args.episode + count)),
        seed=args.seed,
        policy=args.policy,
        engine=args.engine,
        task=args.task,
        nominal=args.nominal,
        camera=args.camera,
        width=args.size[0],
        height=args.size[1],
        look=FAST if args.fast else Look(),
        cut=Cut(fps=args.fps, speed=args.speed),
        film=Path("episode.mp4") if nothing else args.out,
        sheet=args.sheet,
        gallery=args.gallery,
    )
    with Progress(console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task("rendering", total=None)
        shown = show(order, lambda done, total: bar.update(job, completed=done, total=total))
    one = shown.trajectory
    print(f"episode {one.episode}: {one.outcome} after {len(one)} steps")
    if one.params:
        print(f"  at {describe(one.params)}")
    for made in shown.made:
        print(f"{made.path}  {made.frames} pictures, {made.size / 1e6:.2f} MB, {made.rendered_per_s:.1f} rendered/s")
    return 0


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)
