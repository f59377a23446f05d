# Every target makes what it needs; nothing to do first but have Python 3.11 or newer and make.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3.14 python3,$(if $(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo yes),$(p))))
BIN := .venv/bin
CRANK := out/crank
FACTORY := out/factory

.PHONY: help crank crank-pendulum factory test check bench proof docs clean
help:                      ## this list
	@grep -hE '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:[^#]*## */\t/'

crank: .venv/user.stamp    ## three turns of a Go2 that learns to walk, against a sealed one in another physics: a better simulator, a better policy, a picture
	$(BIN)/simops crank examples/crank_go2/crank.yaml --turns 2 --out $(CRANK)

crank-pendulum: .venv/user.stamp ## the same with a pendulum, in two minutes
	$(BIN)/simops crank examples/crank_pendulum/crank.yaml --turns 3 --out $(CRANK)-pendulum

factory: .venv/user.stamp  ## a small pass of the factory: display, summary, picture
	$(BIN)/simops rollout examples/pick_and_place/spec.yaml --out $(FACTORY) --set rollout.parallel_envs=256 --set rollout.episodes_per_env=2
	$(BIN)/simops data show $(FACTORY)
	@$(BIN)/simops render $(FACTORY) --gallery $(FACTORY)/gallery.png --out $(FACTORY)/episode.gif --size 480x360 --speed 0.5 || echo "no picture: the line above says why; the trajectories are complete"

test: .venv/dev.stamp      ## the tests, in parallel
	$(BIN)/pytest

check: .venv/dev.stamp     ## format, lint, types, layers, documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest tests/house

bench: .venv/dev.stamp     ## the benchmarks, each in about a minute
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/sim_speed.py
	$(BIN)/python benchmarks/env_speed.py
	$(BIN)/python benchmarks/vector_envs.py $(if $(PEERS),--peers $(PEERS))
	$(BIN)/python benchmarks/data_write.py --episodes 4096 $(if $(LEROBOT),--lerobot $(LEROBOT))
	$(BIN)/python benchmarks/data_query.py --episodes 20480
	$(BIN)/python benchmarks/dashboard.py --episodes 204800
	$(BIN)/python benchmarks/train_pendulum.py
	$(BIN)/python benchmarks/inference.py
	$(BIN)/python benchmarks/attribution.py
	$(BIN)/python benchmarks/engine_speed.py --episodes 1
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/gate_defects.py

# PEERS and LEROBOT name interpreters that have gymnasium and envpool, and lerobot; without them their rows are left out.
# TOSSES names recorded cube tosses; without it that benchmark says that it was skipped.
proof: .venv/dev.stamp     ## the slow tests and the long benchmarks
	$(BIN)/pytest -m slow
	$(BIN)/python benchmarks/startup.py --full
	$(BIN)/python benchmarks/sim_speed.py --full
	$(BIN)/python benchmarks/env_speed.py --full
	$(BIN)/python benchmarks/vector_envs.py --full $(if $(PEERS),--peers $(PEERS))
	$(BIN)/python benchmarks/data_write.py $(if $(LEROBOT),--lerobot $(LEROBOT))
	$(BIN)/python benchmarks/data_query.py
	$(BIN)/python benchmarks/dashboard.py
	$(BIN)/python benchmarks/train_pendulum.py --full
	$(BIN)/python benchmarks/inference.py --full
	$(BIN)/python benchmarks/engine_speed.py --full
	$(BIN)/python benchmarks/gate.py --full
	$(BIN)/python benchmarks/gate_defects.py --full
	$(BIN)/python benchmarks/train_go2.py --full
	$(if $(PEERS),$(BIN)/python benchmarks/train_peers.py --full --peers $(PEERS))
	$(BIN)/python benchmarks/imitate_pick_and_place.py --full
	$(BIN)/python benchmarks/cube_toss_engines.py --full $(if $(TOSSES),--data $(TOSSES))
	$(BIN)/python benchmarks/recorded_contact.py --full $(if $(TOSSES),--data $(TOSSES))
	$(if $(TOSSES),$(BIN)/python -m benchmarks.contact_picture --data $(TOSSES) --out out/contact.png)  # benchmarks/contact_picture.py
	$(if $(RECORDINGS),$(BIN)/python -m benchmarks.recorded_motors --data $(RECORDINGS) --full)  # benchmarks/recorded_motors.py
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.motor_speed --full  # benchmarks/motor_speed.py
	$(if $(RECORDINGS),$(BIN)/python -m benchmarks.recorded --data $(RECORDINGS) --full)  # benchmarks/recorded.py
	$(BIN)/python -m benchmarks.doctor  # benchmarks/doctor.py
	$(BIN)/python benchmarks/attribution.py --full
	$(BIN)/python -m benchmarks.crank --full  # benchmarks/crank.py
	$(BIN)/python -m benchmarks.crank_kills --full  # benchmarks/crank_kills.py
	$(BIN)/python -m benchmarks.crank_false --full  # benchmarks/crank_false.py
	rm -rf $(CRANK) $(CRANK)-pendulum $(CRANK)-hand
	$(MAKE) crank crank-pendulum
	$(BIN)/python -m benchmarks.crank_go2 $(CRANK)  # benchmarks/crank_go2.py
	$(BIN)/simops crank examples/crank_pick_and_place/crank.yaml --turns 2 --out $(CRANK)-hand
	$(BIN)/python -m benchmarks.doctor_gap --full  # benchmarks/doctor_gap.py
	$(BIN)/python benchmarks/falsify.py --full
	rm -rf out/proof
	$(BIN)/simops rollout examples/pick_and_place/spec.yaml --out out/proof
	$(if $(LEROBOT),$(BIN)/python benchmarks/lerobot_load.py $(LEROBOT))

docs: .venv/dev.stamp      ## write the help of every command into docs/reference.md
	$(BIN)/python -m tests.house.reference

clean:                     ## remove what can be made again, environment included
	rm -rf .venv build dist out .pytest_cache .ruff_cache .import_linter_cache .hypothesis

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "simops needs Python 3.11 or newer: install it, or set PYTHON=/path/to/python" >&2; exit 2; }
	$(PYTHON) -m venv .venv

.venv/user.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@touch $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]'
	@touch $@ .venv/user.stamp
