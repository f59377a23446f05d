# pyright: basic
# rosbags builds message classes while it runs; this is the one file that asks it for them.
"""Bytes of ROS 1 and ROS 2 messages to messages, by the definitions that came with them, without ROS."""

from __future__ import annotations

from typing import Any, final

from simops.core.errors import DataError, ExtraError, nearest

try:
    from rosbags.serde import SerdeError
    from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore
except ModuleNotFoundError as missing:  # pragma: no cover
    raise ExtraError("logs need rosbags, which is not installed", attempt="pip install 'simops[logs]'") from missing

_BAR = "=" * 80 + "\n"
_NEWEST_FIRST = tuple(reversed([store for store in Stores if store.value.startswith("ros2_")]))


@final
class Types:
    """Every message type of one log."""

    def __init__(self, distro: str = "") -> None:
        """Types without a definition of their own are those of `distro`, as `humble`; of the newest by default."""
        known = {store.value.removeprefix("ros2_"): store for store in Stores if store is not Stores.EMPTY}
        if distro and distro not in known:
            raise DataError(f"no ROS distro {distro!r} is known", attempt=nearest(distro, known) or ", ".join(known))
        self._default, self._told = known[distro] if distro else Stores.LATEST, bool(distro)
        self._stores: dict[str, Any] = {}

    def learn(self, kind: str, text: str, *, idl: bool = False) -> None:
        """Take the definition of type `kind`, with those it is made of."""
        if kind in self._stores or not text.strip():
            return
        try:
            types: dict[str, Any] = {}
            if not idl:
                types = dict(get_types_from_msg(text, kind))
            else:
                parts = [part.partition("\n")[2] for part in text.split(_BAR)[1:]] if text.startswith(_BAR) else [text]
                for part in parts:
                    types |= get_types_from_idl(part)
            store = get_typestore(Stores.EMPTY)
            store.register(types)
        except (TypesysError, ValueError, KeyError, AssertionError) as error:
            raise DataError(f"the definition of {kind} cannot be read: {_first(error)}", fault="DAT-007") from error
        self._stores[kind] = store

    def decode(self, kind: str, data: bytes, *, ros1: bool = False) -> object:
        """One message of type `kind`; raise `DataError` if these are not its bytes."""
        if kind not in self._stores:
            self._stores[kind] = self._fitting(kind, data, ros1=ros1)
        return self._decoded(self._stores[kind], kind, data, ros1=ros1)

    def _fitting(self, kind: str, data: bytes, *, ros1: bool) -> Any:
        """Types for a kind that came without a definition: the default's, or the newest that these bytes are of."""
        default = get_typestore(Stores.ROS1_NOETIC if ros1 else self._default)
        if ros1 or self._told:
            return default
        for name in (self._default, *_NEWEST_FIRST):
            store = get_typestore(name)
            try:
                _ = self._decoded(store, kind, data, ros1=False)
            except DataError:
                continue
            return store
        return default

    @staticmethod
    def _decoded(store: Any, kind: str, data: bytes, *, ros1: bool) -> object:
        try:
            if ros1:
                return store.deserialize_ros1(data, kind)
            try:
                return store.deserialize_cdr(data, kind)
            except SerdeError as error:
                if "size mismatch" not in str(error) or len(data) <= 5:
                    raise
                # a writer may fill up to a multiple of four; rosbags forgives three of these bytes
                return store.deserialize_cdr(data[:-1], kind)
        except (KeyError, TypesysError) as error:
            what = f"nothing tells what a {kind} is made of"
            raise DataError(what, attempt="distro: of the robot, or a bag with definitions", fault="DAT-008") from error
        except (SerdeError, IndexError, ValueError, TypeError) as error:
            raise DataError(f"not the bytes of a {kind}: {_first(error)}", fault="DAT-007") from error


def _first(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
