"""What does a policy cost beyond the network itself, and what does the network cost in other forms?

Prints the time of `Policy.act` on one thread beside the bare onnxruntime call on the same graph, measured turn by
turn in one run: a 48 -> 256 -> 256 -> 12 network with normaliser and limits, a recurrent one, and rows in batches.

    python benchmarks/inference.py [--rounds 15] [--calls 2000] [--full]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import onnxruntime as ort
import torch
from torch import nn

from simops.core.contract import Contract
from simops.core.signal import Schema, Signal
from simops.deploy.bundle import Bundle, assemble
from simops.learn.actor import Actor, Feedforward, Recurrent, Scale, Unscale, layers
from simops.learn.checkpoint import Taught
from simops.ops.export import packed

INPUTS, OUTPUTS, BAR = 48, 12, 1.5


def made(width: int = 0) -> tuple[Bundle, dict[str, bytes]]:
    """A network of chance as a bundle; recurrent if it has a `width`."""
    torch.manual_seed(0)
    unscale = Unscale(torch.zeros(OUTPUTS), torch.ones(OUTPUTS), -torch.ones(OUTPUTS), torch.ones(OUTPUTS))
    actor: Actor = Feedforward(Scale(INPUTS), layers(INPUTS, (256, 256), OUTPUTS), unscale)
    if width:
        actor = Recurrent(Scale(INPUTS), nn.GRU(INPUTS, width), layers(width, (), OUTPUTS), unscale)
    contract = Contract(
        task="bench",
        robot="bench",
        observation=Schema((Signal("seen", (INPUTS,)),)),
        action=Signal("done", (OUTPUTS,), low=(-1.0,) * OUTPUTS, high=(1.0,) * OUTPUTS),
        control_dt_s=0.02,
        memory=actor.slots,
    )
    files, parity = packed(Taught(actor.eval(), contract), provenance={})
    print(
        f"{'recurrent' if width else 'feedforward'}: largest difference to torch over {parity.rows:,} observations ",
        end="",
    )
    print(f"{parity.action:.2g}; any company, same bytes: {parity.together}")
    return assemble(files), files


def microseconds(call: Callable[[], object], calls: int) -> float:
    """Time of one call."""
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls * 1e6


def beside(bundle: Bundle, files: dict[str, bytes], rounds: int, calls: int) -> float:
    """Print one row: act, and the bare call; gives their ratio."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    bare = ort.InferenceSession(files["policy_1.onnx"], options, providers=["CPUExecutionProvider"])
    observation = np.random.default_rng(0).normal(size=(1, INPUTS)).astype(np.float32)
    memory = {slot.name: slot.zeros(1) for slot in bundle.contract.memory}
    feed = {"observation": observation, **memory}
    bound = bare.io_binding()
    for name, array in feed.items():
        bound.bind_cpu_input(name, array)
    for out in bare.get_outputs():
        bound.bind_output(out.name)
    ways = {
        "bare": lambda: bare.run(None, feed),
        "bound": lambda: bare.run_with_iobinding(bound),
        "act": lambda: bundle.act(observation, memory),
    }
    times = [{name: microseconds(way, calls) for name, way in ways.items()} for _ in range(rounds + 1)][1:]
    median = {name: statistics.median(turn[name] for turn in times) for name in ways}
    ratio = statistics.median(turn["act"] / turn["bare"] for turn in times)
    tight = statistics.median(turn["act"] / turn["bound"] for turn in times)
    print(f"  onnxruntime run            {median['bare']:8.2f} us")
    print(f"  onnxruntime, arrays bound  {median['bound']:8.2f} us")
    print(f"  Policy.act                 {median['act']:8.2f} us")
    print(f"  act / run                  {ratio:8.2f}      (bar {BAR})")
    print(f"  act / run, arrays bound    {tight:8.2f}")
    return ratio


def batches(bundle: Bundle, rounds: int) -> None:
    """Print the time of a row in batches."""
    rows = np.random.default_rng(0).normal(size=(4096, INPUTS)).astype(np.float32)
    for size in (1, 16, 256, 4096):
        parts = [rows[i : i + size] for i in range(0, min(4096, 64 * size), size)]
        turns = [microseconds(lambda: [bundle.act(part, {}) for part in parts], 1) for _ in range(rounds + 1)][1:]  # noqa: B023
        print(f"  act, {size:>4} rows at once     {statistics.median(turns) / sum(map(len, parts)):8.2f} us a row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--full", action="store_true", help="more rounds, for the nightly proof")
    args = parser.parse_args()
    rounds = args.rounds * (4 if args.full else 1)
    bundle, files = made()
    beside(bundle, files, rounds, args.calls)
    batches(bundle, rounds)
    beside(*made(256), rounds, args.calls)


if __name__ == "__main__":
    main()
