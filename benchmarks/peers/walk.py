"""The Go2's task as a gymnasium environment, learned by Stable-Baselines3; run by the Python that has both.

    python walk.py STEPS OUT.npz [COPIES]

One plain MuJoCo simulation a process behind `SubprocVecEnv`, the same scene, observation, reward terms and ends, in
the nominal world (no randomization, which makes it easier), normalised by `VecNormalize`, networks and settings as in
examples/velocity/train.yaml where there is a counterpart. Writes the network and what it cost.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize

from simops.core import chance
from simops.core.params import Params
from simops.core.task import Draw
from simops.sim.scene import Physics, compile_task
from simops.tasks.velocity import terms
from simops.tasks.velocity.task import velocity

ROLLOUT = 12_288
"""Steps between two updates, as ours."""


class Walk(gymnasium.Env):
    """One Go2."""

    def __init__(self, place: int) -> None:
        """Number `place` draws episodes of its own."""
        self._task, self._place, self._episode = velocity(), place, 0
        model = compile_task(self._task, Physics())
        self._model, self._data = model, mujoco.MjData(model)
        self._substeps = round(self._task.control_dt_s / model.opt.timestep)
        order = self._task.action.labels
        self._joints = [model.joint(f"{name}_joint") for name in order]
        self._qpos = [int(joint.qposadr[0]) for joint in self._joints]
        self._qvel = [int(joint.dofadr[0]) for joint in self._joints]
        self._force = {name: int(model.sensor(name).adr[0]) for name in [f"{leg}_foot_force" for leg in terms_legs()]}
        self._trunk = int(model.sensor("trunk_force").adr[0])
        self._base = model.body("base").id
        self._low, self._high = np.array(self._task.action.low), np.array(self._task.action.high)
        self._centre = np.array(self._task.action_centre)
        size = self._task.observation.size
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = gymnasium.spaces.Box(-8.0, 8.0, (12,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Begin as the task begins."""
        super().reset(seed=seed, options=options)
        self._episode += 1
        seeds = chance.seeds(0, np.array([self._place * 1_000_000 + self._episode]), realm="peer")
        self._draw = Draw(Params.nominal(self._task.belief.params, 1), seeds, np.zeros(1, np.int64))
        begun, model, data = self._task.initial(self._draw), self._model, self._data
        mujoco.mj_resetData(model, data)
        data.qpos[:3], data.qpos[3:7] = begun["base_position"][0], begun["base_quaternion"][0]
        data.qvel[:3], data.qvel[3:6] = begun["base_velocity"][0], begun["gyro"][0]
        data.qpos[self._qpos] = begun["joint_position"][0]
        data.ctrl[:] = self._centre
        mujoco.mj_forward(model, data)
        self._step = 0
        self._goal = self._task.goal(self._draw)["command"]
        self._action = self._centre.astype(np.float32)[None]
        return self._seen(self._columns(self._action)), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Hold an action, in units of its scale, for one control period."""
        asked = self._centre + terms.ACTION_SCALE_RAD * action
        self._data.ctrl[:] = np.clip(asked, self._low, self._high)
        mujoco.mj_step(self._model, self._data, self._substeps)
        self._step += 1
        previous = self._action if self._step > 1 else asked.astype(np.float32)[None]
        self._action = asked.astype(np.float32)[None]
        columns = self._columns(previous)
        earned = sum(weight * float(f(columns)[0]) for f, weight in terms.REWARD) * self._task.control_dt_s
        fallen = bool(terms.fallen(columns)[0])
        if self._step % self._task.goal_every == 0:
            at = Draw(self._draw.params, self._draw.seeds, np.array([self._step]))
            self._goal = self._task.goal(at)["command"]
            columns["command"] = self._goal
        return self._seen(columns), earned, fallen, self._step >= self._task.steps, {}

    def _columns(self, previous: np.ndarray) -> dict[str, np.ndarray]:
        data = self._data
        found = {
            "base_position": data.qpos[None, :3],
            "base_quaternion": data.qpos[None, 3:7],
            "base_velocity": data.qvel[None, :3],
            "gyro": data.qvel[None, 3:6],
            "joint_position": data.qpos[None, self._qpos],
            "joint_velocity": data.qvel[None, self._qvel],
            "joint_torque": data.qfrc_actuator[None, self._qvel],
            "foot_force": data.sensordata[None, list(self._force.values())],
            "trunk_force": data.sensordata[None, [self._trunk]],
            "command": self._goal,
        }
        columns = {name: rows.astype(np.float32) for name, rows in found.items()}
        columns["action"], columns["previous_action"] = self._action, previous
        columns["time_s"] = np.array([self._step * self._task.control_dt_s], np.float32)
        return columns

    def _seen(self, columns: dict[str, np.ndarray]) -> np.ndarray:
        now = {**columns, "previous_action": self._action}
        return self._task.observation.pack({**now, **self._task.observe(now)})[0]


def terms_legs() -> tuple[str, ...]:
    """The legs in the order of the task's columns."""
    from simops.tasks.velocity.legs import LEGS

    return tuple(LEGS)


def main() -> None:
    steps, out = int(sys.argv[1]), Path(sys.argv[2])
    copies = int(sys.argv[3]) if len(sys.argv) > 3 else 16
    torch.set_num_threads(1)
    # one thread for each process of simulation; they share the cores
    environment = SubprocVecEnv([lambda i=i: Walk(i) for i in range(copies)], start_method="fork")
    world = VecNormalize(environment, gamma=0.98)
    model = PPO(
        "MlpPolicy", world, n_steps=ROLLOUT // copies, batch_size=ROLLOUT // 4, n_epochs=5, learning_rate=1e-3,
        ent_coef=0.002, target_kl=0.03, vf_coef=1.0, gamma=0.98, max_grad_norm=1.0, seed=0, device="cpu",
        policy_kwargs={"net_arch": [128, 128], "activation_fn": torch.nn.ELU, "log_std_init": float(np.log(0.7))},
    )  # fmt: skip
    began, used = time.perf_counter(), _cpu_s()
    model.learn(steps)
    wall_s, own_s = time.perf_counter() - began, _cpu_s() - used
    environment.close()
    cpu_s = own_s + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    cpu_s += resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime
    weights = {name: tensor.numpy() for name, tensor in model.policy.state_dict().items()}
    scale = {"mean": world.obs_rms.mean, "std": np.sqrt(world.obs_rms.var + world.epsilon)}
    np.savez(out, **weights, **scale)
    print(json.dumps({
        "steps": model.num_timesteps, "wall_s": wall_s, "cpu_s": cpu_s, "load": os.getloadavg()[0], "copies": copies,
        "steps_per_s": model.num_timesteps / wall_s, "steps_per_cpu_s": model.num_timesteps / cpu_s,
    }), flush=True)  # fmt: skip


def _cpu_s() -> float:
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime + now.ru_stime


if __name__ == "__main__":
    main()
