"""A ready-made rewriter for any endpoint that speaks OpenAI's chat completions, on the official library.

It needs the extra `turnledger[openai]`. `AsyncOpenAIRewriter` is for `Ledger`; `OpenAIRewriter` is the same for
`BlockingLedger` (a `Ledger` would run it in threads, which it cannot cancel).
"""

from collections.abc import Mapping
from os import environ
from pathlib import Path
from typing import Any, Final

try:
    import openai
    from openai.types.chat import ChatCompletion
except ImportError as error:
    raise ImportError(
        "turnledger.openai needs the openai library: pip install 'turnledger[openai]'", name="openai"
    ) from error

from turnledger.order import Order
from turnledger.rewriter import NoBudget, Rewrite

#: Where the key is looked up, if neither it nor a file is given.
KEY_VARIABLE: Final = "OPENAI_API_KEY"

#: The longest that one call may take, in seconds: more than a small model needs for a few hundred bytes.
TIMEOUT_SECONDS: Final = 20.0

#: Tokens that an answer may take: several times what the largest rewrite has, so that none is cut that would have fit,
#: and an end for a model that never stops.
COMPLETION_TOKENS: Final = 1024

#: An endpoint says by these that it will not serve: a quota or rate limit is reached, or the account is empty.
_NO_BUDGET_STATUSES: Final = (402, 429)

#: For a server that asks for none; the library insists on having one.
_NO_KEY: Final = "none"


class CutShort(ValueError):
    """The model's answer ended at the limit of tokens: a cut text, which is no rewrite."""


class _Endpoint:
    """What both rewriters ask for, and how they read the answer."""

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_file: str | Path | None = None,
        models: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
        extra_body: Mapping[str, object] | None = None,
    ) -> None:
        """A rewriter for one endpoint. Nothing is read or dialled before the first call.

        Args:
            model: The model for every seat that `models` does not name.
            base_url: Where the endpoint is, such as "http://127.0.0.1:8080/v1"; None: OPENAI_BASE_URL or OpenAI's own.
            api_key: The key. None: see `api_key_file`.
            api_key_file: A file that holds the key, read at each call, so that a rotated key works at once. None: the
                variable OPENAI_API_KEY, looked up at each call; where it is unset, a server that wants no key is meant.
            models: The model of a seat, by its handle.
            timeout: Seconds that one call may take at most; a call never goes on past the order's own time.
            extra_body: Further members of each request, for what a server or a model needs ("temperature"; "max_tokens"
                where a server does not know "max_completion_tokens").

        Raises:
            ValueError: `timeout` is not above 0, or both a key and a file are given.
        """
        if not timeout > 0:
            raise ValueError(f"timeout must be a number of seconds above 0, not {timeout}")
        if api_key is not None and api_key_file is not None:
            raise ValueError("give a key or a file that holds it, not both")
        self._model = model
        self._models = dict(models or {})
        self._api_key = api_key
        self._api_key_file = None if api_key_file is None else Path(api_key_file)
        self._timeout = timeout
        self._extra_body = dict(extra_body or {})
        self._open(base_url)

    def _open(self, base_url: str | None) -> None:
        raise NotImplementedError

    def _key(self) -> str:
        if self._api_key is not None:
            return self._api_key
        if self._api_key_file is not None:
            return self._api_key_file.read_text(encoding="utf-8").strip()
        return environ.get(KEY_VARIABLE) or _NO_KEY

    def _request(self, order: Order) -> dict[str, Any]:
        """One user message: small servers refuse the developer's role, and some models have none for a system."""
        prompt = f"{order.prompt}\n{order.remark}" if order.remark else order.prompt
        return {
            "model": self._models.get(order.agent_handle, self._model),
            "messages": [{"role": "user", "content": prompt}],
            "max_completion_tokens": COMPLETION_TOKENS,
            "extra_body": self._extra_body,
            "timeout": min(self._timeout, order.seconds),
        }


def _read(answer: ChatCompletion, order: Order) -> Rewrite:
    """The answer's text and usage. Raises CutShort; an endpoint that answers other JSON raises what that leads to."""
    choice = answer.choices[0]
    text = (choice.message.content or "").strip()
    if choice.finish_reason == "length" and len(text.encode("utf-8", "replace")) <= order.limit_bytes:
        raise CutShort("the answer ended at the limit of tokens")
    usage = answer.usage
    return Rewrite(text, usage.prompt_tokens if usage else 0, usage.completion_tokens if usage else 0)


def _translated(error: openai.APIStatusError) -> Exception:
    """NoBudget where the endpoint says that; else the error itself."""
    return NoBudget() if error.status_code in _NO_BUDGET_STATUSES else error


class OpenAIRewriter(_Endpoint):
    """The rewriter for threads. `close` it when its ledger is closed, or leave that to the process's end."""

    def _open(self, base_url: str | None) -> None:
        self._client = openai.OpenAI(api_key=self._key, base_url=base_url, max_retries=0)

    def __call__(self, order: Order) -> Rewrite:
        """Ask the endpoint once. Raises NoBudget, CutShort, and the library's own errors, which the ledger reports."""
        try:
            answer = self._client.chat.completions.create(**self._request(order))
        except openai.APIStatusError as error:
            raise _translated(error) from error
        return _read(answer, order)

    def close(self) -> None:
        """Let the endpoint's connections go."""
        self._client.close()


class AsyncOpenAIRewriter(_Endpoint):
    """The rewriter for asyncio, in one event loop. `close` it after its ledger."""

    def _open(self, base_url: str | None) -> None:
        self._client = openai.AsyncOpenAI(api_key=self._key_when_asked, base_url=base_url, max_retries=0)

    async def __call__(self, order: Order) -> Rewrite:
        """Ask the endpoint once. Raises NoBudget, CutShort, and the library's own errors, which the ledger reports."""
        try:
            answer = await self._client.chat.completions.create(**self._request(order))
        except openai.APIStatusError as error:
            raise _translated(error) from error
        return _read(answer, order)

    async def close(self) -> None:
        """Let the endpoint's connections go."""
        await self._client.close()

    async def _key_when_asked(self) -> str:
        return self._key()
