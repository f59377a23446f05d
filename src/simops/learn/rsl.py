# pyright: basic
# rsl_rl and tensordict have no usable types; they are met here only.
"""The algorithm and the storage of rsl_rl, behind arrays: no runner, no prints, no names of theirs beyond this file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

import numpy as np
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel, RNNModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch import Tensor, nn

from simops.core.mirror import swap
from simops.core.signal import Array
from simops.core.task import Task
from simops.learn.network import Network, Running
from simops.learn.symmetry import Symmetry

SHOWN, STATE = "shown", "state"
"""What the policy is shown, and the whole true state: only the critic gets both."""
_OURS = frozenset({"normalise", "symmetric", "critic_rate"})
_ACTIVATIONS = {"silu": "swish"}


class Inputs(NamedTuple):
    """What both networks may look at, a row a copy."""

    observation: Array
    state: Array
    """Float32; the whole state, then what each term of the reward said of it."""


@final
class NotFiniteError(Exception):
    """A gradient is not a number."""


@final
class Learner:
    """Two networks, their optimiser, and the steps they learn from."""

    def __init__(
        self, task: Task, shape: tuple[int, int], networks: tuple[Network, Network], options: Mapping[str, object]
    ) -> None:
        """Make networks that know nothing.

        Args:
            task: What sizes follow from.
            shape: Copies, and steps in a lap.
            networks: Who acts and who judges.
            options: Fields of rsl_rl's algorithm, `normalise`, `symmetric` and `critic_rate`.
        """
        sizes = (task.observation.size, task.state_schema.size + len(task.reward))
        sample = _rows(Inputs(*(np.zeros((shape[0], size), np.float32) for size in sizes)))
        normalise, rest = bool(options["normalise"]), {k: v for k, v in options.items() if k not in _OURS}
        self.actor = _actor(sample, task, networks[0], normalise=normalise)
        self.critic = _normalised(_model(sample, "critic", 1, networks[1], None), normalise=normalise)
        self._storage = RolloutStorage("rl", shape[0], shape[1], sample, [task.action.size])
        self._ppo = PPO(self.actor, self.critic, self._storage, **rest)  # type: ignore[arg-type]
        self._ppo.optimizer.register_step_pre_hook(self._check)
        self._critic_rate = self._apart(float(str(options["critic_rate"])))
        self._symmetry = Symmetry()
        if options["symmetric"]:
            self._mirror(task)
        self.forget()

    @property
    def learning_rate(self) -> float:
        """What the optimiser goes on with."""
        return self._ppo.learning_rate

    @property
    def std(self) -> float:
        """Mean spread of the actions' noise."""
        return float(self.actor.state_dict()["distribution.log_std_param"].exp().mean())

    @property
    def mean(self) -> Array:
        """What the last actions would have been without noise."""
        return self.actor.output_mean.numpy()

    @torch.no_grad()
    def act(self, inputs: Inputs) -> Array:
        """Raw actions, with noise; remembers what is needed to learn from them."""
        return self._ppo.act(_rows(inputs)).numpy()

    @torch.no_grad()
    def value(self, inputs: Inputs, ids: Array) -> Array:
        """What the critic thinks of copies `ids`, one row of inputs each; it remembers nothing new."""
        seen = self.critic.obs_normalizer(torch.from_numpy(np.concatenate(inputs, axis=1)))
        if isinstance(self.critic, RNNModel):
            hidden = self.critic.rnn.hidden_state[:, torch.from_numpy(ids)].contiguous()  # type: ignore[index]
            seen = self.critic.rnn.rnn(seen.unsqueeze(0), hidden)[0].squeeze(0)
        return self.critic.mlp(seen).squeeze(-1).numpy()

    @torch.no_grad()
    def record(self, inputs: Inputs, reward: Array, ended: Array) -> None:
        """What the actions led to; `inputs` are the next ones."""
        self._ppo.process_env_step(_rows(inputs), torch.from_numpy(reward), torch.from_numpy(ended), {})

    def forget(self) -> None:
        """Begin all episodes anew: what is remembered of them is nothing, and not none."""
        for model in (self.actor, self.critic):
            if isinstance(model, RNNModel):
                cell = model.rnn.rnn
                model.reset(hidden_state=torch.zeros(cell.num_layers, self._storage.num_envs, cell.hidden_size))

    def look(self) -> None:
        """Take a lap into the normalisers, and learn nothing from it."""
        seen = self._storage.observations.flatten(0, 1)
        self.actor.update_normalization(seen)
        self.critic.update_normalization(seen)
        self._storage.clear()

    def learn(self, inputs: Inputs) -> dict[str, float]:
        """Learn from a lap that `inputs` follow on; raises, and is as it was, if a gradient is not a number."""
        with torch.no_grad():
            self._ppo.compute_returns(_rows(inputs))
        before, rate = {name: tensor.clone() for name, tensor in self.tensors().items()}, self.learning_rate
        try:
            return self._ppo.update()
        except NotFiniteError:
            self.restore(before, rate)
            self._storage.clear()
            raise

    def search(self, target_kl: float, entropy: float) -> None:
        """Move by about so much from now on, and be paid so much for acting at random."""
        self._ppo.desired_kl, self._ppo.entropy_coef = target_kl or None, entropy  # type: ignore[assignment]

    def slow(self) -> None:
        """Go on with half the learning rate."""
        self._set_rate(self.learning_rate / 2)

    def tensors(self) -> dict[str, Tensor]:
        """Weights, normalisers and the optimiser's memory, by name; views, not copies."""
        found: dict[str, Tensor] = {}
        for part, model in (("actor", self.actor), ("critic", self.critic)):
            found |= {f"{part}.{name}": tensor for name, tensor in model.state_dict().items()}
        for index, memory in self._ppo.optimizer.state_dict()["state"].items():
            found |= {f"optimizer.{index}.{name}": tensor for name, tensor in memory.items()}
        return found

    def restore(self, tensors: Mapping[str, Tensor], learning_rate: float) -> None:
        """Go back to what `tensors` told; raises `RuntimeError` or `KeyError` if they are not all there."""
        for part, model in (("actor", self.actor), ("critic", self.critic)):
            model.load_state_dict(
                {k.removeprefix(f"{part}."): t for k, t in tensors.items() if k.startswith(f"{part}.")}
            )
        whole = self._ppo.optimizer.state_dict()
        memory: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimizer."):
                _, index, what = name.split(".")
                memory.setdefault(int(index), {})[what] = tensor.clone()
        if memory and len(memory) != sum(len(group["params"]) for group in whole["param_groups"]):
            raise KeyError("optimizer")
        self._ppo.optimizer.load_state_dict({"state": memory, "param_groups": whole["param_groups"]})
        self._set_rate(learning_rate)

    @torch.no_grad()
    def take_over(self, tensors: Mapping[str, Tensor], *, least_std: float) -> None:
        """Begin with the networks that `tensors` tell, and with noise enough to find something new."""
        networks = {name: tensor for name, tensor in tensors.items() if not name.startswith("optimizer.")}
        self.restore(networks, self.learning_rate)
        self.actor.state_dict()["distribution.log_std_param"].clamp_(min=float(np.log(least_std)))

    def _apart(self, rate: float) -> float:
        """Give the critic a learning rate of its own, unless that is 0."""
        if rate:
            [first] = self._ppo.optimizer.param_groups
            critic = list(self.critic.parameters())
            first["params"] = first["params"][: -len(critic)]
            self._ppo.optimizer.add_param_group({"params": critic})
        return rate

    def _mirror(self, task: Task) -> None:
        """Make both networks mirror images of themselves, and keep them so."""
        shown, moved = swap(task.observation.signals, task.mirror), swap((task.action,), task.mirror)
        whole = (*task.observation.signals, *task.state_schema.signals)
        known = swap(whole, task.mirror, plain=len(task.reward))
        for model, seen, done in ((self.actor, shown, moved), (self.critic, known, swap((), {}, plain=1))):
            self._symmetry.hold(model.mlp, seen, done)
            if isinstance(model.obs_normalizer, Running):
                model.obs_normalizer.swap = torch.from_numpy(seen.source), torch.from_numpy(seen.sign)
        self._symmetry.hold_vector(self.actor.distribution.log_std_param, moved)  # type: ignore[union-attr]
        self._ppo.optimizer.register_step_pre_hook(lambda *_: self._symmetry.even_out())

    def _set_rate(self, rate: float) -> None:
        self._ppo.learning_rate = rate
        for group in self._ppo.optimizer.param_groups:
            group["lr"] = rate

    def _check(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if self._critic_rate:
            optimizer.param_groups[1]["lr"] = self._critic_rate
        for group in optimizer.param_groups:
            for weight in group["params"]:
                if weight.grad is not None and not bool(torch.isfinite(weight.grad).all()):
                    raise NotFiniteError


def _rows(inputs: Inputs) -> TensorDict:
    """Name the inputs; views of the arrays, not copies."""
    parts = {SHOWN: torch.from_numpy(inputs.observation), STATE: torch.from_numpy(inputs.state)}
    return TensorDict(parts, batch_size=[len(inputs.observation)])


def _actor(sample: TensorDict, task: Task, network: Network, *, normalise: bool) -> MLPModel:
    noise = {"class_name": "GaussianDistribution", "init_std": network.init_std, "std_type": "log"}
    model = _normalised(_model(sample, "actor", task.action.size, network, noise), normalise=normalise)
    last = [part for part in model.mlp if isinstance(part, nn.Linear)][-1]
    with torch.no_grad():  # the first actions are the centre, but for the noise
        last.weight *= 0.01
        last.bias.zero_()
    return model


def _model(sample: TensorDict, which: str, size: int, network: Network, noise: dict[str, object] | None) -> MLPModel:
    groups = {"actor": [SHOWN], "critic": [SHOWN, STATE]}
    layers, activation = list(network.hidden), _ACTIVATIONS.get(network.activation, network.activation)
    if not network.memory:
        return MLPModel(sample, groups, which, size, layers, activation, distribution_cfg=noise)
    memory = {"rnn_type": "gru", "rnn_hidden_dim": network.memory}
    return RNNModel(sample, groups, which, size, layers, activation, distribution_cfg=noise, **memory)


def _normalised(model: MLPModel, *, normalise: bool) -> MLPModel:
    model.obs_normalization = normalise
    model.obs_normalizer = Running(model.obs_dim) if normalise else nn.Identity()  # type: ignore[assignment]
    return model
