"""What operators see. Sizes, counts and ids; never a word of an entry."""

import os

#: Variables that the SDK reads while it is imported, where a wrong one would keep every command from starting.
_READ_AT_IMPORT = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")


def _without_what_stops_an_import() -> tuple[str, ...]:
    """Take such variables out of the environment. Answers which, to be said once there is a log."""
    wrong = [name for name in _READ_AT_IMPORT if not os.environ.get(name, "0").strip().isdecimal()]
    return tuple(name for name in wrong if os.environ.pop(name).strip())


#: Variables that could not be followed, and are gone from the environment.
LEFT_OUT = _without_what_stops_an_import()
