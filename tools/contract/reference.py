"""The page's tables, from the comments of the proto files, the table of statuses and the rule of retries.

`python -m tools.contract.reference` writes them into the page, between `<!-- tables: NAMES -->` and `<!-- end -->`;
with `--check` it fails where the page has others.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2
from turnledger.failure import Failure
from turnledger.retry import as_the_contract_allows

from sidecar.server.status import STATUSES

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "contract.md"
_PACKAGE: Final = "turnledger.v1."

_MARKED: Final = re.compile(r"(<!-- tables: (?P<names>[\w. ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_Field = descriptor_pb2.FieldDescriptorProto


class Contract:
    """What the proto files say: every message and enum by its short name, every method, and the comments on all."""

    def __init__(self) -> None:
        self.messages: dict[str, descriptor_pb2.DescriptorProto] = {}
        self.enums: dict[str, descriptor_pb2.EnumDescriptorProto] = {}
        self.methods: dict[str, str] = {}
        self.comments: dict[str, str] = {}
        for file in _compiled().file:
            if file.package == "turnledger.v1":
                self._read(file)

    def _read(self, file: descriptor_pb2.FileDescriptorProto) -> None:
        comments = {tuple(place.path): _one_line(place.leading_comments) for place in file.source_code_info.location}
        for at, message in enumerate(file.message_type):
            self.messages[message.name] = message
            self.comments[message.name] = comments.get((4, at), "")
            for inner, field in enumerate(message.field):
                self.comments[f"{message.name}.{field.name}"] = comments.get((4, at, 2, inner), "")
        for at, enum in enumerate(file.enum_type):
            self.enums[enum.name] = enum
            self.comments[enum.name] = comments.get((5, at), "")
            for inner, value in enumerate(enum.value):
                self.comments[value.name] = comments.get((5, at, 2, inner), "")
        for at, service in enumerate(file.service):
            for inner, method in enumerate(service.method):
                self.methods[f"{service.name}.{method.name}"] = comments.get((6, at, 2, inner), "")


def page_with_tables(page: str) -> str:
    """The page, each of its tables as the contract has it now. Raises KeyError at a name that the contract lacks."""
    contract = Contract()

    def tables(found: re.Match[str]) -> str:
        made = "\n".join(line for name in found["names"].split() for line in _table(contract, name))
        return f"{found[1]}\n{made}\n{found[3]}"

    return _MARKED.sub(tables, page)


def named(page: str) -> list[str]:
    """Everything that the page has a table of, in its order."""
    return [name for found in _MARKED.finditer(page) for name in found["names"].split()]


def _table(contract: Contract, name: str) -> Iterator[str]:
    if name == "statuses":
        yield from _statuses()
    elif name in contract.methods:
        yield from (contract.methods[name], "")
    elif name in contract.enums:
        yield from _heading(contract, name, "enum")
        yield from ("| number | value | what |", "|---|---|---|")
        for value in contract.enums[name].value:
            yield f"| {value.number} | `{value.name}` | {contract.comments[value.name]} |"
        yield ""
    else:
        message = contract.messages[name]
        yield from _heading(contract, name, "message")
        yield from ("| number | field | type | rule |", "|---|---|---|---|")
        for field in message.field:
            rule = contract.comments[f"{name}.{field.name}"]
            yield f"| {field.number} | `{field.name}` | {_type(message, field)} | {rule} |"
        yield ""


def _heading(contract: Contract, name: str, kind: str) -> Iterator[str]:
    comment = contract.comments[name]
    yield from (f"**`{name}`** ({kind}){': ' if comment else ''}{comment}", "")


def _type(message: descriptor_pb2.DescriptorProto, field: descriptor_pb2.FieldDescriptorProto) -> str:
    named = field.type_name.removeprefix(f".{_PACKAGE}").removeprefix(".") or _Field.Type.Name(field.type)
    short = named.removeprefix("TYPE_").lower() if named.startswith("TYPE_") else named
    if field.label == _Field.LABEL_REPEATED:
        return f"repeated {short}"
    if field.proto3_optional:
        return f"optional {short}"
    return f"{short}, one of `{message.oneof_decl[field.oneof_index].name}`" if field.HasField("oneof_index") else short


def _statuses() -> Iterator[str]:
    yield from ("| reason | status | RetryInfo | a client tries again |", "|---|---|---|---|")
    for code, status in STATUSES.items():
        again = as_the_contract_allows(Failure(status.code.name, code.value))
        wait = "" if status.retry_after_s is None else f"{status.retry_after_s} s"
        yield f"| `{code.value}` | `{status.code.name}` | {wait} | {'yes' if again else 'no'} |"
    yield ""


def _one_line(comment: str) -> str:
    return " ".join(line.strip() for line in comment.strip().splitlines()).replace("|", "\\|")


def _compiled() -> Any:
    protos = sorted(path.relative_to(ROOT / "proto").as_posix() for path in (ROOT / "proto").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        compiled = Path(scratch) / "contract"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={ROOT / 'proto'}", "--include_source_info"]
        subprocess.run([*command, f"--descriptor_set_out={compiled}", *protos], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes())


def main() -> None:
    """Writes the tables, or with --check compares them and exits with 1 where they differ."""
    page = PAGE.read_text(encoding="utf-8")
    current = page_with_tables(page)
    if "--check" in sys.argv[1:]:
        stale = current != page
        sys.exit("docs/contract.md has other tables. Run `python -m tools.contract.reference`." if stale else None)
    PAGE.write_text(current, encoding="utf-8")


if __name__ == "__main__":
    main()
