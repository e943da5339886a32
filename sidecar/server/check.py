"""Collecting what is wrong with a request, so that a caller learns of all of it at once."""

from typing import Final

from turnledger.limits import ID_BYTES, KEY_BYTES

from sidecar.domain.errors import Code, LedgerError, Violation

#: Violations that are named; the rest is counted. All of a status travels in trailers, of which gRPC takes 8 KiB.
_NAMED: Final = 20


class Check:
    """The violations of one request. Descriptions name rules, never content."""

    def __init__(self) -> None:
        self._violations: list[Violation] = []
        self._count = 0

    def that(self, holds: bool, field: str, rule: str) -> None:
        """Note a violation of `rule` unless it holds."""
        if not holds:
            self._count += 1
            if self._count <= _NAMED:
                self._violations.append(Violation(field, rule))

    def key(self, value: str, field: str) -> str:
        """A seat or a conversation."""
        size = len(value.encode())
        self.that(1 <= size <= KEY_BYTES, field, f"must have 1 to {KEY_BYTES} bytes, has {size}")
        return value

    def identifier(self, value: str, field: str) -> str:
        """A turn id, or a work key where one is needed."""
        size = len(value.encode())
        self.that(1 <= size <= ID_BYTES, field, f"must have 1 to {ID_BYTES} bytes, has {size}")
        return value

    def optional_identifier(self, value: str, field: str) -> str:
        """A work key where none is an answer too."""
        size = len(value.encode())
        self.that(size <= ID_BYTES, field, f"must have at most {ID_BYTES} bytes, has {size}")
        return value

    def finish(self) -> None:
        """Raise `LedgerError` INVALID if anything was violated."""
        if self._violations:
            fields = list(dict.fromkeys(violation.field for violation in self._violations))
            more = f" and {self._count - _NAMED} more" if self._count > _NAMED else ""
            message = f"the request is malformed at: {', '.join(fields)}{more}"
            raise LedgerError(Code.INVALID, message, self._violations)
