"""Gathers the messages of one log, topic by topic, and makes one recording of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import final

from simops.core.errors import DataError, nearest
from simops.core.recording import Recording, Stream
from simops.core.trajectory import Origin
from simops.data.messages import Topic
from simops.data.rename import Renamed, renamed

MOST_BAD = 0.01
"""A share of messages that cannot be read above this is no accident of transport."""


@final
@dataclass
class Gathered:
    """What was read so far."""

    wanted: tuple[str, ...] = ()
    """Topics to keep, as `/joint_states` or `/arm/*`; all by default."""
    topics: dict[str, Topic] = field(default_factory=dict[str, Topic])
    bad: dict[str, int] = field(default_factory=dict[str, int])
    unread: dict[str, str] = field(default_factory=dict[str, str])
    """Topics that cannot be read at all, and why."""
    seen: set[str] = field(default_factory=set[str])
    notes: list[str] = field(default_factory=list[str])

    def wants(self, topic: str) -> bool:
        """Whether to decode messages of a topic."""
        self.seen.add(topic)
        return topic not in self.unread and (not self.wanted or any(fnmatchcase(topic, one) for one in self.wanted))

    def add(self, topic: str, kind: str, message: object, received_ns: int) -> None:
        """Take one message."""
        if topic not in self.topics:
            self.topics[topic] = Topic(topic, kind)
        self.topics[topic].add(message, received_ns)

    def miss(self, topic: str, error: DataError) -> None:
        """Note a message that could not be read."""
        self.bad[topic] = self.bad.get(topic, 0) + 1
        if error.fault == "DAT-008":
            self.unread[topic] = error.what

    def recording(
        self,
        name: str,
        *,
        robot: str = "",
        session: str = "",
        origin: Origin = "recorded",
        signals: Mapping[str, Renamed] | None = None,
        facts: Mapping[str, str | float] | None = None,
    ) -> Recording:
        """Everything that was taken, as one recording; raise where nothing was."""
        absent = [one for one in self.wanted if not any(fnmatchcase(topic, one) for topic in self.seen)]
        if absent:
            attempt = nearest(absent[0], self.seen) or ", ".join(sorted(self.seen)[:12])
            raise DataError(f"{name} has no topic {absent[0]!r}", attempt=attempt, fault="DAT-008")
        self._judge(name)
        held = [topic for topic in self.topics.values() if topic.rows]
        if not held:
            why = "; ".join(f"{topic}: {why}" for topic, why in self.unread.items())
            raise DataError(f"{name} has no message that could be read", where=why, fault="DAT-004")
        start_ns = min(row[0] for topic in held for row in topic.rows)
        notes, streams = list(self.notes), list[Stream]()
        for topic in sorted(held, key=lambda one: one.name):
            found, said = topic.streams(start_ns)
            streams += found
            notes += said
        notes += [f"{topic} left out: {why}" for topic, why in self.unread.items()]
        recording = Recording(
            name=name,
            streams=tuple(streams),
            robot=robot,
            session=session or name,
            start_ns=start_ns if start_ns > 10**17 else 0,
            facts=facts or {},
            notes=tuple(notes),
            origin=origin,
        )
        return renamed(recording, signals or {})

    def _judge(self, name: str) -> None:
        for topic, bad in self.bad.items():
            if topic in self.unread:
                continue
            good = len(self.topics[topic].rows) if topic in self.topics else 0
            if not good:
                self.unread[topic] = "no message is what its type says; `distro:` names whose types they are"
                continue
            if bad > MOST_BAD * (good + bad) + 1:
                what = f"{bad} of {good + bad} messages of {topic} are not what their type says"
                raise DataError(what, where=name, attempt="topics: without it", fault="DAT-007")
            self.notes.append(f"{topic}: {bad} of {good + bad} messages left out: not what their type says")
