"""The seat's tools: a read, a write, one that fails, and one that needs a person's yes.

Take from it: say of each tool what it can do. A READ is promised to change nothing and may be run again by the next
turn; whatever is not known is a WRITE. A failed call is told with its error. A result is never put into the ledger:
what the next turn must know of it belongs into the reply.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from turnledger import CallKind

from examples.engine.faults import Faults
from examples.engine.outside import Outside


class ToolFailed(Exception):
    """What a tool reports instead of a result."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `run` gets the key under which its effect happens once, and the parsed arguments."""

    kind: CallKind
    run: Callable[[str, dict[str, Any]], str]
    needs_approval: bool = False


class Tools:
    """The tools of the seat, by the names that the model calls them."""

    def __init__(self, outside: Outside, faults: Faults) -> None:
        self._outside = outside
        self._faults = faults
        self._tools = {
            "read_thread": Tool(CallKind.READ, self._read_thread),
            "open_ticket": Tool(CallKind.WRITE, self._open_ticket),
            "page_on_call": Tool(CallKind.WRITE, self._page_on_call),
            "restart_service": Tool(CallKind.WRITE, self._restart_service, needs_approval=True),
        }

    def named(self, name: str) -> Tool:
        """The tool; a model may call what does not exist, which fails like any other."""
        return self._tools.get(name, Tool(CallKind.WRITE, self._unknown))

    def use(self, name: str, arguments: str, work_key: str) -> str:
        """Run a tool. Raises ToolFailed."""
        tool = self.named(name)
        result = tool.run(f"{work_key}:{name}", json.loads(arguments))
        if tool.kind is CallKind.WRITE:
            self._faults.reached("write")
        return result

    def _read_thread(self, _key: str, arguments: dict[str, Any]) -> str:
        return f"nobody answered in {arguments['thread']} elsewhere"

    def _open_ticket(self, key: str, arguments: dict[str, Any]) -> str:
        return self._outside.happen(key, "ticket", thread=arguments["thread"])

    def _restart_service(self, key: str, arguments: dict[str, Any]) -> str:
        return self._outside.happen(key, "restart", service=arguments["service"])

    def _page_on_call(self, _key: str, _arguments: dict[str, Any]) -> str:
        raise ToolFailed("503 the pager is down for maintenance")

    def _unknown(self, _key: str, _arguments: dict[str, Any]) -> str:
        raise ToolFailed("there is no such tool")
