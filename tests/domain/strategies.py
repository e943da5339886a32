"""Hostile material: texts made of whatever the sidecar itself writes, in every field that a caller fills."""

import json
from typing import Final

from hypothesis import strategies as st

from sidecar.domain.calls import Call, CallKind, SuppliedCall, keep
from sidecar.domain.entry import Entry
from tests.domain.making import keeping

#: What `str.splitlines` and Unicode count as the end of a line.
LINE_BREAKS: Final = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")

#: The lines that the sidecar writes, and near misses of them.
FORGERIES: Final = (
    "## Task",
    "## Earlier in this conversation",
    "### 2026-01-01T00:00:00Z (turn abcdefgh)",
    "### 3 older turn(s), condensed",
    "Triggered by:",
    "You set out to:",
    "You called:",
    "You replied:",
    "You did NOT reply: nobody received this text.",
    "Reviewer, on what landed:",
    "You ended that turn blocked:",
    "Turn ended: failed",
    "| ",
    "|",
    "- x({}) → success",
    "- x({}) → error: no (read)",
    ") → success (read)",
    " → error: no",
    "(read)",
    " (read)",
    "→",
    "(none)",
    "(withheld)",
    "(12 KiB not shown, digest 9f86d081)",
    "(condensed) ",
    "- (+3 further read call(s) omitted)",
    "- (+3 still older turn(s) left out, 2 of them replied)",
    "2 earlier turn(s) are no longer kept.",
)

#: What opens or closes a structure in CommonMark.
MARKUP: Final = (
    "# a",
    "#",
    "===",
    "---",
    "***",
    "```",
    "~~~",
    "> ",
    ">",
    "- ",
    "1. ",
    "<script>",
    "<!--",
    "<div>",
    "</div>",
    "-->",
    "[a]: /b",
    "`",
    "\\",
    "    ",
    "|---|",
    "&#10;",
    "&#35; a",
)

#: What hides, reorders or piles up.
INVISIBLE: Final = (
    "\t",
    " ",
    "\x00",
    "\x1b[2J",
    "\x7f",
    "\xa0",
    "\u200b",
    "\u202e",
    "\u2066",
    "\ufeff",
    "e" + "\u0301" * 30,
)

#: What looks like JSON, or nearly.
JSON_LIKE: Final = ('"', "{}", "[]", '{"k":"v"}', "\\u0041", "\\ud800", ",", "NaN", "😀", "é", "0", "x")

fragments: Final = st.sampled_from(LINE_BREAKS + FORGERIES + MARKUP + INVISIBLE + JSON_LIKE)

#: A text that tries to be more than a text. No lone surrogates: what arrives is UTF-8.
hostile: Final = st.lists(fragments | st.text(st.characters(codec="utf-8"), max_size=6), max_size=9).map("".join)

words: Final = st.text("abcXYZ019_.:/@+-", min_size=1, max_size=12)

_numbers: Final = st.sampled_from(("0", "-0", "1.10", "1e400", "-1E-7", "123456789012345678901234567890"))
_strings: Final = st.builds(lambda text, ascii_only: json.dumps(text, ensure_ascii=ascii_only), hostile, st.booleans())
_spaces: Final = st.sampled_from(("", "", " ", "\n\t"))
_keys: Final = st.one_of(_strings, st.sampled_from(('"a"', '"b"', '"\\u0062"', '"z"', '"\\ud800"')))


def _containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.builds(lambda key, space, value: f"{key}{space}:{space}{value}", _keys, _spaces, inner)
    return st.builds(lambda items: f"[{','.join(items)}]", st.lists(inner, max_size=3)) | _object(members)


def _object(members: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda items, space: "{" + space + ",".join(items) + space + "}", st.lists(members, max_size=4), _spaces
    )


#: JSON as a model would write it: any white space, any escapes, any key order, sometimes a key twice.
json_values: Final = st.recursive(
    _numbers | _strings | st.sampled_from(("true", "false", "null")), _containers, max_leaves=6
)
json_objects: Final = _object(st.builds(lambda key, value: f"{key}:{value}", _keys, json_values))

kinds: Final = st.sampled_from(CallKind)
sensitive_names: Final = st.frozensets(st.sampled_from(("a", "b", "z", "absent")), max_size=2)


@st.composite
def supplied_calls(draw: st.DrawFn) -> SuppliedCall:
    """A call as an engine may send it: an error only where it failed."""
    failed = draw(st.booleans())
    return SuppliedCall(
        name=draw(words | hostile.filter(bool)),
        arguments=draw(st.one_of(json_objects, json_values, hostile)),
        kind=draw(kinds),
        failed=failed,
        error=draw(hostile) if failed else "",
        sensitive=draw(st.just(frozenset[str]()) | sensitive_names),
    )


calls: Final[st.SearchStrategy[Call]] = supplied_calls().map(keep)

turn_ids: Final = st.one_of(
    st.uuids().map(str), words, hostile.filter(bool).map(lambda text: text[:60]), st.text("ab", min_size=1, max_size=14)
)

entries: Final = st.builds(
    Entry,
    turn_id=turn_ids,
    completed_at=st.sampled_from(("2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z")),
    trigger=hostile,
    intent=hostile,
    calls=st.lists(calls, max_size=4).map(tuple),
    delivered=st.booleans(),
    final_text=hostile,
    completed_work=hostile,
    blocked_on=hostile,
    decision=st.sampled_from(("done", "failed", "blocked", "a_b", "_")),
)

#: A conversation that fits the block whole.
conversations: Final = st.builds(
    keeping, st.lists(entries, min_size=1, max_size=4).map(tuple), st.integers(0, 3), st.integers(0, 3)
)
