"""Addresses: the ledger's own, a Unix socket or a loopback port and nothing else; and health's, on any interface."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sidecar.domain.errors import Code, LedgerError

#: What the kernel takes as a socket's path, in bytes.
_SOCKET_PATH_BYTES: Final = 107

LISTEN_FORMS: Final = "unix:///path/to.sock, 127.0.0.1:port or [::1]:port"
HEALTH_FORMS: Final = "host:port, such as 127.0.0.1:7412, 0.0.0.0:7412 or [::]:7412"


@dataclass(frozen=True, slots=True)
class Address:
    """One place to listen: `socket` is set for a Unix socket, else `host` (in brackets for IPv6) and `port`."""

    socket: Path | None = None
    host: str = ""
    port: int = 0

    @property
    def target(self) -> str:
        """The address as gRPC spells it, which reads a socket's path as part of a URI."""
        return f"{self.host}:{self.port}" if self.socket is None else f"unix:{quote(str(self.socket))}"


def parse_listen(text: str) -> Address:
    """The address that `sidecar.listen` names: no other machine can reach it. Raises `LedgerError` CONFIG_INVALID."""
    if text.startswith("unix:"):
        return _socket(text.removeprefix("unix:"))
    address = _host_and_port(text, LISTEN_FORMS)
    if not _is_loopback(address.host):
        raise _invalid(f"{address.host} is not this machine alone; use {LISTEN_FORMS}")
    return address


def parse_health(text: str) -> Address:
    """The address that `sidecar.health` names: kubelet dials the pod's, so any interface will do.

    Raises `LedgerError` CONFIG_INVALID.
    """
    return _host_and_port(text, HEALTH_FORMS)


def _host_and_port(text: str, forms: str) -> Address:
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", text)
    if found is None or int(found[2]) > 65_535 or not _is_host(found[1]):
        raise _invalid(f"{text!r:.100} is no address; use {forms}")
    return Address(host=found[1], port=int(found[2]))


def _is_host(text: str) -> bool:
    """Whether it is a name, or a well-formed IP address; one of IPv6 is in brackets."""
    if not text.startswith("[") and not re.fullmatch(r"[0-9.]+", text):
        return True
    try:
        return ipaddress.ip_address(text.strip("[]")).version == (6 if text.startswith("[") else 4)
    except ValueError:
        return False


def _socket(text: str) -> Address:
    plain = text.removeprefix("//")
    if not plain.startswith("/") or plain.startswith("//") or "\0" in plain or not Path(plain).name:
        raise _invalid(f"the socket has no absolute path; use {LISTEN_FORMS}")
    path = Path(plain)
    size = len(str(path).encode(errors="surrogateescape"))
    if size > _SOCKET_PATH_BYTES:
        raise _invalid(
            f"the socket's path has {size} bytes, and the kernel takes {_SOCKET_PATH_BYTES}; use a shorter one"
        )
    return Address(socket=path)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _invalid(message: str) -> LedgerError:
    return LedgerError(Code.CONFIG_INVALID, message)
