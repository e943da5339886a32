"""The commands, with a sidecar that owns the store and without one: what they do, say, and exit with."""

import asyncio
import json
import signal
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.exits import Exit
from sidecar.cli.main import main
from sidecar.config.settings import ConversationSession
from sidecar.server.admin import admin_path, reachable
from tests.support import asking
from tests.support.patience import eventually
from tests.support.running import Caller, calling, process, settings, started
from tests.support.stores import beside, files_in, pinned

CANARY = "canary-5f0c"


async def _run(*arguments: str, text: str | None = None) -> Result:
    """A command in a thread: the sidecar that it asks runs in this loop."""
    return await asyncio.to_thread(CliRunner().invoke, main, arguments, input=text)


async def _answer(*arguments: str) -> dict[str, Any]:
    result = await _run(*arguments, "--json")
    assert result.exit_code == Exit.DONE, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


@asynccontextmanager
async def _owned(folder: Path, turns: int = 3, **session: Any) -> AsyncIterator[Caller]:
    """A sidecar that owns the folder's store, in which there are some turns."""
    chosen = settings(folder, session=ConversationSession(**session))
    async with started(chosen) as app, calling(app.address.target) as caller:
        for number in range(turns):
            await caller.record.Append(asking.append(f"w{number}", entry=asking.entry(reply=f"{CANARY} {number}")))
        yield caller


async def _left(folder: Path, turns: int = 3, **session: Any) -> str:
    """A store with some turns that nobody owns."""
    async with _owned(folder, turns, **session):
        pass
    return str(folder / "store.db")


@pytest.mark.parametrize("owned", [True, False])
async def test_stats_are_totals_alone(tmp_path: Path, *, owned: bool) -> None:
    """Counts and sizes are told, and no key and no word of an entry, by the owner and without one."""
    store = str(tmp_path / "store.db")
    async with _owned(tmp_path, max_entries=2):
        if owned:
            result = await _run("stats", "--store", store)
            answer = await _answer("stats", "--store", store)
    if not owned:
        result = await _run("stats", "--store", store)
        answer = await _answer("stats", "--store", store)
    assert (answer["totals"]["entries"], answer["totals"]["trimmed"]) == (2, 1)
    assert (answer["totals"]["conversations"], answer["totals"]["seats"]) == (1, 1)
    assert answer["sizes"]["disk_free_bytes"] > 0
    assert ("health" in answer) == owned
    for word in (CANARY, asking.SEAT, asking.CONVERSATION, "w0"):
        assert word not in result.output + json.dumps(answer)


@pytest.mark.parametrize("owned", [True, False])
async def test_check_says_sound_or_names_rows(tmp_path: Path, *, owned: bool) -> None:
    """A sound store exits with 0; a damaged row with 1, named by its id and by nothing that it says."""
    store = str(tmp_path / "store.db")

    async def check() -> tuple[Result, Result]:
        sound = await _run("check", "--store", store)
        with beside(tmp_path / "store.db") as db:
            db.execute("UPDATE conversation_sessions SET entry = x'00' WHERE work_key = 'w1'")
        return sound, await _run("check", "--store", store)

    async with _owned(tmp_path):
        if owned:
            sound, damaged = await check()
    if not owned:
        sound, damaged = await check()
    assert (sound.exit_code, damaged.exit_code) == (Exit.DONE, Exit.NO)
    assert "3 rows, 3 of them with their entry\nsound" in sound.stdout
    assert "1 entries cannot be read (rows 2)" in damaged.stdout
    assert CANARY not in damaged.output


async def test_the_file_of_a_running_sidecar_is_checked_by_it(tmp_path: Path) -> None:
    """A FILE that is some sidecar's own store is no refusal: whoever owns it checks it. A backup needs nobody."""
    backup = tmp_path / "b.db"
    async with _owned(tmp_path):
        assert (await _answer("check", str(tmp_path / "store.db")))["rows"] == 3
        await _answer("backup", "--store", str(tmp_path / "store.db"), str(backup))
        assert (await _answer("check", str(backup)))["rows"] == 3


async def test_a_backup_is_restored(tmp_path: Path) -> None:
    """What a backup made under a running sidecar holds is what a restored one answers, byte for byte."""
    store, backup = str(tmp_path / "store.db"), str(tmp_path / "b.db")
    async with _owned(tmp_path) as caller:
        before = (await caller.render.History(asking.history())).history.text
        made = await _answer("backup", "--store", store, backup)
        assert (made["rows"], made["entries"]) == (3, 3)
        await caller.record.Append(asking.append("later"))
        refused = await _run("restore", "--store", store, backup)
    assert refused.exit_code == Exit.UNSAFE
    assert "a sidecar owns this store; stop it" in refused.stderr
    restored = await _run("restore", "--store", store, backup)
    assert restored.exit_code == Exit.DONE
    assert "3 rows, 3 of them with their entry, restored from" in restored.stdout
    assert "remove it once you are sure" in restored.stdout
    async with started(settings(tmp_path)) as app, calling(app.address.target) as caller:
        assert (await caller.render.History(asking.history())).history.text == before


