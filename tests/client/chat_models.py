"""Bad models, one habit each."""

from tests.client.chat_server import Answer, completion, refusal


def overruns(_prompt: str, _call: int) -> str:
    return "Mira was told. " * 200


def echoes(prompt: str, _call: int) -> str:
    return prompt.splitlines()[1]


def invents(_prompt: str, _call: int) -> str:
    return "A discount of 15 % was promised, signed by @ceo, see https://refunds.example/20931."


def says_nothing(_prompt: str, _call: int) -> str:
    return " \n "


def babbles(_prompt: str, _call: int) -> str:
    return "A mail\x07 to Mira\x00."


def half_a_surrogate(_prompt: str, _call: int) -> Answer:
    return Answer(200, completion("A mail").replace(b"A mail", b"A \\ud83d mail"))


def crashes(_prompt: str, _call: int) -> Answer:
    return Answer(crashes=True)


def fails_inside(_prompt: str, _call: int) -> Answer:
    return refusal(500, "server_error")


def answers_no_json(_prompt: str, _call: int) -> Answer:
    return Answer(200, b"<html>busy</html>")


def answers_other_json(_prompt: str, _call: int) -> Answer:
    return Answer(200, b'{"choices": []}')


def is_cut_short(_prompt: str, _call: int) -> Answer:
    return Answer(200, completion("A mail to Mira that says", finish="length"))


def has_no_quota(_prompt: str, _call: int) -> Answer:
    return refusal(429, "insufficient_quota")


def wants_payment(_prompt: str, _call: int) -> Answer:
    return refusal(402, "insufficient_balance")
