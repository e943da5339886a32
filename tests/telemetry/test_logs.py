"""Log lines: one each, and never an exception's text."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from sidecar.telemetry.logs import JsonLines, TextLines


@pytest.fixture(name="stream", params=[JsonLines, TextLines])
def _stream(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(request.param())
    for name in ("turnledger.test", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    yield stream
    for name in ("turnledger.test", "asyncio"):
        logging.getLogger(name).removeHandler(handler)


def test_an_exceptions_text_is_left_out(stream: io.StringIO) -> None:
    """Of an exception its type is told, and neither its text nor its traceback."""
    try:
        raise ValueError("CANARYTEXT")
    except ValueError:
        logging.getLogger("turnledger.test").exception("it failed")
    assert "ValueError" in stream.getvalue()
    assert "CANARYTEXT" not in stream.getvalue()


def test_asyncio_quotes_nobody(stream: io.StringIO) -> None:
    """What asyncio says of a task that nobody looked after is told without the exception that it quotes."""
    error = ValueError("CANARYTEXT")
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: <Task exception=%r>" % error)  # noqa: G002,UP031  as it does
    assert "Task exception was never retrieved" in stream.getvalue()
    assert "CANARYTEXT" not in stream.getvalue()


def test_one_line_an_event(stream: io.StringIO) -> None:
    """A value with line breaks makes no second line, and the event is the message without its values."""
    logging.getLogger("turnledger.test").error("it is %s", "a\nb")
    [line] = stream.getvalue().splitlines()
    assert "it is a b" in line
    if line.startswith("{"):
        assert json.loads(line)["event"] == "it is %s"
