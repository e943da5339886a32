"""A configuration that is wrong at start: the sidecar binds all the same, and every call is told what is wrong."""

from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from sidecar.app import app as app_module
from sidecar.cli.serve import launch_from
from sidecar.config import keys
from sidecar.domain.errors import Code, LedgerError
from tests.support import asking
from tests.support.refusal import Refusal, refused
from tests.support.running import calling, started_from

#: A file's text, and what its refusal must tell.
WRONG = {
    "no YAML": ("a: b: c", "line 1"),
    "a tab": ("sidecar:\n\tlisten: x", "line 2"),
    "a list": ("[1, 2]", "object"),
    "two documents": ("a: 1\n---\nb: 2", "line 2"),
    "an impossible date": ("sidecar: {store: 2024-13-45}", "no plain value"),
    "no number": ("sidecar: {store: !!int foo}", "sidecar.store"),
    "too long a number": (
        "sidecar: {limits: {concurrent_calls: " + "1" * 5_000 + "}}",
        "sidecar.limits.concurrent_calls",
    ),
    "nested too deeply": ("[" * 1_200, ""),
    "an object of Python's": ("sidecar: {store: !!python/object:os.system {}}", "line 1"),
    "misspelt session key": ("turn_engine: {conversation_session: {max_entrys: 3}}", "did you mean max_entries?"),
    "unknown session key": (
        "turn_engine: {conversation_session: {zzz: 3}}",
        "known are enabled, max_entries, retention_days",
    ),
    "misspelt sidecar key": ("sidecar: {lisen: x}", "did you mean listen?"),
    "misspelt limit": ("sidecar: {limits: {concurrent_call: 1}}", "did you mean concurrent_calls?"),
    "no switch": ("turn_engine: {conversation_session: {enabled: 'yes'}}", "turn_engine.conversation_session.enabled"),
    "no entries": (
        "turn_engine: {conversation_session: {max_entries: 0}}",
        "turn_engine.conversation_session.max_entries",
    ),
    "too many entries": ("turn_engine: {conversation_session: {max_entries: 501}}", "max_entries"),
    "no calls": ("sidecar: {limits: {concurrent_calls: 0}}", "sidecar.limits.concurrent_calls"),
    "an empty store": ("sidecar: {store: ''}", "sidecar.store"),
}

#: Addresses that are refused wherever they are given.
NO_ADDRESSES = [
    "0.0.0.0:7000",
    "[::]:7000",
    "10.0.0.1:7000",
    "example.org:7000",
    "127.0.0.1",
    "127.0.0.1:99999",
    ":7000",
    "http://127.0.0.1:7000",
    "unix:",
    "unix:///",
    "unix:relative.sock",
    "unix://run/two-slashes.sock",
    "unix:///" + "x" * 120,
    "unix:///tmp/a\0b.sock",
    "unix-abstract:x",
    "",
]


@pytest.fixture
def default_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The default address, moved to a folder of the test's."""
    listen = f"unix://{tmp_path}/default/s.sock"
    monkeypatch.setattr(app_module, "DEFAULT_LISTEN", listen)
    sidecar = keys.ROOT.members["sidecar"]
    assert isinstance(sidecar, keys.Section)
    default = sidecar.members["listen"]
    assert isinstance(default, keys.Key)
    monkeypatch.setitem(sidecar.members, "listen", replace(default, default=listen))
    return listen


async def told(config: Path | None, listen: str | None, store: Path) -> list[Refusal]:
    """What each RPC of a sidecar with this configuration answers; the first one came over the configured address."""
    launch = launch_from(config, listen, str(store))
    async with started_from(launch) as app, calling(app.address.target) as caller:
        return [
            await refused(caller.record.Append(asking.append())),
            await refused(caller.record.Fit(asking.fit("o"))),
            await refused(caller.record.Settle(asking.settle())),
            await refused(caller.record.Forget(asking.forget_seat())),
            await refused(caller.render.History(asking.history())),
            await refused(caller.render.UserMessage(asking.user_message())),
            await refused(caller.send("Record/Append", b"\xff")),
        ]


def _all_are_config_invalid(refusals: list[Refusal], telling: str) -> None:
    for refusal in refusals:
        assert refusal.code is grpc.StatusCode.FAILED_PRECONDITION
        assert (refusal.domain, refusal.reason) == ("turnledger", "CONFIG_INVALID")
        assert telling in refusal.message
        assert "`" not in refusal.message or "unknown" not in refusal.message
        assert refusal.retry_after_s is None


