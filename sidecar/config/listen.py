"""Where the sidecar may listen: a Unix socket, or a loopback port. Nowhere else, whatever is asked."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sidecar.domain.errors import Code, LedgerError

#: What the kernel takes as a socket's path, in bytes.
_SOCKET_PATH_BYTES: Final = 107

_FORMS: Final = "use unix:///path/to.sock, 127.0.0.1:port or [::1]:port"


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
    """The address that `sidecar.listen` names. Raises `LedgerError` CONFIG_INVALID."""
    if text.startswith("unix:"):
        return _socket(text.removeprefix("unix:"))
    found = re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[^:\[\]]+):(\d{1,5})", text)
    if found is None or int(found[2]) > 65_535:
        raise _invalid(f"{text!r} is no address; {_FORMS}")
    if not _is_loopback(found[1]):
        raise _invalid(f"{found[1]} is not this machine alone; {_FORMS}")
    return Address(host=found[1], port=int(found[2]))


def _socket(text: str) -> Address:
    plain = text.removeprefix("//")
    if not plain.startswith("/") or plain.startswith("//") or "\0" in plain or not Path(plain).name:
        raise _invalid(f"the socket has no absolute path; {_FORMS}")
    path = Path(plain)
    size = len(str(path).encode())
    if size > _SOCKET_PATH_BYTES:
        raise _invalid(f"the socket's path has {size} bytes, and the kernel takes {_SOCKET_PATH_BYTES}")
    return Address(socket=path)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _invalid(message: str) -> LedgerError:
    return LedgerError(Code.CONFIG_INVALID, f"sidecar.listen: {message}")
