"""Say each finding against a policy where GitHub shows it: one line of `::error` a failed case of a JUnit file."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def lines(path: Path) -> list[str]:
    """What to print."""
    found: list[str] = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):  # noqa: S314  our own gate wrote it
        failure = case.find("failure")
        if failure is not None:
            title = (
                _plain(f"{case.get('classname', '')}: {case.get('name', '')}").replace(":", "%3A").replace(",", "%2C")
            )
            found.append(f"::error title={title}::{_plain(failure.get('message', ''))}")
    return found


def _plain(text: str) -> str:
    """Text that cannot be another command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in lines(Path(sys.argv[1]))))
