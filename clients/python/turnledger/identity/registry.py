"""The sources that are known. A new one is one file beside these, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from turnledger.identity import github, gitlab, jira, slack
from turnledger.identity.model import Source

SOURCES: Final[Mapping[str, Source]] = MappingProxyType(
    {
        "github": github.SOURCE,
        "gitlab": gitlab.SOURCE,
        "jira": jira.SOURCE,
        "slack": slack.SOURCE,
    }
)
