"""The loop that looks at the file: real files, replaced in every way that people and kubelet have."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from sidecar.config import reloader as reloader_module
from sidecar.config.effective import effective
from sidecar.config.file import Reading, read_file
from sidecar.config.live import Outcome, Reload
from sidecar.config.reloader import Reloader
from tests.support.config_map import ConfigMap
from tests.support.patience import PATIENCE_S, eventually

#: Seconds within which a change of the file holds.
PROMISED_S: Final = 2.0


def _switch(on: object, entries: object = 20) -> str:
    on = str(on).lower()
    return f"turn_engine:\n  conversation_session:\n    enabled: {on}\n    max_entries: {entries}\n"


class Heard:
    """What an observer was told, and a way to wait for it."""

    def __init__(self) -> None:
        self.reloads: list[Reload] = []

    def __call__(self, reload: Reload) -> None:
        self.reloads.append(reload)

    async def one(self, outcome: Outcome) -> Reload:
        async def told() -> bool:
            return any(reload.outcome is outcome for reload in self.reloads)

        await eventually(told)
        return next(reload for reload in self.reloads if reload.outcome is outcome)


@asynccontextmanager
async def reloading(path: Path | None, heard: Heard | None = None, **how: Any) -> AsyncIterator[Reloader]:
    """A reloader at work on the path."""
    reloader = Reloader(effective(path, {}, {}), heard or Heard(), **how)
    running = asyncio.create_task(reloader.run())
    try:
        yield reloader
    finally:
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def took(holds: Callable[[], bool]) -> float:
    """Seconds until it holds."""
    start = time.monotonic()

    async def looked() -> bool:
        return holds()

    await eventually(looked)
    return time.monotonic() - start


async def test_config_map_swaps_hold_within_two_seconds(tmp_path: Path) -> None:
    """A mounted ConfigMap that is swapped again and again turns the switch and the bound both ways, each in time."""
    mount = ConfigMap(tmp_path / "etc", _switch(on=True))
    async with reloading(mount.path) as reloader:
        for number in range(1, 5):
            on = number % 2 == 0
            mount.update(_switch(on, number))
            waited = await took(lambda on=on, number=number: _session(reloader) == (on, number))  # type: ignore[misc]
            assert waited < PROMISED_S
        assert reloader.state().counts[Outcome.APPLIED] == 4


def _in_place(path: Path, text: str) -> None:
    path.write_text(text)


def _renamed_over(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)


def _removed_and_made(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def _same_size_and_time(path: Path, text: str) -> None:
    """What tools that preserve times do: nothing but the content tells the two apart."""
    before = path.stat()
    path.write_text(text.ljust(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _link_swapped(path: Path, text: str) -> None:
    target = path.with_suffix(f".{time.monotonic_ns()}")
    target.write_text(text)
    link = path.with_suffix(".link")
    link.symlink_to(target)
    link.rename(path)


@pytest.mark.parametrize("replace", [_in_place, _renamed_over, _removed_and_made, _same_size_and_time, _link_swapped])
async def test_every_way_to_replace_a_file_is_seen(tmp_path: Path, replace: Callable[[Path, str], None]) -> None:
    """However the file is replaced, the new content holds."""
    path = tmp_path / "settings.yaml"
    path.write_text(_switch(on=True).ljust(200))
    async with reloading(path) as reloader:
        replace(path, _switch(on=False))
        assert await took(lambda: not reloader.session().enabled) < PROMISED_S


async def test_asked_for_is_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What SIGHUP calls does not wait for the next look, and is answered also where nothing changed."""
    monkeypatch.setattr(reloader_module, "LOOK_S", 3_600.0)
    path = tmp_path / "settings.yaml"
    path.write_text(_switch(on=True))
    heard = Heard()
    async with reloading(path, heard) as reloader:
        reloader.reload_now()
        await heard.one(Outcome.UNCHANGED)
        path.write_text(_switch(on=False))
        reloader.reload_now()
        await heard.one(Outcome.APPLIED)
        assert not reloader.session().enabled


async def test_asked_for_without_a_file_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    """SIGHUP to a sidecar that was started without a file says so, and ends nothing."""
    caplog.set_level(logging.INFO)
    async with reloading(None) as reloader:
        reloader.reload_now()
        await took(lambda: "no settings file" in caplog.text)
        assert reloader.state().ok


async def test_broken_and_vanished_and_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that breaks or goes leaves the settings, is told once by line and place, and is taken when it is right."""
    caplog.set_level(logging.INFO)
    mount = ConfigMap(tmp_path / "etc", _switch(on=False))
    async with reloading(mount.path) as reloader:
        mount.update(_switch(on=True, entries=501))
        assert await took(lambda: not reloader.state().ok) < PROMISED_S
        mount.update(None)
        await took(lambda: "cannot be read" in reloader.state().message)
        assert _session(reloader) == (False, 20)
        mount.update(_switch(on=True, entries=500))
        assert await took(lambda: reloader.state().ok) < PROMISED_S
        assert _session(reloader) == (True, 500)
    assert caplog.text.count("line 4: turn_engine.conversation_session.max_entries: must be a whole number") == 1
    assert "enabled false -> true" in caplog.text


async def test_hung_file_system_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a look hangs the loop runs, no second look is begun, the state says so, and it all goes on afterwards."""
    monkeypatch.setattr(reloader_module, "READ_S", 0.1)
    monkeypatch.setattr(reloader_module, "LOOK_S", 0.05)
    path = tmp_path / "settings.yaml"
    path.write_text(_switch(on=True))
    answers, begun = threading.Event(), []

    def read(path: Path) -> Reading:
        begun.append(threading.current_thread())
        answers.wait(PATIENCE_S)
        return read_file(path)

    async with reloading(path, read=read) as reloader:
        await took(lambda: "has not answered" in reloader.state().message)
        assert len(begun) == 1
        assert begun[0].daemon
        path.write_text(_switch(on=False))
        answers.set()
        await took(lambda: reloader.state().ok and not reloader.session().enabled)


async def test_ends_though_a_look_hangs(tmp_path: Path) -> None:
    """A reloader is cancelled in the middle of a look without waiting for it, and the late answer harms nothing."""
    (tmp_path / "settings.yaml").write_text("")
    begun, answers, done = threading.Event(), threading.Event(), threading.Event()

    def read(_: Path) -> Reading:
        begun.set()
        answers.wait(PATIENCE_S)
        done.set()
        return Reading()

    async with reloading(tmp_path / "settings.yaml", read=read) as reloader:
        reloader.reload_now()
        await took(begun.is_set)
    answers.set()
    await took(done.is_set)


async def test_writes_that_go_on_are_never_half_believed(tmp_path: Path) -> None:
    """A file that is written in place in two halves never shows the defaults of the half that is there."""
    path = tmp_path / "settings.yaml"
    text = _switch(on=False, entries=3)
    path.write_text(text)
    seen: set[tuple[bool, int]] = set()
    async with reloading(path) as reloader:
        for number in range(12):
            path.write_text(text[: len("turn_engine:\n")])
            await asyncio.sleep(0.05)
            path.write_text(_switch(on=False, entries=4 + number))
            await asyncio.sleep(0.15)
            seen.add(_session(reloader))
        await took(lambda: _session(reloader) == (False, 15))
    assert {on for on, _ in seen} == {False}


def _session(reloader: Reloader) -> tuple[bool, int]:
    session = reloader.session()
    return session.enabled, session.max_entries