@pytest.mark.usefixtures("default_socket")
@pytest.mark.parametrize("wrong", WRONG)
async def test_wrong_file_is_told_to_every_call(tmp_path: Path, wrong: str) -> None:
    """Whatever is wrong in the file, the sidecar binds its default socket, touches no store, and names the place."""
    text, telling = WRONG[wrong]
    (tmp_path / "config.yaml").write_text(text)
    _all_are_config_invalid(await told(tmp_path / "config.yaml", None, tmp_path / "store.db"), telling)
    assert not (tmp_path / "store.db").exists()


@pytest.mark.usefixtures("default_socket")
async def test_unreadable_file_is_told(tmp_path: Path) -> None:
    """A file that is missing, a folder, or no UTF-8 is told with its path."""
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9")
    for path in (tmp_path / "missing.yaml", tmp_path, tmp_path / "latin.yaml"):
        _all_are_config_invalid(await told(path, None, tmp_path / "store.db"), str(path))


@pytest.mark.usefixtures("default_socket")
@pytest.mark.parametrize("address", NO_ADDRESSES)
async def test_address_that_is_not_this_machines_is_refused(tmp_path: Path, address: str) -> None:
    """No address but a socket or loopback is listened on; the refusal comes on the default socket."""
    _all_are_config_invalid(await told(None, address, tmp_path / "store.db"), "sidecar.listen")


@pytest.mark.usefixtures("default_socket")
async def test_given_address_holds_where_the_file_is_wrong(tmp_path: Path) -> None:
    """An address on the command line is bound though the file is wrong."""
    (tmp_path / "config.yaml").write_text("sidecar: {lisen: x}")
    listen = f"unix://{tmp_path}/given.sock"
    _all_are_config_invalid(await told(tmp_path / "config.yaml", listen, tmp_path / "store.db"), "lisen")
    assert not (tmp_path / "default" / "s.sock").exists()
    launch = launch_from(tmp_path / "config.yaml", listen, None)
    assert launch.address.target == f"unix:{tmp_path}/given.sock"


@pytest.mark.usefixtures("default_socket")
@pytest.mark.parametrize("mistake", ["sidecar: {lisen: x}", "turn_engine: {conversation_session: {max_entrys: 3}}"])
async def test_address_of_a_wrong_file_holds(tmp_path: Path, mistake: str) -> None:
    """A mistake elsewhere in the file does not move the sidecar away from where its engine looks for it."""
    listen = f"unix://{tmp_path}/own.sock"
    text = f"{mistake}\n" if "turn_engine" in mistake else ""
    extra = ", lisen: x" if not text else ""
    (tmp_path / "config.yaml").write_text(f"{text}sidecar: {{listen: '{listen}'{extra}}}")
    launch = launch_from(tmp_path / "config.yaml", None, None)
    assert launch.address.target == f"unix:{tmp_path}/own.sock"
    _all_are_config_invalid(await told(tmp_path / "config.yaml", None, tmp_path / "store.db"), "did you mean")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "turn_engine:\nsidecar:\n",
        "turn_engine:\n  conversation_session:\nsidecar:\n  limits:\n",
        "on: push\nother: {deep: [1, {2: 3}]}\n",
        "turn_engine: {1: x, no: y, model: {name: z}, conversation_session: {max_entries: 7}}",
    ],
)
def test_engines_own_keys_are_let_be(tmp_path: Path, text: str) -> None:
    """Keys that are not ours, of any type, and sections that stand empty are no error."""
    (tmp_path / "config.yaml").write_text(text)
    launch = launch_from(tmp_path / "config.yaml", f"unix://{tmp_path}/s.sock", str(tmp_path / "store.db"))
    assert launch.refusal is None
    expected = 7 if "max_entries" in text else 20
    assert launch.settings.turn_engine.conversation_session.max_entries == expected


@pytest.mark.parametrize(
    "address", ["127.0.0.1:0", "127.8.8.8:1", "localhost:1", "[::1]:65535", "unix:/a/b", "unix:///a/b"]
)
def test_loopback_and_sockets_are_taken(address: str) -> None:
    """Every form of a loopback address or an absolute socket is an address."""
    assert launch_from(None, address, None).refusal is None


def test_refusal_is_one_of_ours(tmp_path: Path) -> None:
    """Reading a wrong file raises nothing but the ledger's own error."""
    for text, _ in WRONG.values():
        (tmp_path / "config.yaml").write_text(text)
        refusal = launch_from(tmp_path / "config.yaml", None, None).refusal
        assert isinstance(refusal, LedgerError)
        assert refusal.code is Code.CONFIG_INVALID
