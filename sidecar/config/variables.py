"""The environment variables that the sidecar reads, and those that only look as if it did."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Final

from sidecar.config.keys import KEYS

#: Names the settings file, where no `--config` does.
CONFIG_VARIABLE: Final = "TURNLEDGER_CONFIG"

_READ: Final = frozenset({CONFIG_VARIABLE, *(key.variable for key in KEYS if key.variable)})

#: What somebody would try for a live key, which has no variable.
_OF_LIVE_KEYS: Final = {f"TURNLEDGER_{key.name.upper()}": key for key in KEYS if key.live}

#: What Kubernetes sets for a Service whose name begins with `turnledger`.
_SERVICE_LINK: Final = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")


def ours(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are read. One that is empty counts as not set, as it is meant in most manifests."""
    return {name: environ[name] for name in sorted(_READ) if environ.get(name)}


def unread(environ: Mapping[str, str]) -> Iterator[str]:
    """What to tell about each variable of our prefix that nothing reads. It is never an error: others set some too."""
    for name in sorted(environ):
        if not name.startswith("TURNLEDGER_") or name in _READ or _SERVICE_LINK.fullmatch(name):
            continue
        live = _OF_LIVE_KEYS.get(name)
        near = difflib.get_close_matches(name, _READ, 1, 0.85)
        if live is not None:
            yield f"{name} is not read: {live.place} is live, so the file alone sets it"
        elif near:
            yield f"{name} is not read; was {near[0]} meant?"
