"""Who gets in, and at what: users, addresses, methods, and other seats' keys."""

import asyncio
import os
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import grpc.aio
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from sidecar.config.listen import parse_listen
from sidecar.domain.errors import LedgerError
from tests.support import asking
from tests.support.refusal import read_refusal
from tests.support.running import Caller, process, running, settings
from tests.torture.experiment import Experiment, Finding, Say, Scale

_GROUP: Final = 10_077
_STRANGER: Final = 10_001

_SAID: Final = "the vault's number is 7-3-9"

_ADDRESSES: Final = (
    *("0.0.0.0:7411", "[::]:7411", ":7411", "*:7411", "192.0.2.1:7411", "10.0.0.1:7411", "localhost.example:7411"),
    *("example.com:7411", "[2001:db8::1]:7411", "[fe80::1]:7411", "0:7411", "2130706433:7411", "127.0.0.1.nip.io:7411"),
)

_FOREIGN_METHODS: Final = (
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.health.v1.Health/Check",
    "/grpc.channelz.v1.Channelz/GetServers",
    "/turnledger.v1.Record/List",
    "/turnledger.v1.Render/Entries",
    "/turnledger.v1.Admin/Stats",
    "/turnledger.v1.Record/",
    "/",
)

#: Connects to a socket and says whether it got in.
_KNOCK: Final = """
import os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    print("in")
except OSError as error:
    print("out")
"""


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Each once."""
    findings = []
    if os.geteuid() == 0:
        findings.append(await _users(folder / "users"))
    elif not scale.quick:
        findings.append(Finding("Nobody beyond the socket's group gets in", "not tried: needs root", ["needs root"]))
    findings += [_addresses(), await _methods(folder), await _keys(folder / "keys")]
    say(f"{len(findings)} tried")
    return findings


async def _users(folder: Path) -> Finding:
    """A setgid folder of a group; a member, a stranger, and the admin socket."""
    folder.mkdir()
    for each in (folder, *folder.parents):
        if each.stat().st_uid == 0 and each != Path("/") and each != Path("/tmp"):  # noqa: S108
            each.chmod(stat.S_IMODE(each.stat().st_mode) | 0o011)
    os.chown(folder, 0, _GROUP)
    folder.chmod(0o2771)
    broken = []
    async with process(f"unix://{folder}/s", store=folder / "store.db") as sidecar:
        await sidecar.says("the store is open")
        admin = "store.db.admin"
        expected = {("s", True): "in", ("s", False): "out", (admin, True): "out", (admin, False): "out"}
        for (name, member), answer in expected.items():
            found = await _knock(folder / name, _GROUP if member else _STRANGER)
            if found != answer:
                who = "a member of the group" if member else "a stranger"
                broken.append(f"{who} is {found} at {name}")
    return Finding(
        "Only the owner and the socket's group get in, and only the owner at the admin socket",
        "a member and a stranger at both sockets",
        broken,
    )


async def _knock(path: Path, group: int) -> str:
    def knock() -> str:
        done = subprocess.run(
            [sys.executable, "-S", "-c", _KNOCK, str(path), str(_STRANGER), str(group)],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    return await asyncio.to_thread(knock)


def _addresses() -> Finding:
    """An address that others could reach is refused before anything listens."""
    taken = []
    for address in _ADDRESSES:
        try:
            parse_listen(address)
            taken.append(address)
        except LedgerError:
            pass
    return Finding(
        "No address but loopback is listened on", f"{len(_ADDRESSES)} others", [f"{each} was taken" for each in taken]
    )


async def _methods(folder: Path) -> Finding:
    """Nothing answers but the six methods."""
    broken = []
    async with running(settings(folder)) as caller:
        for path in _FOREIGN_METHODS:
            try:
                await caller.call(path, b"")
                broken.append(f"{path} answered")
            except grpc.aio.AioRpcError as error:
                if error.code().name != "UNIMPLEMENTED":
                    broken.append(f"{path} was told as {error.code().name}")
    return Finding(
        "There is no reflection and no method but the six", f"{len(_FOREIGN_METHODS)} others are UNIMPLEMENTED", broken
    )


async def _keys(folder: Path) -> Finding:
    """Keys that are nearly another seat's, read, settled, fitted, forgotten and redelivered."""
    folder.mkdir()
    victim = ("Séat", "jira:POC-7")
    near = _near(*victim)
    broken: list[str] = []
    async with running(settings(folder)) as caller:
        long = {"body": "the letter says that the gate is open " * 10}
        call = entry_pb2.ToolCall(name="t", arguments=str(long).replace("'", '"'))
        entry = asking.entry(unsent=_SAID, calls=[call])
        first = await caller.record.Append(asking.append("w1", entry=entry, **_where(*victim)))
        before = (await caller.render.History(asking.history(**_where(*victim)))).history.text
        for seat, conversation in near:
            broken += await _try(caller, seat, conversation, first.orders[0])
        after = (await caller.render.History(asking.history(**_where(*victim)))).history.text
        if before != after or _SAID not in after:
            broken.append("another seat changed what the first one sees")
    return Finding(
        "No crafted key reads, settles, fits or forgets another seat's turn",
        f"{len(near)} keys: separators, NULs, case, normal forms, spaces, shifted borders, 1 MB",
        broken,
    )