async def test_a_restore_that_could_bring_back_forgotten_turns_is_refused(tmp_path: Path) -> None:
    """Without the old store nobody knows what was forgotten: exit code 3, and the option that means it."""
    store, backup = await _left(tmp_path), str(tmp_path / "b.db")
    assert (await _run("backup", "--store", store, backup)).exit_code == Exit.DONE
    (tmp_path / "store.db").unlink()
    refused = await _run("restore", "--store", store, backup)
    assert (refused.exit_code, "--forget-unknown" in refused.stderr) == (Exit.UNSAFE, True)
    assert (await _run("restore", "--store", store, backup, "--forget-unknown")).exit_code == Exit.DONE


async def test_a_backup_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    """A target that exists, or whose folder does not, fails with the path and what to do."""
    (tmp_path / "taken").touch()
    async with _owned(tmp_path):
        taken = await _run("backup", "--store", str(tmp_path / "store.db"), str(tmp_path / "taken"))
        nowhere = await _run("backup", "--store", str(tmp_path / "store.db"), str(tmp_path / "no" / "b.db"))
    assert taken.exit_code == nowhere.exit_code == Exit.UNREACHABLE
    assert f"{tmp_path}/taken exists, and no backup replaces one; name another" in taken.stderr
    assert "cannot be written: No such file or directory" in nowhere.stderr


@pytest.mark.parametrize("owned", [True, False])
async def test_a_sweep_looks_twice_unless_told(tmp_path: Path, *, owned: bool) -> None:
    """A sweep that was asked for trims, and deletes by the clock only where it is told to trust it."""
    store = str(tmp_path / "store.db")

    async def sweep() -> tuple[dict[str, Any], dict[str, Any]]:
        with beside(tmp_path / "store.db") as db:
            db.execute("UPDATE conversation_sessions SET created_at = 5 WHERE work_key <> 'w2'")
        return await _answer("sweep", "--store", store), await _answer("sweep", "--store", store, "--trust-clock")

    async with _owned(tmp_path):
        if owned:
            careful, trusting = await sweep()
    if not owned:
        careful, trusting = await sweep()
    assert (careful["swept"], trusting["swept"]) == (0, 2)


async def test_forget_needs_its_scope_and_a_word(tmp_path: Path) -> None:
    """A seat alone is not enough, and a script must say that it is meant; then exactly that goes."""
    store = str(tmp_path / "store.db")
    async with _owned(tmp_path) as caller:
        assert (await _run("forget", "--store", store, "--seat", asking.SEAT)).exit_code == Exit.USAGE
        scope = ("--seat", asking.SEAT, "--conversation", asking.CONVERSATION)
        unsaid = await _run("forget", "--store", store, *scope)
        assert (unsaid.exit_code, "say --yes to mean it" in unsaid.stderr) == (Exit.UNSAFE, True)
        one = await _answer("forget", "--store", store, *scope, "--work-key", "w1", "--yes")
        assert one == {"forgotten": 1, "complete": True}
        assert (await caller.render.History(asking.history())).history.shown == 2
        everything = await _answer("forget", "--store", store, "--seat", asking.SEAT, "--all-of-seat", "--yes")
    assert everything["forgotten"] == 2
    alone = await _answer("forget", "--store", store, "--seat", asking.SEAT, "--all-of-seat", "--yes")
    assert alone == {"forgotten": 0, "complete": True}


async def test_an_erasure_that_waits_exits_with_1(tmp_path: Path) -> None:
    """While a foreign reader keeps the log the command says that erasure is not complete, and exits with 1."""
    async with _owned(tmp_path):
        with pinned(tmp_path / "store.db"):
            result = await _run(
                "forget", "--store", str(tmp_path / "store.db"), "--seat", asking.SEAT, "--all-of-seat", "--yes"
            )
    assert result.exit_code == Exit.NO
    assert "3 turns forgotten, not yet from the log" in result.stdout


async def test_an_empty_key_never_widens_a_scope(tmp_path: Path) -> None:
    """An empty conversation or work key is refused, and nothing goes."""
    async with _owned(tmp_path) as caller:
        for more in (("--conversation", ""), ("--conversation", asking.CONVERSATION, "--work-key", "")):
            result = await _run("forget", "--store", str(tmp_path / "store.db"), "--seat", asking.SEAT, *more, "--yes")
            assert (result.exit_code, "is not empty" in result.stderr) == (Exit.NO, True)
        assert (await caller.render.History(asking.history())).history.shown == 3


@pytest.mark.parametrize("command", [["stats"], ["check"], ["sweep"], ["backup", "b.db"]])
async def test_no_store_is_made_by_looking(tmp_path: Path, command: list[str]) -> None:
    """A command on a path where there is no store says so, exits with 4, and leaves nothing there."""
    result = await _run(*command, "--store", str(tmp_path / "none" / "store.db"))
    assert result.exit_code == Exit.UNREACHABLE
    assert "there is no store at" in result.stderr
    assert files_in(tmp_path) == set()


