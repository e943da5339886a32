"""The loop that looks at the settings file: twice a second, and at once when asked."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from sidecar.config.effective import Effective, judge
from sidecar.config.file import Reading, read_file
from sidecar.config.live import LiveSettings, Outcome, Reload, ReloadState
from sidecar.config.settings import ConversationSession, Settings

_log = logging.getLogger("turnledger.config")

#: Seconds between looks: a change holds well within two. The content is compared, so no way to replace a file escapes:
#: a ConfigMap's swap of a link, a rename, an edit in place. Watching the file or the link for events saw only the first
#: swap.
LOOK_S: Final = 0.5

#: Seconds until a changed file is read again, and believed if it is the same.
SETTLE_S: Final = 0.2

#: Seconds that a file system gets to answer before the settings count as broken.
READ_S: Final = 5.0


class Reloader:
    """The settings of a running process, kept up to date while `run` runs. All but `run` is cheap and never waits."""

    def __init__(
        self,
        start: Effective,
        observe: Callable[[Reload], None] = lambda _: None,
        *,
        clock: Callable[[], float] = time.time,
        read: Callable[[Path], Reading] = read_file,
    ) -> None:
        """`observe` is told each reload that came to something, on the loop, after it was logged. It raises nothing.

        `clock` gives seconds of UTC since 1970; `read` runs on a thread of its own and may block.
        """
        self._inputs = start.inputs
        self._path = start.inputs.path
        self._found = start
        self._live = LiveSettings(start, clock)
        self._observe = observe
        self._read_file = read
        self._asked = False
        self._wake = asyncio.Event()
        self._looking: asyncio.Future[Effective] | None = None

    def current(self) -> Settings:
        """The settings that hold now."""
        return self._live.current()

    def session(self) -> ConversationSession:
        """The part with the live keys, as it holds now."""
        return self._live.session()

    def state(self) -> ReloadState:
        """How the settings stand: for health, totals and metrics."""
        return self._live.state()

    def reload_now(self) -> None:
        """Look at once, and say what it came to also where nothing changed: for SIGHUP. Call it on the loop."""
        self._asked = True
        self._wake.set()

    async def run(self) -> None:
        """Look until cancelled. Without a file there is nothing to look at, and SIGHUP is told so."""
        while True:
            await self._pause()
            asked, self._asked = self._asked, False
            if self._path is not None:
                self._tell(self._live.offer(await self._look(self._path), asked=asked))
            elif asked:
                _log.info("there is no settings file to read again: the sidecar was started without one")

    async def _pause(self) -> None:
        wait_s = SETTLE_S if self._live.unsettled else LOOK_S
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), None if self._path is None else wait_s)
        self._wake.clear()

    async def _look(self, path: Path) -> Effective:
        """One look, on a thread: a mount may hang, and a large file takes long to judge. One at a time is under way."""
        if self._looking is None:
            self._looking = self._on_a_thread(partial(self._find, path))
        await asyncio.wait({self._looking}, timeout=READ_S)
        if not self._looking.done():
            return self._troubled(f"its file system has not answered for {READ_S:.0f} s")
        self._found, self._looking = self._looking.result(), None
        return self._found

    def _find(self, path: Path) -> Effective:
        reading = self._read_file(path)
        return self._found if reading == self._found.reading else judge(self._inputs, reading)

    def _troubled(self, trouble: str) -> Effective:
        return judge(self._inputs, Reading(trouble=trouble))

    def _on_a_thread(self, find: Callable[[], Effective]) -> "asyncio.Future[Effective]":
        """What will be found. The thread is no pool's: nobody waits for one that hangs when the process ends."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Effective] = loop.create_future()

        def answer(found: Effective) -> None:
            if not future.done():
                future.set_result(found)

        def work() -> None:
            found = find()
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(answer, found)

        try:
            threading.Thread(target=work, name="turnledger-settings", daemon=True).start()
        except RuntimeError:
            answer(self._troubled("it cannot be read: the process may start no more threads"))
        return future

    def _tell(self, reload: Reload | None) -> None:
        if reload is None:
            return
        _say(self._path, reload)
        self._observe(reload)


def _say(path: Path | None, reload: Reload) -> None:
    match reload.outcome:
        case Outcome.BROKEN:
            _log.error("the settings stay as they were, since the file is wrong now: %s", reload.message)
        case Outcome.CORRECTED:
            _log.warning("%s: %s", path, reload.message)
        case Outcome.APPLIED:
            _log.info("the settings changed: %s", ", ".join(map(str, reload.changes)))
        case Outcome.UNCHANGED:
            _log.info("the settings were read%s, and nothing changed", " and are right again" * reload.recovered)
    for change in reload.waiting:
        _log.warning("needs a restart to be taken: %s", change)
