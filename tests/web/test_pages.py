"""What a person sees, in a real browser: every page, by day and night, wide and narrow, live and when all is silent."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from simops.core.policy import Zero
from simops.core.rollout import Recipe, wave
from simops.core.verdict import Verdict
from simops.data.header import Header
from simops.data.writer import Writer
from simops.ops import kept
from simops.ops.beat import NOW, Beat
from simops.sim.pendulum import Pendulum
from simops.tasks.pendulum.task import pendulum
from simops.web import crank as crank_pages
from simops.web.datasets import BINS, histogram
from tests.browser import Browser, needs_chromium
from tests.gl import needs_gl
from tests.web.made import crank_in, dataset
from tests.web.served import Served, served

WIDTHS = {"desk": 1200, "phone": 390}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crank and a dataset."""
    folder = tmp_path_factory.mktemp("out")
    shutil.copytree(crank_in(tmp_path_factory.getbasetemp()), folder / "turned")
    dataset(folder / "worlds")
    return folder


@pytest.fixture(scope="module")
def ui(out: Path) -> Generator[Served]:
    with served(out) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with Browser() as made:
        yield made


def address(ui: Served, name: str) -> str:
    found = re.search(rf'href="(/run/[0-9a-f]{{16}})">{name}<', ui.ask("/").body)
    assert found is not None
    return ui.address + found[1]


def sound(browser: Browser, own: str) -> None:
    """Nothing was asked for elsewhere, nothing broke, nothing was kept from running, nothing sticks out."""
    assert browser.asked
    assert [one for one in browser.asked if not one.startswith((own, "data:"))] == []
    assert browser.said == []
    assert browser.js("document.documentElement.scrollWidth <= innerWidth")


@needs_chromium
@pytest.mark.parametrize("width", WIDTHS)
def test_the_pages_of_a_crank_and_a_dataset_hold(ui: Served, browser: Browser, width: str, tmp_path: Path) -> None:
    browser.open(ui.address, width=WIDTHS[width])
    sound(browser, ui.address)
    assert set(browser.js("[...document.querySelectorAll('td a')].map(a => a.textContent)")) == {"turned", "worlds"}
    assert len(browser.picture(tmp_path / "list.png")) > 5_000
    turns = kept.told(ui.root / "turned")
    browser.open(address(ui, "turned"), width=WIDTHS[width])
    sound(browser, ui.address)
    headings: list[str] = browser.js("[...document.querySelectorAll('h2')].map(h => h.textContent)")
    assert [f"Turn {one.number}: {one.said['ending']}" in headings for one in turns] == [True] * len(turns)
    assert browser.js("document.querySelectorAll('svg.half').length") == 2
    tried = [one for one in turns if one.tried is not None]
    assert browser.js("document.querySelectorAll('svg.half')[0].querySelectorAll('circle').length") == len(tried)
    boxes = sum(len({each.stage for each in one.steps}) for one in turns)
    assert browser.js("document.querySelectorAll('rect.box').length") == boxes
    patches = [patch for one in turns for patch in (*one.applied, *one.waiting)]
    assert patches
    assert browser.js("document.querySelectorAll('pre.diff').length") == len(patches)
    assert len(browser.picture(tmp_path / "crank.png", whole=True)) > 50_000
    browser.open(address(ui, "worlds"), width=WIDTHS[width])
    sound(browser, ui.address)
    assert "<b>task</b>" in browser.js("document.body.textContent")
    assert len(browser.picture(tmp_path / "data.png", whole=True)) > 20_000


@needs_chromium
def test_the_report_needs_nothing_and_knows_day_and_night(out: Path, browser: Browser, tmp_path: Path) -> None:
    looks: list[bytes] = []
    for dark in (False, True):
        browser.open((out / "turned" / "report.html").as_uri(), width=390, dark=dark)
        assert len([one for one in browser.asked if not one.startswith("data:")]) == 1
        assert browser.said == []
        assert browser.js("document.documentElement.scrollWidth <= innerWidth")
        looks.append(browser.picture(tmp_path / f"{dark}.png"))
    assert looks[0] != looks[1]
    text: str = browser.js("document.body.innerText")
    for word in ("Turn by turn", "What was live, and why", "The gate", "Failures come from", "What came out of what"):
        assert word in text


@needs_chromium
def test_a_crank_that_runs_is_followed_and_one_that_falls_silent_is_grey(
    out: Path, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crank_pages, "STALE_S", 1.5)
    monkeypatch.setattr(crank_pages, "EVERY_S", 0.2)
    run = tmp_path / "out" / "running"
    shutil.copytree(out / "turned", run)
    later = (run / "turn-1.json").read_bytes()
    for name in ("turn-1.json", kept.SUMMARY, NOW):
        (run / name).unlink()
    now: dict[str, object] = {
        "turn": 1, "turns": 3, "stage": "train", "about": "a policy <i>in what is believed</i>", "left_s": 30.0,
        "stage_at": time.time(), "laps": 40, "lap": 7, "lap_at": time.time(), "figures": {"reward": 1.5}, "ended": "",
    }  # fmt: skip
    with served(tmp_path / "out") as ui:
        beat = Beat(run, lambda: now)
        with beat:
            browser.open(address(ui, "running"))
            browser.js("window.mark = 1")
            browser.until("document.querySelector('.live').textContent.includes('lap 7 of 40')")
            assert browser.js("document.querySelector('.live').textContent").count("s ago") == 3
            assert "running" in ui.ask("/").body
            now["lap"] = 8
            browser.until("document.querySelector('.live').textContent.includes('lap 8 of 40')")
            assert not browser.js("document.querySelector('.live').classList.contains('stale')")
            headings = "[...document.querySelectorAll('h2')].map(h => h.textContent).join()"
            assert "Turn 1:" not in browser.js(headings).replace("Turn 1 of 3:", "")
            (run / "turn-1.json").write_bytes(later)
            browser.until(f"{headings}.includes('Turn 1: ')")
        body = json.loads((run / NOW).read_text())
        (run / NOW).write_text(json.dumps({**body, "over": False, "at": time.time()}))  # as after kill -9
        browser.until("document.querySelector('.live').classList.contains('stale')")
        assert browser.js("window.mark") == 1  # never reloaded
        sound(browser, ui.address)
    browser.until("document.getElementById('link').textContent.includes('has not answered')")