def _where(seat: str, conversation: str) -> dict[str, str]:
    return {"agent_handle": seat, "conversation_key": conversation}


def _near(seat: str, conversation: str) -> list[tuple[str, str]]:
    seats = {unicodedata.normalize(form, seat) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    seats |= {
        seat.lower(),
        seat.upper(),
        f"{seat} ",
        f" {seat}",
        f"{seat}\0",
        f"\0{seat}",
        f"{seat}\n",
        f"{seat}\u200b",
    }
    seats |= {seat + ":" + conversation, seat + "\x1f", "%", "_", "*", f"{seat}%", "' OR 1=1 --", f"{seat}' --", "Seat"}
    seats |= {seat + "x" * 10**6, "S\u00e9at\ufeff", "\u202eSéat"}
    conversations = {
        conversation.lower(),
        f"{conversation} ",
        f"{conversation}\0",
        "jira:POC-70",
        "jira:POC",
        "jira",
        "%",
    }
    conversations |= {f"{seat}:{conversation}", conversation + "\0w1", conversation + "x" * 10**6, "jira\uff1aPOC-7"}
    shifted = {(seat + conversation[:number], conversation[number:]) for number in range(1, 5)}
    shifted |= {(seat[:number], seat[number:] + conversation) for number in range(1, len(seat))}
    pairs = {(each, conversation) for each in seats} | {(seat, each) for each in conversations} | shifted
    return sorted(pairs - {(seat, conversation)})


async def _try(caller: Caller, seat: str, conversation: str, order: object) -> list[str]:
    broken = []
    where = _where(seat, conversation)
    name = f"{seat[:20]!r}, {conversation[:20]!r}"
    try:
        history = await caller.render.History(asking.history(work_key="w1", **where))
        if _SAID in history.history.text or history.already_recorded:
            broken.append(f"{name} reads another seat's turn")
        if history.history.state != render_pb2.HISTORY_STATE_EMPTY:
            broken.append(f"{name} has a history")
        settled = await caller.record.Settle(asking.settle(**where))
        if settled.outcome != record_pb2.SETTLE_OUTCOME_NOT_FOUND:
            broken.append(f"{name} settles another seat's turn")
        fit = record_pb2.Fit(order_id=order.order_id, original=order.text, rewrite="A letter.")  # type: ignore[attr-defined]
        [result] = (await caller.record.Fit(asking.fit(fits=[fit], **where))).results
        if result.verdict != record_pb2.VERDICT_NOT_OPEN:
            broken.append(f"{name} fits another seat's turn")
        if (await caller.record.Forget(asking.forget_conversation(seat, conversation))).forgotten:
            broken.append(f"{name} forgets another seat's turn")
    except grpc.aio.AioRpcError as error:
        if read_refusal(error).reason != "INVALID":
            broken.append(f"{name} was told as {read_refusal(error).reason}")
    return broken


EXPERIMENT: Final = Experiment("access", "users, addresses, methods, and keys that are nearly another's", run)
