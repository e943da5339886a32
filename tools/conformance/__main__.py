"""Every case in every language, as one matrix. Exits with 1 if a cell failed or was skipped."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.conformance.cases import Case, chosen
from tools.conformance.drivers import Language, NoDriver, build, driving, languages
from tools.conformance.play import PASSED, SKIPPED, Cell, play
from tools.conformance.sidecars import opened, real

Column = dict[str, Cell]


async def column(language: Language, cases: Sequence[Case], folder: Path) -> Column:
    """What became of every case in one language. A case that its driver did not live to see was skipped."""
    cells: Column = {}
    reference = languages(folder)["python"]
    try:
        await build(language)
        async with (
            real(made(folder / "shared")) as shared,
            driving(reference, folder / "reference.log") as beside,
            driving(language, folder / "driver.log") as driver,
        ):
            for number, case in enumerate(cases):
                async with opened(case.sidecar, made(folder / str(number)), shared) as sidecar:
                    cells[case.title] = await play(case, driver, beside, sidecar)
    except NoDriver as error:
        note = f"{language.name}: {error}"
        return {case.title: cells.get(case.title, Cell(SKIPPED, (note,))) for case in cases}
    return cells


def made(folder: Path) -> Path:
    """The folder, once it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def run(names: Sequence[str], cases: Sequence[Case]) -> dict[str, Column]:
    """Every column, one after another: deadlines are real, and languages beside one another would disturb them."""
    columns: dict[str, Column] = {}
    # A socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="tl-") as scratch:
        for name in names:
            folder = made(Path(scratch) / name)
            columns[name] = await column(languages(folder)[name], cases, folder)
    return columns


def matrix(cases: Sequence[Case], columns: dict[str, Column]) -> str:
    """Cases by languages."""
    width = max((len(case.title) for case in cases), default=0)
    lines = ["  ".join([" " * width, *columns])]
    for case in cases:
        verdicts = [columns[name][case.title].verdict.ljust(len(name)) for name in columns]
        lines.append("  ".join([case.title.ljust(width), *verdicts]).rstrip())
    return "\n".join(lines)


def wrong(cases: Sequence[Case], columns: dict[str, Column]) -> list[tuple[str, str, Cell]]:
    """Each cell that did not pass: language, case and cell."""
    every = ((name, case.title, cells[case.title]) for name, cells in columns.items() for case in cases)
    return [each for each in every if each[2].verdict != PASSED]


def reasons(failures: Sequence[tuple[str, str, Cell]], *, verbose: bool) -> dict[str, list[str]]:
    """What was wrong, once, with the cells that it was wrong with; of each cell the first note, or all of them."""
    found: dict[str, list[str]] = {}
    for name, title, cell in failures:
        for note in cell.notes if verbose else cell.notes[:1]:
            found.setdefault(note, []).append(f"{name}: {title}")
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    known = ",".join(languages(Path()))
    parser.add_argument("--languages", default=known, help=f"the columns, with commas between [default: {known}]")
    parser.add_argument("--cases", default="*", metavar="PATTERN", help="the rows, as a shell pattern over group/name")
    parser.add_argument("--verbose", action="store_true", help="say of each failed cell which step and what came")
    given = parser.parse_args()
    names = given.languages.split(",")
    if unknown := set(names) - set(known.split(",")):
        parser.error(f"no such language: {', '.join(sorted(unknown))}. There are {known}.")
    cases = chosen(given.cases)
    if not cases:
        parser.error(f"no case is called {given.cases}")
    began = time.monotonic()
    columns = asyncio.run(run(names, cases))
    print(matrix(cases, columns))
    failures = wrong(cases, columns)
    for note, titles in reasons(failures, verbose=given.verbose).items():
        others = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
        print(f"\n{titles[0]}{others}\n  {note}")
    cells = len(cases) * len(columns)
    print(f"\n{cells - len(failures)} of {cells} cells passed, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
