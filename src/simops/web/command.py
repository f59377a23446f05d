"""`simops ui`: runs, verdicts, failures and datasets in the browser of this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
The pages only read, load nothing from anywhere else, and follow a crank while it runs. Only this machine's own
browser is answered; --host with --expose lets others in, and whoever reaches that address reads every run.

  simops ui
  simops ui out --port 8080
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, nargs="?", default=Path("out"), help="(default: %(default)s)")
    parser.add_argument("--port", type=int, default=7867, help="0 takes any that is free (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--expose", action="store_true", help="let a --host be one that other machines reach")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console

    from simops.core.errors import DataError
    from simops.web import serve
    from simops.web.app import app

    if not args.folder.is_dir():
        raise DataError("there is no such folder", where=str(args.folder), attempt="simops crank, or another folder")
    serve.hosts(args.host, args.port, exposed=args.expose)
    listening = serve.bound(args.host, args.port)
    port = int(listening.getsockname()[1])
    shown = f"[{args.host}]" if ":" in args.host else args.host
    console = Console(soft_wrap=True, markup=False, highlight=False)
    console.print(f"http://{shown}:{port}/ shows {args.folder}; Ctrl-C ends it")
    serve.server(app(args.folder, serve.hosts(args.host, port, exposed=args.expose))).run(sockets=[listening])
    return 0
