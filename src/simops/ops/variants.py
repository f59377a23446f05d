"""Variants of a bundle: fewer bits, fewer neurons, a student; each with a report, none promoted on likeness alone."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, final, get_args

import numpy as np

from simops.core.contract import Contract
from simops.core.errors import Problem, SpecError
from simops.core.protocols import Engine, Memory
from simops.core.rollout import rollout
from simops.core.signal import Array
from simops.core.task import Task
from simops.deploy import golden
from simops.deploy.bundle import Bundle, assemble, load, require
from simops.deploy.cost import Cost, cost
from simops.deploy.graph import Graph, Network
from simops.deploy.manifest import REPORT, read
from simops.learn import prune, quantise
from simops.learn.export import Graphs
from simops.ops.asked import observed
from simops.ops.export import TOLERANCE, together
from simops.ops.publish import as_text, write

Kind: TypeAlias = Literal["float16", "int8", "int8-dynamic", "prune", "student"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CALIBRATION_ROWS = 4096
LESSON_ROWS = 50_000
WATCHED = 16
"""Episodes to learn the parent's ways from."""
PAYS = 0.95
"""A variant pays when it takes at most this share of its parent's time."""


@final
@dataclass(frozen=True, kw_only=True)
class Proof:
    """Where a variant has to show that it still does what its parent does."""

    task: Task
    engine: Engine
    episodes: int = 200
    seed: int = 1_000_000
    margin: float = 0.05
    """By how much the success rate may be lower."""


@final
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a variant is made."""

    kind: Kind
    keep: float = 0.5
    """Share of the neurons that pruning keeps."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of a student."""
    lesson: prune.Lesson = field(default_factory=prune.Lesson)


class Rate(NamedTuple):
    """A success rate and its 95 % Wilson interval."""

    successes: int
    episodes: int
    rate: float
    low: float
    high: float


def optimise(
    folder: Path, out: Path, recipe: Recipe, *, proof: Proof | None = None, asked: Mapping[str, Array] | None = None
) -> Bundle:
    """Make a variant of the bundle at `folder`; without a `proof` it is no candidate, whatever else it shows.

    `asked` are rows of every input to calibrate on and to learn from; taken from the parent's episodes when left out.
    """
    parent = load(folder, contract=None if proof is None else Contract.of(proof.task))
    given = asked or asked_of(parent, proof)
    files = dict(read(folder).files)
    files.pop(REPORT, None)
    files |= _graphs(recipe, files, given)
    files["provenance.json"] = as_text(
        {**json.loads(files["provenance.json"]), "parent": parent.digest, "variant": asdict(recipe)}
    )
    one_step = _own_golden(files, parent, given)
    bundle = assemble(files)
    report: dict[str, Any] = {
        "kind": recipe.kind,
        "parent": parent.digest,
        "tensors": _tensors(folder, files),
        "one_step": one_step,
        "closed_loop": None if proof is None else closed_loop(parent, bundle, proof),
        "cost": _costs(folder, files),
    }
    report["candidate"] = bool(report["closed_loop"] and report["closed_loop"]["holds"])
    report["pays"] = report["cost"]["variant"]["p50_us"] <= PAYS * report["cost"]["parent"]["p50_us"]
    report["verdict"] = _verdict(report)
    return write({**files, REPORT: as_text(report)}, out)


def asked_of(parent: Bundle, proof: Proof | None) -> dict[str, Array]:
    """Rows of every input of the policy: from episodes of its own, or else from its golden vectors."""
    if proof is not None:
        seen = observed(parent, proof.task, proof.engine, n=WATCHED, seed=proof.seed + 1)
        return joined(seen)
    sequence = parent.golden["observation"]
    return joined(replayed(parent, sequence))


def replayed(policy: Bundle, sequence: Array) -> list[tuple[Array, Memory]]:
    """What a policy is asked along recorded sequences (steps, rows, size), memory included."""
    memory: Memory = {slot.name: slot.zeros(sequence.shape[1]) for slot in policy.contract.memory}
    seen: list[tuple[Array, Memory]] = []
    for observation in sequence:
        seen.append((observation, memory))
        memory = policy.act(observation, memory).memory
    return seen


