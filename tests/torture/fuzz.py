"""A fuzzer that is led by coverage, over decoding, call lines and the block; and its target under plain mutation."""

import asyncio
import os
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.torture.experiment import Experiment, Finding, Say, Scale
from tests.torture.fuzz_target import judge, seeds

_REPOSITORY: Final = Path(__file__).parents[2]

#: An interpreter that has atheris (`make torture` makes one); none: plain mutation alone.
_FUZZ_PYTHON: Final = Path(os.environ.get("TURNLEDGER_FUZZ_PYTHON", _REPOSITORY / ".venv-fuzz/bin/python"))

_SECONDS: Final = int(os.environ.get("TURNLEDGER_FUZZ_SECONDS", "300"))
_MUTATIONS: Final = 200_000
_QUICK_MUTATIONS: Final = 4_000

#: What the mutations put in: what structure is made of, in texts and in messages.
_PIECES: Final = (
    b"\n",
    b"\r",
    b"\xe2\x80\xa8",
    b"| ",
    b"## ",
    b'"',
    b"{",
    b"}",
    b"[",
    b"\\",
    b"\xff",
    b"\x00",
    b"(",
    b"1e9",
)


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    findings = [await asyncio.to_thread(_mutated, scale)]
    if not scale.quick and _FUZZ_PYTHON.exists():
        findings.append(await _fuzzed(folder, scale))
    for finding in findings:
        say(f"{finding.promise}: {finding.figures}")
    return findings


def _mutated(scale: Scale) -> Finding:
    """Good bytes with a few changes, again and again."""
    chance = random.Random(scale.seed)
    corpus = seeds()
    count = _QUICK_MUTATIONS if scale.quick else _MUTATIONS
    broken: list[str] = []
    for _ in range(count):
        data = _changed(chance.choice(corpus), chance)
        try:
            judge(data)
        except Exception as error:  # noqa: BLE001  whatever it is, it is what was looked for
            broken.append(f"{type(error).__name__} of {data!r}"[:2000])
            break
    return Finding("Mutated requests and entries break neither decoding nor the block", f"{count} mutations", broken)


def _changed(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(data) + 1)
        put = chance.choice([*_PIECES, bytes([chance.randrange(256)]), data[place : place + chance.randrange(12)]])
        data = data[:place] + put + data[place + chance.choice((0, 0, 1, len(put))) :]
    return data


async def _fuzzed(folder: Path, scale: Scale) -> Finding:
    corpus = folder / "corpus"
    corpus.mkdir()
    for place, data in enumerate(seeds()):
        (corpus / f"seed-{place}").write_bytes(data)
    fuzzing = await asyncio.create_subprocess_exec(
        str(_FUZZ_PYTHON),
        "-m",
        "tests.torture.fuzz_atheris",
        f"-max_total_time={_SECONDS}",
        f"-seed={scale.seed % 2**31 or 1}",
        "-max_len=4096",
        "-print_final_stats=1",
        f"-artifact_prefix={folder}/",
        str(corpus),
        cwd=_REPOSITORY,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await fuzzing.communicate()
    log = told.decode(errors="replace")
    found = [log[-2000:]] if fuzzing.returncode else []  # it ends with the trace, and the bytes in base64
    covered = re.findall(r"cov: (\d+) ft: (\d+)", log)
    runs = re.findall(r"stat::number_of_executed_units: (\d+)", log)
    figures = (
        f"{runs[-1] if runs else 0} inputs in {_SECONDS} s, led to {covered[-1][0] if covered else 0} branches;"
        f" and {covered[-1][1] if covered else 0} features"
    )
    return Finding("A fuzzer led by coverage breaks neither decoding nor the block", figures, found)


EXPERIMENT = Experiment("fuzz", "fuzzing of decoding, call lines and the block; with atheris where it is there", run)
