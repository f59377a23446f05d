"""Trees of links written as URDF, for engines that take nothing else.

A link's frame is put where its joint turns, as URDF has it: the joint's anchor in MuJoCo's frame of the link.
Inertia is written even, along its principal axes, whose own values whoever reads the file sets afterwards: readers of
URDF refuse those that no solid body has, as a link with a rotor in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

import numpy as np

from simops.core.errors import EngineError
from simops.core.signal import Array
from simops.sim.trees import members, principal
from simops.sim.walk import Link, Parts, Pose, Shape

SLIGHT = 1e-9
"""Inertia of a link that has none [kg m^2]."""


def described(parts: Parts, links: Sequence[Link], root: int) -> dict[str, str]:
    """Files of a tree by name: `tree<root>.urdf`, and one for each mesh; links are called `link<number>`."""
    robot = Xml.Element("robot", name=f"tree{root}")
    files: dict[str, str] = {}
    if links[root].joints[0].kind != "free":
        Xml.SubElement(robot, "link", name="world")
    for i in members(parts, root):
        link = links[i]
        anchor = link.joints[0].anchor if link.joints[0].kind != "free" else np.zeros(3)
        made = Xml.SubElement(robot, "link", name=f"link{i}")
        inertial = Xml.SubElement(made, "inertial")
        values, quaternion = principal(link.inertia)
        _origin(inertial, Pose(link.centre - anchor, quaternion))
        Xml.SubElement(inertial, "mass", value=_text(link.mass_kg))
        even = _text(max(float(values.mean()), SLIGHT))
        Xml.SubElement(inertial, "inertia", ixx=even, iyy=even, izz=even, ixy="0", ixz="0", iyz="0")
        for shape in link.shapes:
            collision = Xml.SubElement(made, "collision")
            _origin(collision, Pose(-anchor, np.array([1.0, 0.0, 0.0, 0.0])).then(shape.pose))
            _geometry(Xml.SubElement(collision, "geometry"), shape, files)
        if link.joints[0].kind != "free":
            _joint(robot, i, links, anchor)
    Xml.indent(robot)  # readers take lines of some thousand characters
    files[f"tree{root}.urdf"] = Xml.tostring(robot, encoding="unicode")
    return files


def _joint(robot: Xml.Element, i: int, links: Sequence[Link], anchor: Array) -> None:
    link, joint = links[i], links[i].joints[0]
    limited = bool(np.isfinite(joint.low) and np.isfinite(joint.high))
    if not limited and (np.isfinite(joint.low) or np.isfinite(joint.high)):
        raise EngineError(f"joint {joint.name!r} has a limit on one side only", attempt="limits on both sides")
    kind = {"slide": "prismatic", "hinge": "revolute" if limited else "continuous"}[joint.kind]
    made = Xml.SubElement(robot, "joint", name=f"joint{i}", type=kind)
    before = links[link.parent].joints[0] if link.parent >= 0 else None
    shift = before.anchor if before is not None and before.kind != "free" else np.zeros(3)
    Xml.SubElement(made, "parent", link=f"link{link.parent}" if link.parent >= 0 else "world")
    Xml.SubElement(made, "child", link=f"link{i}")
    _origin(made, Pose(link.pose.position + link.pose.turn @ anchor - shift, link.pose.quaternion))
    Xml.SubElement(made, "axis", xyz=_row(joint.axis))
    low, high = (joint.low - joint.rest, joint.high - joint.rest) if limited else (1.0, -1.0)
    Xml.SubElement(made, "limit", lower=_text(low), upper=_text(high), effort="1e9", velocity="1e6")


def _geometry(made: Xml.Element, shape: Shape, files: dict[str, str]) -> None:
    size = shape.size
    if shape.kind == "box":
        Xml.SubElement(made, "box", size=_row(2.0 * size))
    elif shape.kind == "sphere":
        Xml.SubElement(made, "sphere", radius=_text(float(size[0])))
    elif shape.kind in {"capsule", "cylinder"}:
        Xml.SubElement(made, shape.kind, radius=_text(float(size[0])), length=_text(2.0 * float(size[1])))
    elif shape.kind == "mesh":
        name = f"mesh{shape.geom}.obj"
        corners = [f"v {_row(vertex)}" for vertex in shape.vertices]
        ends = [min(first, len(corners) - 2) for first in range(1, len(corners) + 1, 3)]  # only the corners count
        files[name] = "\n".join([*corners, *(f"f {end} {end + 1} {end + 2}" for end in ends)]) + "\n"
        Xml.SubElement(made, "mesh", filename=name)
    else:
        raise EngineError(f"a moving {shape.kind} has no description", where=shape.name, attempt="another shape")


def _origin(made: Xml.Element, pose: Pose) -> None:
    turn = pose.turn
    pitch = np.arctan2(-turn[2, 0], np.hypot(turn[0, 0], turn[1, 0]))
    if np.hypot(turn[0, 0], turn[1, 0]) > 1e-9:
        roll, yaw = np.arctan2(turn[2, 1], turn[2, 2]), np.arctan2(turn[1, 0], turn[0, 0])
    else:
        roll, yaw = np.arctan2(-turn[1, 2], turn[1, 1]), 0.0
    Xml.SubElement(made, "origin", xyz=_row(pose.position), rpy=_row(np.array([roll, pitch, yaw])))


def _row(values: Array) -> str:
    return " ".join(_text(float(value)) for value in values)


def _text(value: float) -> str:
    return f"{value:.17g}"
