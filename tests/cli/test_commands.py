"""The commands, with a sidecar that owns the store and without one: what they do, say, and exit with."""

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.exits import Exit
from sidecar.cli.main import main
from sidecar.config.settings import ConversationSession
from sidecar.domain.errors import Code, LedgerError
from sidecar.server.admin import admin_path, reachable
from sidecar.services.administration import Administration
from tests.support import asking
from tests.support.patience import PATIENCE_S, eventually
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


@pytest.mark.parametrize("owned", [True, False])
async def test_a_backup_that_cannot_be_made_says_why(tmp_path: Path, *, owned: bool) -> None:
    """A target that exists, or whose folder does not, fails with the path and what to do; the store is in reach."""
    (tmp_path / "taken").touch()
    store = str(tmp_path / "store.db")

    async def backups() -> tuple[Result, Result]:
        taken = await _run("backup", "--store", store, str(tmp_path / "taken"))
        return taken, await _run("backup", "--store", store, str(tmp_path / "no" / "b.db"))

    async with _owned(tmp_path):
        taken, nowhere = await backups()
    if not owned:
        taken, nowhere = await backups()
    assert taken.exit_code == nowhere.exit_code == Exit.NO
    assert f"{tmp_path}/taken exists, and no backup replaces one; name another" in taken.stderr
    assert "cannot be written: No such file or directory; name a folder that the sidecar can write to" in nowhere.stderr


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


@pytest.mark.parametrize("wrong", ["turn_engine: [", "sidecar: {typo: 1}"])
async def test_no_sweep_goes_by_settings_that_are_wrong(tmp_path: Path, wrong: str) -> None:
    """Where a default may stand for what was meant, a sweep without an owner deletes nothing and says what is wrong."""
    store = await _left(tmp_path, 25, max_entries=100)
    (tmp_path / "s.yaml").write_text(wrong)
    result = await _run("sweep", "--store", store, "--config", str(tmp_path / "s.yaml"))
    assert (result.exit_code, f"{tmp_path}/s.yaml" in result.stderr) == (Exit.NO, True)
    assert (await _answer("stats", "--store", store))["totals"]["entries"] == 25


async def test_paths_of_any_bytes(tmp_path: Path) -> None:
    """A backup to a name that SQLite cannot take is refused, and leaves nothing; one that has such a name is read."""
    store, odd = await _left(tmp_path), str(tmp_path / "b\udcff.db")
    before = files_in(tmp_path)
    refused = await _run("backup", "--store", store, odd)
    assert (refused.exit_code, "no valid UTF-8" in refused.stderr) == (Exit.NO, True)
    assert files_in(tmp_path) == before
    await _answer("backup", "--store", store, str(tmp_path / "b.db"))
    (tmp_path / "b.db").rename(odd)
    assert (await _answer("check", odd))["rows"] == 3
    assert (await _answer("restore", "--store", store, odd))["rows"] == 3


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


@pytest.mark.parametrize("owned", [True, False])
async def test_a_key_that_is_no_text_is_refused(tmp_path: Path, *, owned: bool) -> None:
    """Bytes that are no UTF-8 name nothing that was ever recorded: that is said, and is no crash and no success."""
    command = ("forget", "--store", str(tmp_path / "store.db"), "--seat", "\udcff", "--all-of-seat", "--yes")
    async with _owned(tmp_path):
        result = await _run(*command) if owned else None
    result = result or await _run(*command)
    assert (result.exit_code, "valid UTF-8" in result.stderr) == (Exit.NO, True)


@pytest.mark.parametrize("command", [["stats"], ["check"], ["sweep"], ["backup", "b.db"]])
async def test_no_store_is_made_by_looking(tmp_path: Path, command: list[str]) -> None:
    """A command on a path where there is no store says so, exits with 4, and leaves nothing there."""
    result = await _run(*command, "--store", str(tmp_path / "none" / "store.db"))
    assert result.exit_code == Exit.UNREACHABLE
    assert "there is no store at" in result.stderr
    assert files_in(tmp_path) == set()


