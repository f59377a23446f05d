"""The `simops` command: finds the command asked for, and turns errors into words and exit codes.

A command is one module with `configure(parser)` and `run(args) -> int`, imported only when it is the one asked for.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from simops.core.errors import PluginError, Problem, SimOpsError, SpecError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "simops"
FILE_MODULE = "simops_file_"
"""How modules that come from a file plugin are called."""


class Command(NamedTuple):
    """One row of `simops --help`."""

    name: str
    summary: str
    module: str


class Runnable(Protocol):
    """What a command module offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Say which arguments the command takes."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and give the exit code."""
        ...


COMMANDS = (
    Command("init", "write a project that runs, to make one's own", "simops.cli.init"),
    Command("rollout", "run a spec: randomised trajectories, on disk, resumable", "simops.cli.rollout"),
    Command("train", "learn a policy from a spec, with curves and checkpoints, resumable", "simops.cli.train"),
    Command("crank", "learn the simulator, train, validate, try on the robot, and again", "simops.cli.crank"),
    Command("plan", "what a crank would do, and why, before anything does", "simops.cli.plan"),
    Command("runs", "which cranks there are, and what they came to", "simops.cli.runs"),
    Command("show", "one crank, turn by turn", "simops.cli.show"),
    Command("ui", "runs, verdicts, failures and datasets in this machine's browser", "simops.web.command"),
    Command("diagnose", "what failed in a turn of a crank, made small, and what it comes from", "simops.cli.diagnose"),
    Command("patch", "look at what a crank would change in a spec, do it, or take it back", "simops.cli.patch"),
    Command(
        "learn", "learn a simulator from recordings, with a report of what they could not tell", "simops.cli.learn"
    ),
    Command("identify", "find the numbers of joints from commands and positions", "simops.cli.identify"),
    Command("export", "write what was trained as a bundle that is provably the same", "simops.cli.export"),
    Command(
        "validate", "let a policy out, or not, with a verdict whose own error rate is known", "simops.cli.validate"
    ),
    Command("replay", "run a scenario of a gate, search or crank again by its hash, and film it", "simops.cli.replay"),
    Command("bundle", "look at a bundle, check it, compare two, make it smaller or quicker", "simops.cli.bundle"),
    Command("render", "film an episode, or show many side by side", "simops.cli.render"),
    Command("data", "look at, ask, check, export and import trajectories on disk", "simops.cli.data"),
    Command("policy", "which policies there are, where they come from, and which is what", "simops.cli.policy"),
    Command(
        "simulator", "which simulators there are, in what they differ, and which to train in", "simops.cli.simulator"
    ),
    Command("doctor", "find what lies between a policy and its robot, before anything moves", "simops.cli.doctor"),
    Command("falsify", "search for scenarios in which a policy fails, and map them", "simops.cli.falsify"),
    Command("coverage", "how much of what is believed was tried, and what is missing", "simops.cli.coverage"),
    Command("check", "check a spec and name every problem in it", "simops.cli.check"),
    Command("schema", "print the JSON Schema of specs, for editors", "simops.cli.schema"),
    Command("engines", "list engines, or measure them against physics with known answers", "simops.cli.engines"),
    Command("plugins", "list installed engines, tasks, motors, sensors and policies", "simops.cli.plugins"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    try:
        code = _dispatch([word for word in words if word != "--debug"])
        sys.stdout.flush()  # here, where a reader that left can be told from a fault
    except SimOpsError as error:
        if debug:
            traceback.print_exc()
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        if debug:
            traceback.print_exc()
        print(f"\n{PROGRAM}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, as in `simops plugins | head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except Exception as error:  # ours, or that of a file they named: the only tracebacks a user ever sees
        traceback.print_exc()
        if (place := _own_code(error)) is not None:
            print(f"{PROGRAM}: {place} raised {type(error).__name__}; that is your code", file=sys.stderr)
            return PluginError.exit_code
        print(f"{PROGRAM}: this is a fault in simops, not in your input; please report it", file=sys.stderr)
        return 1
    else:
        return code


def parser_of(command: Command) -> argparse.ArgumentParser:
    """The parser of one command; imports its module."""
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} {command.name}", description=f"{command.summary}.".capitalize())
    _module_of(command).configure(parser)
    return parser


def top_parser() -> argparse.ArgumentParser:
    """The parser behind `simops --help`; imports no command."""
    width = max(len(command.name) for command in COMMANDS)
    rows = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [--version] [--debug] <command> ...",
        description=f"commands:\n{rows}",
        epilog=f"`{PROGRAM} <command> --help` says what a command takes.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    parser.add_argument("--debug", action="store_true", help="show the trace behind any error")
    return parser


def _own_code(error: Exception) -> str | None:
    """The deepest line of a file plugin that the error came through, if it came through one."""
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).startswith(FILE_MODULE):
            place = f"{frame.f_code.co_filename}:{line}"
    return place


def _module_of(command: Command) -> Runnable:
    return cast("Runnable", importlib.import_module(command.module))


def _dispatch(words: list[str]) -> int:
    top = top_parser()
    if not words or words[0] in {"-h", "--help"}:
        print(top.format_help(), end="")
        return 0
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"{PROGRAM} {version(PROGRAM)}")
        return 0
    by_name = {command.name: command for command in COMMANDS}
    if words[0] not in by_name:
        attempt = nearest(words[0], by_name) or f"`{PROGRAM} --help`"
        raise SpecError("command line", [Problem("", f"no command is called {words[0]!r}", attempt=attempt)])
    command = by_name[words[0]]
    args = parser_of(command).parse_args(words[1:])
    return _module_of(command).run(args)
