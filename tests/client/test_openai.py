"""The ready-made rewriter against a scripted endpoint: what it asks for, and what it reads."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from turnledger import NoBudget, Order, OrderKind, Rewrite, Verdict
from turnledger.openai import AsyncOpenAIRewriter, CutShort, OpenAIRewriter

from tests.client.chat_server import Answer, chatting, completion, refusal

ORDER = Order("o-1", OrderKind.NOTE, "text", 40, "Shorter.\n", "\nShorter.", agent_handle="support", seconds=5.0)
AGAIN = Order(
    "o-1", OrderKind.NOTE, "text", 40, "Shorter.\n", "\nShorter.", "support", 2, Verdict.TOO_LONG, 7, seconds=5.0
)


def ask(url: str, order: Order = ORDER, **options: Any) -> Rewrite:
    """One call of a rewriter of its own."""
    rewriter = OpenAIRewriter(base_url=url, model=options.pop("model", "small"), **options)
    try:
        return rewriter(order)
    finally:
        rewriter.close()


def test_a_request_is_one_user_message_with_an_end() -> None:
    """The prompt as the order has it, the model, and a limit of tokens; no role that small servers refuse."""
    with chatting(lambda _prompt, _call: " short \n") as chat:
        assert ask(chat.url, extra_body={"temperature": 0}) == Rewrite("short", 70, 7)
    (body,) = chat.bodies
    assert body["messages"] == [{"role": "user", "content": "Shorter.\ntext\nShorter."}]
    assert (body["model"], body["max_completion_tokens"], body["temperature"]) == ("small", 1024, 0)


def test_a_retry_says_what_was_wrong() -> None:
    """After the prompt stands why the answer before was rejected."""
    with chatting(lambda _prompt, _call: "short") as chat:
        ask(chat.url, AGAIN)
    assert chat.prompts == [f"{ORDER.prompt}\nThe answer before this one was 7 bytes too long. Write a shorter one."]


def test_a_seat_may_have_a_model_of_its_own() -> None:
    """`models` names it; every other seat has the default."""
    with chatting(lambda _prompt, _call: "short") as chat:
        ask(chat.url, models={"support": "other"})
        ask(chat.url, models={"sales": "other"})
    assert [body["model"] for body in chat.bodies] == ["other", "small"]


def test_a_key_is_looked_up_at_each_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is rotated and a variable that changes work at once; without any, a placeholder is sent."""
    file = tmp_path / "key"
    file.write_text("one\n")
    with chatting(lambda _prompt, _call: "short") as chat:
        rewriter = OpenAIRewriter(base_url=chat.url, model="small", api_key_file=file)
        rewriter(ORDER)
        file.write_text("two\n")
        rewriter(ORDER)
        rewriter.close()
        monkeypatch.setenv("OPENAI_API_KEY", "three")
        ask(chat.url)
        ask(chat.url, api_key="four")
        monkeypatch.delenv("OPENAI_API_KEY")
        ask(chat.url)
    assert chat.keys == [f"Bearer {key}" for key in ("one", "two", "three", "four", "none")]


async def test_the_async_one_asks_the_same(tmp_path: Path) -> None:
    """Key, model and answer are as in the plain one."""
    file = tmp_path / "key"
    file.write_text("one")
    with chatting(lambda _prompt, _call: "short") as chat:
        rewriter = AsyncOpenAIRewriter(base_url=chat.url, model="small", api_key_file=file, models={"support": "other"})
        assert await rewriter(ORDER) == Rewrite("short", 70, 7)
        await rewriter.close()
    assert (chat.keys, chat.bodies[0]["model"]) == (["Bearer one"], "other")


@pytest.mark.parametrize("status", [402, 429])
def test_an_endpoint_that_will_not_serve_is_no_budget(status: int) -> None:
    """A quota, a rate limit, an empty account: the batch ends, after one call and no retry of the library's own."""
    with chatting(lambda _prompt, _call: refusal(status, "insufficient_quota")) as chat:
        with pytest.raises(NoBudget):
            ask(chat.url)
        assert len(chat.bodies) == 1


@pytest.mark.parametrize("answer", [refusal(500, "x"), refusal(401, "invalid_api_key"), Answer(crashes=True)])
def test_another_failure_is_asked_once_too(answer: Answer) -> None:
    """The library's own retries are off: the order's time is the ledger's to spend."""
    with chatting(lambda _prompt, _call: answer) as chat:
        with pytest.raises(Exception, match=r".") as raised:
            ask(chat.url)
        assert len(chat.bodies) == 1
    assert not isinstance(raised.value, NoBudget)


def test_a_cut_text_is_no_rewrite() -> None:
    """An answer that ended at the limit of tokens is refused, unless it is too long anyway, which a retry may mend."""
    with (
        chatting(lambda _prompt, _call: Answer(200, completion("cut", finish="length"))) as chat,
        pytest.raises(CutShort),
    ):
        ask(chat.url)
    with chatting(lambda _prompt, _call: Answer(200, completion("x" * 41, finish="length"))) as chat:
        assert ask(chat.url).text == "x" * 41


def test_a_call_takes_no_longer_than_its_order_has() -> None:
    """The lower of the rewriter's timeout and the order's time holds."""
    rewriter = OpenAIRewriter(model="small", base_url="http://127.0.0.1:9/v1", timeout=2)
    assert rewriter._request(ORDER)["timeout"] == 2
    assert OpenAIRewriter(model="small", base_url="http://127.0.0.1:9/v1")._request(ORDER)["timeout"] == 5


def test_options_that_make_no_sense_are_refused() -> None:
    """Two keys, or no time."""
    with pytest.raises(ValueError, match="not both"):
        OpenAIRewriter(model="m", api_key="k", api_key_file="f")
    with pytest.raises(ValueError, match="timeout"):
        OpenAIRewriter(model="m", timeout=0)


def test_a_missing_library_names_the_extra() -> None:
    """Who lacks the openai library is told what to install; the rest of the client needs none of it."""
    code = "import sys; sys.modules['openai'] = None\nimport turnledger; turnledger.Ledger\nimport turnledger.openai"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: turnledger.openai needs the openai library: pip install 'turnledger[openai]'" in ran.stderr