SWEEP = ["sweep"]
FORGET = ["forget", "--seat", asking.SEAT, "--all-of-seat", "--yes"]
COMMANDS_ON_A_STORE = [["stats"], ["check"], SWEEP, FORGET, ["backup", "/nowhere/b.db"]]


@pytest.mark.parametrize("text", [b"", b"garbage" * 1_000])
@pytest.mark.parametrize("command", COMMANDS_ON_A_STORE, ids=[command[0] for command in COMMANDS_ON_A_STORE])
async def test_what_is_no_store_is_not_made_one(tmp_path: Path, command: list[str], text: bytes) -> None:
    """A file in which there is no store is refused by every command, and stays as it is, with nothing beside it."""
    (tmp_path / "notes.txt").write_bytes(text)
    result = await _run(*command, "--store", str(tmp_path / "notes.txt"))
    assert result.exit_code in {Exit.NO, Exit.UNREACHABLE}, result.output
    assert result.stderr.startswith("turnledger: ")
    assert (files_in(tmp_path), (tmp_path / "notes.txt").read_bytes()) == ({"notes.txt"}, text)


@pytest.mark.parametrize("wrong", ["", "folder/", "\udcff.db"])
@pytest.mark.parametrize("as_option", [True, False])
async def test_a_store_that_is_named_wrong_stands_for_no_other(
    tmp_path: Path, wrong: str, monkeypatch: pytest.MonkeyPatch, *, as_option: bool
) -> None:
    """A command never acts on another store than the one that was named: an option that came out empty exits with 2."""
    store = await _left(tmp_path)
    (tmp_path / "s.yaml").write_text(f"sidecar: {{store: {store}}}")
    monkeypatch.setenv("TURNLEDGER_STORE", store if as_option else wrong or "file:x")
    named = ("--store", wrong) if as_option else ()
    result = await _run(*FORGET, "--config", str(tmp_path / "s.yaml"), *named)
    assert (result.exit_code, "sidecar.store" in result.stderr) == (Exit.USAGE, True)
    monkeypatch.delenv("TURNLEDGER_STORE")
    assert (await _answer("stats", "--store", store))["totals"]["entries"] == 3


async def test_a_link_to_a_store_is_that_store(tmp_path: Path) -> None:
    """Whoever names the store by a link meets its owner, its lock and its log, and replaces the file, not the link."""
    (tmp_path / "real").mkdir()
    link, backup = tmp_path / "link.db", str(tmp_path / "b.db")
    link.symlink_to(tmp_path / "real" / "store.db")
    async with _owned(tmp_path / "real"):
        assert (await _answer("stats", "--store", str(link)))["store"] == {"open": True}
        assert (await _answer("check", str(link)))["rows"] == 3
        await _answer("backup", "--store", str(link), backup)
        assert (await _run("restore", "--store", str(link), backup)).exit_code == Exit.UNSAFE
    with beside(tmp_path / "real" / "store.db") as db:
        db.execute("UPDATE conversation_sessions SET created_at = 5 WHERE work_key = 'w2'")
        await asyncio.to_thread(shutil.copytree, tmp_path / "real", tmp_path / "killed")
    link.unlink()
    link.symlink_to(tmp_path / "killed" / "store.db")
    await _answer("backup", "--store", str(link), str(tmp_path / "c.db"))
    with beside(tmp_path / "c.db") as db:
        assert db.execute("SELECT count(*) FROM conversation_sessions WHERE created_at = 5").get == 1
    assert (await _run("restore", "--store", str(link), backup)).exit_code == Exit.DONE
    assert link.is_symlink()
    async with started(settings(tmp_path, store=link)) as app, calling(app.address.target) as caller:
        assert (await caller.render.History(asking.history())).history.shown == 3
    assert {"store.db.lock", "store.db.replaced-1"} <= files_in(tmp_path / "killed")
    assert not [name for name in files_in(tmp_path) if name.startswith("link.db.")]


