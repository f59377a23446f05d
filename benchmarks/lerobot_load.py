"""Does `lerobot` itself read what we export? It does, or this says what it said.

    python benchmarks/lerobot_load.py /path/to/environment/bin/python

That environment has lerobot 0.4.4 and torch; it needs nothing of ours. A dataset is made, exported, loaded there
frame by frame, and every number compared with what was kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SHIM = """
import sys, torch
if torch.version.cuda is None:  # a torchvision built for CUDA beside a torch built for the CPU misses two operators
    kept = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        kept.define(name + "(Tensor x) -> Tensor")
from lerobot.datasets.lerobot_dataset import LeRobotDataset
"""

LOAD = (
    SHIM
    + """
import json, numpy as np, lerobot
root, out = sys.argv[1:]
whole = LeRobotDataset("made/made", root=root)
some = LeRobotDataset("made/made", root=root, episodes=[1, 3])
names = [name for name, told in whole.features.items() if told["dtype"] == "float32"]
rows = [whole[i] for i in range(len(whole))]
np.savez(out, **{name: np.stack([row[name].numpy() for row in rows]) for name in names},
    episode_index=np.array([int(row["episode_index"]) for row in rows]),
    success=np.array([bool(row["next.success"]) for row in rows]))
window = LeRobotDataset("made/made", root=root, delta_timestamps={"action": [0.0, 0.02, 0.04]})
batch = next(iter(torch.utils.data.DataLoader(window, batch_size=16)))
print("TOLD", json.dumps({
    "lerobot": lerobot.__version__, "torch": torch.__version__, "episodes": whole.num_episodes, "frames": len(whole),
    "some": sorted({int(some[i]["episode_index"]) for i in range(len(some))}), "task": rows[0]["task"],
    "window": list(batch["action"].shape), "quantiles": sorted(whole.meta.stats["action"])}))
"""
)


def has_lerobot(python: str) -> bool:
    """Whether the interpreter exists and finds lerobot and torch."""
    code = "import importlib.util as u, sys; sys.exit(not (u.find_spec('lerobot') and u.find_spec('torch')))"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def ask(python: str, code: str, *words: str) -> str:
    """Run code in the other environment, without network, and give what it printed."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": tempfile.gettempdir()}
    done = subprocess.run([python, "-c", code, *words], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"lerobot refused:\n{done.stderr[-3000:]}")
    return done.stdout


def main() -> None:
    if len(sys.argv) != 2 or not has_lerobot(sys.argv[1]):
        print("skipped: name the python of an environment that has lerobot and torch")
        return
    import numpy as np
    from data_write import block, header

    from simops.data import lerobot
    from simops.data.writer import Writer

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = [block(0, 3), block(3, 5)]
        with Writer.create(folder / "set", header()) as writer:
            for part in parts:
                writer.append(part)
        done = lerobot.export(folder / "set", folder / "out", task="move along")
        printed = ask(sys.argv[1], LOAD, str(folder / "out"), str(folder / "frames.npz"))
        told: dict[str, Any] = json.loads(next(line[5:] for line in printed.splitlines() if line.startswith("TOLD")))
        loaded = np.load(folder / "frames.npz")
        compared = 0
        for each in lerobot.features(header().schema):
            kept = np.concatenate(
                [
                    one.rows[one.starts[i] : one.starts[i] + one.lengths[i], each.where]
                    for one in parts
                    for i in range(len(one))
                ]
            )
            got = loaded[each.name].reshape(len(kept), -1)
            assert got.astype(np.float32).tobytes() == np.ascontiguousarray(kept).tobytes(), each.name
            compared += kept.size
    assert (told["episodes"], told["frames"]) == (done.episodes, done.frames)
    assert told["some"] == [1, 3]
    assert told["task"] == "move along"
    assert told["window"] == [16, 3, 8]
    print(f"lerobot {told['lerobot']} with torch {told['torch']} loads {told['frames']} frames of {told['episodes']}")
    print(f"{compared:,} numbers compared, 0 differ; subset of episodes, time windows and batches work")
    print(f"statistics it finds: {', '.join(told['quantiles'])}")


if __name__ == "__main__":
    main()