def joined(seen: Sequence[tuple[Array, Memory]]) -> dict[str, Array]:
    """All rows of all steps, by input."""
    names = list(seen[0][1])
    columns: dict[str, Array] = {"observation": np.concatenate([observation for observation, _ in seen])}
    return columns | {name: np.concatenate([memory[name] for _, memory in seen]) for name in names}


def closed_loop(parent: Bundle, variant: Bundle, proof: Proof) -> dict[str, Any]:
    """Both policies in the same episodes: how often each succeeds, and whether the variant holds its own."""
    rates = [_rate(policy, proof) for policy in (parent, variant)]
    return {
        "task": proof.task.name,
        "engine": repr(proof.engine),
        "seed": proof.seed,
        "margin": proof.margin,
        "parent": rates[0]._asdict(),
        "variant": rates[1]._asdict(),
        "holds": rates[1].successes > 0 and rates[1].low >= rates[0].low - proof.margin,
    }


def wilson(successes: int, episodes: int) -> Rate:
    """A rate with the interval that holds it 95 times of 100."""
    z = 1.959963984540054
    rate = successes / episodes
    centre = (rate + z**2 / (2 * episodes)) / (1 + z**2 / episodes)
    half = z * np.sqrt(rate * (1 - rate) / episodes + z**2 / (4 * episodes**2)) / (1 + z**2 / episodes)
    return Rate(successes, episodes, rate, max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def _rate(policy: Bundle, proof: Proof) -> Rate:
    found = rollout(policy, proof.task, proof.engine, n=proof.episodes, seed=proof.seed)
    return wilson(sum(each.outcome == "success" for each in found), len(found))


def _graphs(recipe: Recipe, files: Mapping[str, bytes], given: Mapping[str, Array]) -> dict[str, bytes]:
    """The graphs of the variant."""
    names = [name for name in ("policy.onnx", "policy_1.onnx") if name in files]
    some = {name: rows[_spread(len(rows), CALIBRATION_ROWS)] for name, rows in given.items()}
    if recipe.kind == "float16":
        return {name: quantise.float16(files[name]) for name in names}
    if recipe.kind == "int8":
        return {name: quantise.static(files[name], some, rows=64 if name == "policy.onnx" else 1) for name in names}
    if recipe.kind == "int8-dynamic":
        return {"policy_1.onnx": quantise.dynamic(files["policy_1.onnx"])}
    more = {name: rows[_spread(len(rows), LESSON_ROWS)] for name, rows in given.items()}
    tapped = Graph(prune.tapped(files["policy_1.onnx"]), "policy_1.onnx")
    inputs, outputs = _through(tapped, more)
    pair = Graphs(files.get("policy.onnx", files["policy_1.onnx"]), files["policy_1.onnx"])
    if recipe.kind == "prune":
        made = prune.pruned(pair, inputs, outputs, keep=recipe.keep, lesson=recipe.lesson)
    else:
        made = prune.student(pair, inputs, outputs, hidden=recipe.hidden, lesson=recipe.lesson)
    return {name: made.batched if name == "policy.onnx" else made.single for name in names}


def _through(tapped: Graph, given: Mapping[str, Array]) -> tuple[Array, Array]:
    """What goes into the layers of a graph and what comes out, for rows of all its inputs."""
    arrays = [given[name] for name in tapped.inputs]
    rows = [tapped.run([a[i : i + 1] for a in arrays])[-2:] for i in range(len(arrays[0]))]
    inputs, outputs = (np.concatenate(column) for column in zip(*rows, strict=True))
    return inputs, outputs


def _own_golden(files: dict[str, bytes], parent: Bundle, given: Mapping[str, Array]) -> dict[str, float]:
    """Give a variant golden vectors of its own, and say how far one step of it lies from its parent's."""
    network = Network(files)
    arrays = [rows[_spread(len(rows), CALIBRATION_ROWS)] for rows in (given[name] for name in network.single.inputs)]
    ours, theirs = (
        [np.concatenate(c) for c in zip(*(net.single.run_row(list(r)) for r in _rows(arrays)), strict=True)]
        for net in (network, parent.network)
    )
    off = np.abs(ours[0].astype(np.float64) - theirs[0])
    step = {"worst": float(off.max()), "rms": float(np.sqrt(np.mean(off**2))), "rows": len(off)}
    action = {"action_spread": float(np.ptp(theirs[0]))}
    if network.batched is not None and not together(network, arrays, ours):
        del files["policy.onnx"]
        network = Network(files)
    sequence = parent.golden["observation"]
    vectors = {"observation": sequence, **golden.answered(network, parent.contract, sequence)}
    # rounding that falls to the other side on another processor moves an action by about as much as rounding does
    exact = TOLERANCE * max(1.0, float(np.abs(vectors["action"]).max()))
    rounds = any(b"QuantizeLinear" in files[name] for name in files if name.endswith(".onnx"))
    files["checks.json"] = as_text({"tolerance": max(exact, step["worst"]) if rounds else exact})
    files.update(golden.write(vectors))
    return step | action


def _rows(arrays: Sequence[Array]) -> list[tuple[Array, ...]]:
    return [tuple(a[i : i + 1] for a in arrays) for i in range(len(arrays[0]))]


def _tensors(folder: Path, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Each weight matrix that both have, beside its parent's; empty when the layers are others."""
    found = quantise.gaps(read(folder).files["policy_1.onnx"], files["policy_1.onnx"])
    return {name: gap._asdict() for name, gap in found.items()}


def _costs(folder: Path, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Both bundles in turn, in processes of their own; the median of three."""
    with tempfile.TemporaryDirectory() as aside:
        variant = Path(aside) / "variant"
        write(files, variant)
        turns = [(cost(folder), cost(variant)) for _ in range(3)]
    graphs = {"parent": read(folder).files, "variant": files}
    costs = {
        who: _median([turn[i] for turn in turns])
        | {"graph_bytes": len(graphs[who]["policy_1.onnx"]), "bundle_bytes": sum(map(len, graphs[who].values()))}
        for i, who in enumerate(("parent", "variant"))
    }
    return {**costs, "threads": 1}


def _median(costs: Sequence[Cost]) -> dict[str, float]:
    return {name: statistics.median(getattr(each, name) for each in costs) for name in asdict(costs[0])}


def _spread(total: int, most: int) -> Array:
    """At most `most` of `total` rows, evenly spread."""
    return np.unique(np.linspace(0, total - 1, min(total, most)).astype(np.int64))


def _verdict(report: Mapping[str, Any]) -> str:
    """Say in words what the figures say."""
    parent, variant = report["cost"]["parent"], report["cost"]["variant"]
    ratio, size = variant["p50_us"] / parent["p50_us"], variant["graph_bytes"] / parent["graph_bytes"]
    pays = "pays on this machine: yes" if report["pays"] else "pays on this machine: no"
    speed = f"{ratio:.2f} times its parent's time, {size:.2f} times its size"
    loop = report["closed_loop"]
    if loop is None:
        return f"{pays}; {speed}; no candidate: success was not measured"
    rates = f"success {loop['variant']['rate']:.1%} beside {loop['parent']['rate']:.1%}"
    held = "a candidate" if report["candidate"] else f"no candidate: below its parent by more than {loop['margin']:.0%}"
    return f"{pays}; {speed}; {rates}; {held}"


def kind_of(name: str) -> Kind:
    """The kind of that name, or raise with all of them."""
    for kind in KINDS:
        if kind == name:
            return kind
    raise SpecError("--kind", [Problem("", f"there is no kind {name!r}", attempt=", ".join(KINDS))])


def same_contract(bundle: Bundle, task: Task) -> None:
    """Raise with every difference if a bundle is not for a task."""
    require(bundle.contract, Contract.of(task))