@pytest.mark.parametrize("kind", ["folder", "fifo"])
async def test_a_restore_replaces_no_more_than_a_file(tmp_path: Path, kind: str) -> None:
    """What is no file, a device above all, is never replaced, whatever the options say."""
    store, odd = await _left(tmp_path), tmp_path / kind
    odd.mkdir() if kind == "folder" else os.mkfifo(odd)
    result = await _run("restore", "--store", str(odd), store, "--forget-unknown")
    assert (result.exit_code, f"{odd} is no file" in result.stderr) == (Exit.NO, True)
    assert odd.is_dir() or odd.is_fifo()


@pytest.mark.parametrize("command", [SWEEP, FORGET], ids=["sweep", "forget"])
async def test_a_store_that_cannot_be_opened_hangs_nobody(
    tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a sidecar would try again until it works, a command without one fails at, saying why."""
    store = await _left(tmp_path)

    def fails(*_: object, **__: object) -> None:
        raise LedgerError(Code.STORE_IO, "the disk failed")

    monkeypatch.setattr("sidecar.store.store.Database", fails)
    result = await asyncio.wait_for(_run(*command, "--store", store), PATIENCE_S)
    assert (result.exit_code, "the disk failed" in result.stderr) == (Exit.NO, True)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="another user's file can be had by root alone")
@pytest.mark.parametrize("command", COMMANDS_ON_A_STORE, ids=[command[0] for command in COMMANDS_ON_A_STORE])
async def test_another_users_store_is_said_to_be_so(tmp_path: Path, command: list[str]) -> None:
    """Whoever may not read or write a store is told whom to run the command as; it exits with 4, and makes nothing."""
    store = Path(await _left(tmp_path))
    for name in ("store.db.lock", "store.db.reserve"):
        (tmp_path / name).unlink()
    for folder in takewhile(lambda each: each != Path(tempfile.gettempdir()), (tmp_path, *tmp_path.parents)):
        folder.chmod(0o755)
    (tmp_path / "store.db").chmod(0o644 if command in (SWEEP, FORGET) else 0o600)
    before = files_in(tmp_path)
    result = await asyncio.to_thread(_as_another_user, *command, "--store", str(store))
    assert result.returncode == Exit.UNREACHABLE, result.stderr
    assert f"{store} cannot be " in result.stderr
    assert "by this user; run this as the sidecar's" in result.stderr
    assert files_in(tmp_path) == before


def _as_another_user(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a user that owns nothing, who may not be able to read the interpreter's files either."""
    become = (
        "import importlib.readers, os; from sidecar.cli.main import main;"  # what is loaded late, as long as it may be
        " os.setgroups([]); os.setgid(10001); os.setuid(10001); os.chdir('/'); main()"
    )
    return subprocess.run(
        [sys.executable, "-c", become, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
        capture_output=True,
        text=True,
    )


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
    "a path with a NUL": b'{"command": "backup", "arguments": {"to": "/x\\u0000y"}}\n',
    "a key that is no text": b'{"command": "forget", "arguments": {"agent_handle": "\\udcff"}}\n',
    "bytes that are no text": b'{"command": "\xff"}\n',
    "more than there is to say": b'{"command": "stats", "and": 1}\n',
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


async def test_what_is_said_after_a_request_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever goes on sending while a command is at work costs the sidecar no memory, and gets the answer."""
    go = asyncio.Event()

    async def slow(*_: object) -> dict[str, Any]:
        await go.wait()
        return {"done": True}

    monkeypatch.setattr(Administration, "run", slow)
    async with _owned(tmp_path, turns=0):
        reader, writer = await asyncio.open_unix_connection(admin_path(tmp_path / "store.db"))
        writer.write(b'{"command": "check"}\n')
        chunk = b"x" * 65_536
        tracemalloc.start()
        for _ in range(256):
            writer.write(chunk)
            await writer.drain()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        go.set()
        assert json.loads([line async for line in reader][-1]) == {"answer": {"done": True}}
        writer.close()
    assert peak < 4_000_000


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


async def test_an_owner_that_hangs_up_has_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a bug ends the connection, the command says where the reason is, and exits with 4."""

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Administration, "run", broken)
    async with _owned(tmp_path, turns=0):
        result = await _run("stats", "--store", str(tmp_path / "store.db"))
    assert (result.exit_code, "look at its log" in result.stderr) == (Exit.UNREACHABLE, True)


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
