"""The fuzzer as a process of its own, under an interpreter that has atheris: its arguments are libFuzzer's."""

import sys

import atheris  # type: ignore[import-untyped]  # in an environment of its own

with atheris.instrument_imports(include=["sidecar.domain", "sidecar.server.decode"]):
    from tests.torture.fuzz_target import judge

if __name__ == "__main__":
    atheris.Setup(sys.argv, judge)
    atheris.Fuzz()