def test_what_fell_silent_is_not_called_running(out: Path, tmp_path: Path) -> None:
    run = tmp_path / "out" / "silent"
    shutil.copytree(out / "turned", run)
    (run / kept.SUMMARY).unlink()
    body = json.loads((run / NOW).read_text())
    (run / NOW).write_text(json.dumps({**body, "over": False, "at": time.time() - 60}))
    with served(tmp_path / "out") as ui:
        assert "not over" in ui.ask("/").body
        assert 'class="live stale"' in ui.ask(address(ui, "silent").removeprefix(ui.address) + "/live").body
        (run / NOW).write_text('{"at": "never", "turn": []}')
        assert "cannot be read" in ui.ask(address(ui, "silent").removeprefix(ui.address) + "/live").body


def test_a_histogram_counts_what_is_there(tmp_path: Path) -> None:
    friction, good = dataset(tmp_path / "worlds", episodes=3000)
    found = histogram(tmp_path / "worlds", "now", "friction")
    low, high = float(friction.min()), float(friction.max())
    at = np.minimum((friction - low) / (high - low) * BINS, BINS - 1).astype(int)
    np.testing.assert_array_equal(found.number, np.bincount(at, minlength=BINS))
    np.testing.assert_allclose(found.share, np.bincount(at, good, minlength=BINS) / found.number)
    assert found.share[-1] - found.share[0] > 0.5


def test_a_look_leaves_a_run_as_it_was(out: Path, ui: Served) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {str(one): (one.stat().st_mtime_ns, one.stat().st_size) for one in sorted(out.rglob("*"))}

    before = state()
    seen, ways = set[str](), ["/"]
    while ways:
        way = ways.pop()
        seen.add(way)
        got = ui.ask(way)
        assert got.status == 200, (way, got.body[-500:])
        found = {
            one.replace("&amp;", "&") for one in re.findall(r'(?:href|data-live)="(/(?:run|live)[^"#]*)"', got.body)
        }
        ways += [one for one in found if one not in seen | set(ways) and "/episode/" not in one]
        if len(seen) > 60:
            break
    assert len(seen) > 10
    assert state() == before


@needs_chromium
@needs_gl
def test_an_episode_can_be_watched(browser: Browser, tmp_path: Path) -> None:
    recipe = Recipe(policy=Zero(), task=pendulum(), engine=Pendulum())
    with recipe.engine.open(recipe.task, 2) as sim, Writer.create(tmp_path / "swung", Header.of(recipe)) as writer:
        writer.append(wave(recipe, sim, np.arange(2)))
    with served(tmp_path) as ui:
        browser.open(f"{address(ui, 'swung')}/episode/1")
        assert browser.js("document.querySelectorAll('.pair svg').length") > 3
        browser.until("document.querySelector('video') && document.querySelector('video').videoWidth === 400")
        assert browser.js("document.querySelector('video').duration") > 0.3
        assert "simops render" in browser.js("document.querySelector('code').textContent")
        sound(browser, ui.address)
    assert sorted(path.name for path in (tmp_path / "swung").iterdir()) == [
        "dataset.json", "episodes", "lock", "manifest", "steps",
    ]  # fmt: skip


def test_what_is_damaged_is_said_and_the_rest_is_shown(out: Path, tmp_path: Path) -> None:
    shutil.copytree(out / "turned", tmp_path / "out" / "torn")
    for path in (tmp_path / "out" / "torn" / "steps").glob("diagnose-*/step.json"):
        path.write_bytes(path.read_bytes()[:-20])
    shutil.copytree(out / "worlds", tmp_path / "out" / "worlds")
    (tmp_path / "out" / "worlds" / "dataset.json").write_text("{}")
    with served(tmp_path / "out") as ui:
        body = ui.ask(address(ui, "torn").removeprefix(ui.address)).body
        assert "Not shown: diagnose-" in body
        assert "Turn by turn" in body
        assert "cannot be read" in ui.ask("/").body
        assert ui.ask(address(ui, "worlds").removeprefix(ui.address)).status == 404


def test_a_gate_under_way_says_how_far_it_is_and_how_old_that_is(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    dataset(gate / "candidate", episodes=30)
    (gate / "suite.json").write_text("{}")
    with served(tmp_path) as ui:
        way = address(ui, "gate").removeprefix(ui.address)
        assert "30 episodes so far" in ui.ask(way).body
        before = ui.ask(f"{way}/live").body
        assert "data-every" in before
        verdict = Verdict(policy="p", suite="s", realm="r", alpha=0.05, findings=())
        (gate / "verdict.json").write_text(verdict.text())
        after = ui.ask(f"{way}/live").body
        assert 'data-version="over"' in after
        assert "data-every" not in after
        assert "not enough evidence" in ui.ask(way).body