async def test_looking_leaves_no_file(tmp_path: Path) -> None:
    """Check and stats of a store that nobody owns change neither it nor its folder, lock or no lock."""
    store = await _left(tmp_path)
    for name in ("store.db.lock", "store.db.reserve"):
        (tmp_path / name).unlink()
    before, data = files_in(tmp_path), (tmp_path / "store.db").read_bytes()
    for command in ("check", "stats"):
        assert (await _run(command, "--store", store)).exit_code == Exit.DONE
    assert (files_in(tmp_path), (tmp_path / "store.db").read_bytes()) == (before, data)


async def test_the_admin_socket_is_its_owners_alone(tmp_path: Path) -> None:
    """Nobody but the sidecar's own user may ask, and the socket is gone with the sidecar."""
    async with _owned(tmp_path):
        mode = admin_path(tmp_path / "store.db").stat().st_mode
        assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    assert not admin_path(tmp_path / "store.db").exists()


async def test_a_long_path_is_reached(tmp_path: Path) -> None:
    """A store whose path is longer than a socket's may be is administered all the same."""
    folder = tmp_path / ("d" * 100)
    folder.mkdir()
    chosen = settings(folder, listen="127.0.0.1:0")
    async with started(chosen):
        assert (await _answer("stats", "--store", chosen.sidecar.store))["store"] == {"open": True}


NONSENSE = {
    "no JSON": b"hello\n",
    "no command": b'{"arguments": {}}\n',
    "no object": b"[1]\n",
    "an unknown command": b'{"command": "browse"}\n',
    "wrong arguments": b'{"command": "sweep", "arguments": {"trust_clock": 3}}\n',
    "unknown arguments": b'{"command": "backup", "arguments": {"to": "/x", "and": 1}}\n',
    "a relative path": b'{"command": "backup", "arguments": {"to": "x"}}\n',
    "deep nesting": b'{"command": ' + b"[" * 5_000 + b"\n",
    "a line without end": b"x" * 20_000 + b"\n",
}


@pytest.mark.parametrize("request_line", NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_is_told_what_is_wrong(tmp_path: Path, request_line: bytes) -> None:
    """Whatever comes over the admin socket is answered with an error, and the sidecar goes on."""
    async with _owned(tmp_path, turns=0):
        with reachable(admin_path(tmp_path / "store.db")) as name:
            reader, writer = await asyncio.open_unix_connection(name)
        writer.write(request_line)
        lines = [json.loads(line) async for line in reader]
        error = lines[-1]["error"]
        assert (error["code"], bool(error["message"])) == ("INVALID", True)
        writer.close()
        assert (await _answer("stats", "--store", str(tmp_path / "store.db")))["store"] == {"open": True}


async def test_a_crowd_is_told_to_wait(tmp_path: Path) -> None:
    """More commands at once than there are places are refused with a reason, and served again once one has ended."""
    async with _owned(tmp_path, turns=0):
        path = admin_path(tmp_path / "store.db")
        idle = [await asyncio.open_unix_connection(path) for _ in range(8)]
        crowded = await _run("stats", "--store", str(tmp_path / "store.db"))
        assert (crowded.exit_code, "too many commands at once" in crowded.stderr) == (Exit.NO, True)
        for _, writer in idle:
            writer.close()
        await asyncio.sleep(0.1)
        assert (await _answer("stats", "--store", str(tmp_path / "store.db")))["store"] == {"open": True}


async def test_a_stopped_owner_hangs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner that gives no sign of life is given up, with exit code 4 and what to look at."""
    monkeypatch.setattr("sidecar.cli.owner._SILENCE_S", 1.0)
    async with process(f"unix://{tmp_path}/s", store=tmp_path / "store.db") as owner:
        await owner.says("the store is open")

        async def administered() -> bool:
            return admin_path(tmp_path / "store.db").exists()

        await eventually(administered)
        owner.send(signal.SIGSTOP)
        await asyncio.sleep(0.3)
        result = await _run("stats", "--store", str(tmp_path / "store.db"))
        owner.send(signal.SIGCONT)
    assert (result.exit_code, "has not answered for 1 s" in result.stderr) == (Exit.UNREACHABLE, True)


async def test_whoever_hangs_up_ends_what_was_asked(tmp_path: Path) -> None:
    """A backup whose asker goes leaves nothing behind."""
    async with _owned(tmp_path):
        with reachable(admin_path(tmp_path / "store.db")) as name:
            _, writer = await asyncio.open_unix_connection(name)
        target = tmp_path / "b.db"
        writer.write(json.dumps({"command": "backup", "arguments": {"to": str(target)}}).encode() + b"\n")
        writer.close()
        await asyncio.sleep(0.3)
        await _answer("stats", "--store", str(tmp_path / "store.db"))
    assert not [name for name in files_in(tmp_path) if name.endswith(".partial")]


async def test_a_socket_that_a_killed_owner_left_is_nobody(tmp_path: Path) -> None:
    """With a stale admin socket the command does its work alone, and the next sidecar takes the socket's place."""
    store = await _left(tmp_path)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(admin_path(tmp_path / "store.db")))
    assert (await _answer("stats", "--store", store))["store"] == {"open": False}
    async with _owned(tmp_path):
        assert (await _answer("stats", "--store", store))["store"] == {"open": True}
