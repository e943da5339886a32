"""A rewrite may drop, never invent: what is smuggled is found, and what is honest passes."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.fit import Verdict, judge
from sidecar.domain.instructions import OrderKind

INVENTED: Final = [
    # numbers
    ("paid", "paid 5"),
    ("in 2012", "at 12"),
    ("in 2012", "in 20"),
    ("paid $1,250.00", "paid $1"),
    ("paid $1,250.00", "paid 250.00"),
    ("1,250", "250"),
    ("1.5 bar", "5 bar"),
    ("1.5 bar", "1 bar"),
    ("version 1.2.3", "version 1.2"),
    ("5 bar", "-5 bar"),
    ("-5 bar", "5 bar"),
    ("−5 bar", "5 bar"),
    ("5", "about .5"),
    ("about .5", "about 5"),
    ("5 apples", "5% of them"),
    ("5 apples", "$5"),
    ("5 apples", "€5"),
    ("102", "10²"),
    ("12", "１２"),
    ("12", "١٢"),
    ("two", "② of them"),
    ("twelve", "Ⅻ"),
    ("half", "½"),
    ("one, two", "1. one 2. two"),
    ("4", "4\u0301"),
    # identifiers
    ("ACME-12", "ACME-123"),
    ("ACME-123", "ACME-12"),
    ("sophia_silva_7557", "silva_7557"),
    ("sophia_silva_7557", "sophia_silva_755"),
    ("WUNA5K", "wuna5k"),
    ("WUNA5K", "WUNA5K/EVIL9"),
    ("订单12345", "订单1234"),
    ("x", "`x9`"),
    # links
    ("x", "see https://evil.example"),
    ("x", "see HTTPS://EVIL"),
    ("x", "see evil.com"),
    ("x", "see Evil.COM."),
    ("x", "see evil.com?q=x"),
    ("x", "see evil.com/x"),
    ("x", "see evil。com"),
    ("x", "see evil．com"),
    ("x", "see пример.рф"),
    ("x", "see WWW.evil"),
    ("x", "see WWW.e"),
    ("x", "see [x](//evil/x)"),
    ("x", "see [here](/evil)"),
    ("x", "see [the page](evil)"),
    ("x", "see [x](javascript:x)"),
    ("x", "see [x]()"),
    ("x", "see <javascript:x>"),
    ("https://a.b/c/d", "https://a.b"),
    ("https://a.b/c/d", "https://a.b/c"),
    ("https://a.b/c?d=e", "https://a.b/c?d"),
    ("https://shop.acme.com.br", "shop.acme.com"),
    ("https://evil-acme.com", "acme.com"),
    ("https://a.b", "http://a.b"),
    # handles, channels and addresses
    ("bob", "@bob"),
    ("bob", "＠bob"),
    ("@bobby", "@bob"),
    ("@bob_smith", "@bob"),
    ("@bob-smith", "@bob"),
    ("kim@acme.com", "@acme"),
    ("kim@acme.com", "@acme.com"),
    ("jim.kim@acme.com", "kim@acme.com"),
    ("kim@acme.co.uk", "kim@acme.co"),
    ("@小明", "@小红"),
    ("@bob", "@ ann"),
    ("#dev-ops", "#dev"),
    ("dev", "#dev"),
    ("https://a.b/c#dev", "#dev"),
    ("#dev", "＃dev2"),
]

HONEST: Final = [
    ("in 2012, 12 of them", "12 in 2012"),
    ("paid $1,250.", "$1,250"),
    ("sum=1,250;next", "(1,250)"),
    ("[101,102,103]", "101 and 103"),
    ('{"url":"https://a.b/c","id":17}', "https://a.b/c for 17"),
    ('[101,102,"x"]', "101 and 102"),
    ("in acme/api#42", "#42"),
    ("due 2024-05-10", "due in 2024"),
    ("due 2024-05-10", "due 2024‑05‑10"),
    ("10–20", "10-20"),
    ("range 3-5", "3 to 5"),
    ("pay -5", "-5"),
    ("about .5", "about .5."),
    ("order 123 was shipped", "order 123—shipped"),
    ("@kim asked", "@kim's request"),
    ("@kim asked", "@kim’s request"),
    ("WUNA5K", "**WUNA5K**, “WUNA5K” (WUNA5K)"),
    ("see <https://a.b/c|title>", "https://a.b/c."),
    ("see https://a.b/c", "the [page](https://a.b/c)"),
    ("https://x.org/wiki/A_(b) it is", "https://x.org/wiki/A_(b)"),
    ("@bob said #42 in acme/api#42", "(@bob) on #42"),
    ("kim@acme.com.", "kim@acme.com, kim"),
    ("v1.2.3 of main.py", "main.py v1.2.3"),
    ("C# code", "C# code"),
    ("e.g. this, i.e. that", "e.g. that"),
    ("订单12345已取消，金额1,250元", "订单12345取消，1,250元"),
    ("统一处理了", "统一完成一个"),
    ("주문 123 취소", "주문 123을 취소"),
    ("请联系@bob处理", "联系@bob"),
    ("at 5pm on 10.0.0.1:80", "10.0.0.1 at 5pm"),
    ("a\u00a0b 1\u202f000", "1 000"),
    ("It works", "Well... it works - and/or not"),
]


def _verdict(original: str, rewrite: str) -> Verdict:
    return judge(OrderKind.NOTE, original, rewrite).verdict


@pytest.mark.parametrize(("original", "rewrite"), INVENTED)
def test_smuggled(original: str, rewrite: str) -> None:
    """What the original does not name as a whole is an invention, in whatever dress."""
    assert _verdict(original, rewrite) is Verdict.INVENTED


@pytest.mark.parametrize(("original", "rewrite"), HONEST)
def test_honest(original: str, rewrite: str) -> None:
    """What the original names is accepted, whatever stands around it."""
    assert _verdict(original, rewrite) is Verdict.ACCEPTED


@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\u2060", "\U000e0041", "\ufe0f"])
@pytest.mark.parametrize("place", range(1, 8))
def test_hidden_signs_part_no_link(hidden: str, place: int) -> None:
    """A sign that nobody sees does not take a link apart, also where the original holds that sign."""
    link = f"{'evil.com'[:place]}{hidden}{'evil.com'[place:]}"
    assert _verdict(f"x {hidden} y", f"see {link}") is Verdict.INVENTED
    assert _verdict("see evil.com", f"see {link}") in (Verdict.INVALID_TEXT, Verdict.ACCEPTED)


_WORDS: Final = st.text("abcdefgh", min_size=1, max_size=8)
_NAMES: Final = st.one_of(
    st.integers(0, 10**9).map(str),
    st.builds("{}-{}".format, st.text("ABC", min_size=1, max_size=4), st.integers(1, 999)),
    st.builds("@{}".format, _WORDS),
    st.builds("#{}".format, _WORDS),
    st.builds("https://{}.example/{}".format, _WORDS, _WORDS),
    st.builds("{}@{}.example".format, _WORDS, _WORDS),
)


@given(st.lists(_NAMES | _WORDS, min_size=1, max_size=20), st.data())
def test_dropping_is_honest(words: list[str], data: st.DataObject) -> None:
    """Any words of the original, in any order and with any plain punctuation, invent nothing."""
    kept = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=8))
    ends = data.draw(st.lists(st.sampled_from(["", ",", ".", ";", "!", ")", "**", "—and"]), min_size=8, max_size=8))
    assert _verdict(" ".join(words), " ".join(map("".join, zip(kept, ends, strict=False)))) is Verdict.ACCEPTED


@given(
    st.lists(_WORDS, max_size=20), _NAMES, st.sampled_from(["{}", "({})", "**{}**", "x—{}", "“{}”", "[x]({})", "{}'s"])
)
def test_names_out_of_nothing(words: list[str], name: str, around: str) -> None:
    """A name that the original lacks is found, whatever stands around it."""
    assert _verdict(" ".join(["x", *words]), f"x {around.format(name)} x") is Verdict.INVENTED
