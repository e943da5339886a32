"""What a settings file says."""

import os
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.config.document import parse
from sidecar.config.file import FILE_BYTES, Reading, read_file
from sidecar.config.keys import KEYS, ROOT
from sidecar.config.settings import Settings

SESSION = "turn_engine.conversation_session"

#: A file's text: the line, place and words of the one thing that is wrong in it.
WRONG = {
    "stands twice in ours": ("sidecar:\n  store: /a\n  store: /b\n", 3, "sidecar.store", "stands twice"),
    "section twice": ("sidecar: {}\nsidecar: {}\n", 2, "sidecar", "stands twice"),
    "unknown key twice over": (
        "sidecar:\n  limits:\n    concurent_calls: 1\n",
        3,
        "sidecar.limits.concurent_calls",
        "calls?",
    ),
    "a number for a switch": (
        "turn_engine: {conversation_session: {enabled: 1}}",
        1,
        f"{SESSION}.enabled",
        "true or false",
    ),
    "a switch for a number": (
        "turn_engine: {conversation_session: {max_entries: true}}",
        1,
        f"{SESSION}.max_entries",
        "is true",
    ),
    "a fraction": ("turn_engine: {conversation_session: {max_entries: 20.5}}", 1, f"{SESSION}.max_entries", "is 20.5"),
    "an empty key": ("sidecar:\n  store:\n", 2, "sidecar.store", "is empty"),
    "a section for a value": ("sidecar: {store: {a: b}}", 1, "sidecar.store", "is a section"),
    "a value for a section": ("sidecar: 5", 1, "sidecar", "is the value '5'"),
    "a list for a section": ("sidecar: {limits: [1]}", 1, "sidecar.limits", "is a list"),
    "a key that is no text": ("sidecar: {[a]: 1}", 1, "sidecar.?", "unknown key"),
    "a number past all bounds": (
        "sidecar: {sweep: {interval_s: 0x" + "f" * 6_000 + "}}",
        1,
        "sidecar.sweep.interval_s",
        "far",
    ),
    "not a number": ("sidecar: {sweep: {interval_s: .nan}}", 1, "sidecar.sweep.interval_s", "is nan"),
    "half a file": ("turn_engine:\n  conversation_session: {enabled: fal", 2, "", "no YAML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_key_is_told_with_line_and_place(case: str) -> None:
    """What is wrong is told once, by the line and by its path, with what would be right there."""
    text, line, place, telling = WRONG[case]
    (problem,) = parse(text).problems
    assert (problem.line, problem.place) == (line, place)
    assert telling in problem.text


def test_all_mistakes_are_told_at_once() -> None:
    """Nobody corrects a file one mistake at a time."""
    text = "sidecar:\n  lisen: x\n  store: 3\n  limits: {concurrent_calls: no}\n  telemetry: {log_level: loud}\n"
    assert [problem.line for problem in parse(text).problems] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "text",
    [
        "model: !env MODEL\nturn_engine: {budget: !!python/object:os.system {}}",
        "turn_engine: {since: 2024-13-45, since: 2}\nother: 1\nother: 2",
        "base: &base {max_entries: 7}\nturn_engine: {conversation_session: {<<: *base, enabled: true}}",
    ],
)
def test_engines_own_yaml_is_let_be(text: str) -> None:
    """An engine's tags, odd values, doubled keys and merged anchors are its own."""
    document = parse(text)
    assert (document.problems, document.notes) == ([], [])


def test_merged_keys_are_read_and_own_ones_hold() -> None:
    """YAML's merge gives a section its keys, and those that it writes itself hold."""
    text = "base: &b {max_entries: 7, retention_days: 8}\nturn_engine: {conversation_session: {<<: *b, max_entries: 9}}"
    assert parse(text).values == {f"{SESSION}.max_entries": 9, f"{SESSION}.retention_days": 8}


def test_likely_slip_among_the_engines_keys_is_pointed_out() -> None:
    """A key that is let be, and looks like one of ours that is missing, is told without being refused."""
    document = parse("turn_engin: {}\nsidecar: {}\n")
    assert (document.problems, [note.place for note in document.notes]) == ([], ["turn_engin"])
    (note,) = parse("turn_engine:\n  conversation_sesion: {enabled: false}\n").notes
    assert (note.line, note.place) == (2, "turn_engine.conversation_sesion")
    assert parse("turn_engine: {conversation_session: {}, conversation_sessions: {}}").notes == []


@given(st.text(st.sampled_from("ab:{}[]-&*!<>?|#'\",\n \t0"), max_size=60))
def test_any_text_is_judged(text: str) -> None:
    """Whatever stands below our section, judging it raises nothing, and what comes out is of the right types."""
    for whole in (text, f"sidecar: {text}", f"sidecar: {{store: {text}}}"):
        document = parse(whole)
        assert isinstance(ROOT.settings(document.values), Settings)


def test_keys_are_those_of_the_structs() -> None:
    """Defaults put together from the keys are the structs' own."""
    assert ROOT.settings({}) == Settings() == ROOT.settings({key.place: key.default for key in KEYS})


def test_files_that_are_no_settings_are_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A folder, a huge file, and a path that cannot be are troubles in words, and nothing is raised."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "huge").write_bytes(b"#" * (FILE_BYTES + 1))
    (folder / "most").write_bytes(b"#" * FILE_BYTES)
    (folder / "marked").write_bytes(b"\xef\xbb\xbfsidecar: {}")
    assert "it cannot be read" in read_file(folder).trouble
    assert "more than" in read_file(folder / "huge").trouble
    assert "it cannot be read" in read_file(folder / "a\0b").trouble
    assert read_file(folder / "most").trouble == ""
    assert read_file(folder / "marked").text == "sidecar: {}"


@pytest.mark.parametrize("odd", ["pipe", "/dev/zero", "/dev/null"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, odd: str) -> None:
    """A pipe that nobody writes to, or a device, is trouble at once: it would hang every later look at the file too."""
    os.mkfifo(tmp_path / "pipe")
    reading = Thread(target=lambda: found.append(read_file(tmp_path / odd)), daemon=True)
    found: list[Reading] = []
    reading.start()
    reading.join(5)
    assert found == [Reading(trouble="it cannot be read: it is no file")]
