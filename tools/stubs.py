"""Generates clients/python/turnledger/v1 from proto/: messages, services and their types.

`python -m tools.stubs` writes them; with `--check` it fails where the committed ones are not what the proto files say.
"""

import filecmp
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
COMMITTED: Final = ROOT / "clients" / "python" / "turnledger" / "v1"

INIT: Final = '"""Messages and stubs of the package turnledger.v1, generated from proto/ by `make stubs`."""\n'


def main() -> None:
    """Writes the stubs, or with --check compares them and exits with 1 where they differ."""
    with tempfile.TemporaryDirectory() as scratch:
        generated = generate(Path(scratch))
        if "--check" in sys.argv[1:]:
            sys.exit(_complaint(differing(generated, COMMITTED)))
        shutil.rmtree(COMMITTED, ignore_errors=True)
        shutil.copytree(generated, COMMITTED)


def generate(target: Path) -> Path:
    """Generates into `target`; returns the package's folder. Raises CalledProcessError where protoc refuses a file."""
    protos = sorted(path.relative_to(ROOT / "proto").as_posix() for path in (ROOT / "proto").rglob("*.proto"))
    outputs = [f"--{kind}_out={target}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={ROOT / 'proto'}", "--mypy_opt=quiet"]
    # The mypy-protobuf plugins are looked up on the PATH, and stand beside this interpreter.
    environment = {"PATH": str(Path(sys.executable).parent)}
    subprocess.run([*protoc, "--mypy_grpc_opt=quiet", *outputs, *protos], check=True, env=environment)
    package = target / "turnledger" / "v1"
    (package / "__init__.py").write_text(INIT)
    return package


def differing(left: Path, right: Path) -> list[str]:
    """Names of the files that are missing on one side, or whose bytes differ; caches are let be."""
    names = {path.name for folder in (left, right) for path in folder.iterdir() if path.is_file()}
    _, unequal, missing = filecmp.cmpfiles(left, right, names, shallow=False)
    return sorted(unequal + missing)


def _complaint(names: list[str]) -> str | None:
    return f"Not what proto/ says: {', '.join(names)}. Run `make stubs` and commit what it writes." if names else None


if __name__ == "__main__":
    main()
