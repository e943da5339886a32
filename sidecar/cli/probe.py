"""`turnledger probe`: is the sidecar alive, and what of it is not well?"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click
import grpc
from grpc_health.v1 import health_pb2

from sidecar.cli.exits import EXIT_HELP, Exit
from sidecar.cli.options import give_up, settings_of
from sidecar.config.listen import Address, parse_health
from sidecar.domain.errors import LedgerError
from sidecar.server.health import DETAIL_KEY

_COMPONENTS: Final = ("liveness", "store.readable", "store.writable", "disk", "configuration")

_CHECK: Final = "/grpc.health.v1.Health/Check"


@dataclass(frozen=True, slots=True)
class Probed:
    """One component's answer."""

    component: str
    well: bool
    detail: str


@click.command(epilog=EXIT_HELP)
@click.option("--config", type=click.Path(path_type=Path), help="The settings file, as `serve` takes it.")
@click.option("--health", metavar="HOST:PORT", help="Where the sidecar serves health, as `serve` takes it.")
@click.option(
    "--component",
    "components",
    multiple=True,
    type=click.Choice(_COMPONENTS),
    metavar="NAME",
    help=f"Ask for this alone: {', '.join(_COMPONENTS)}.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Seconds that each answer may take.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def probe(
    config: Path | None, health: str | None, components: tuple[str, ...], timeout: float, *, as_json: bool
) -> None:
    """Ask the health port of a running sidecar how it is.

    `liveness` is the process; the other components are really tried, a second ago at most. A probe that restarts the
    pod asks for liveness alone: no restart mends a store.

    \b
    turnledger probe                          everything, for a person
    turnledger probe --component liveness     for a startup or liveness probe by exec

    Exits with 1 if something is not well, with 4 if nobody answers.
    """
    address = _address(health or settings_of(config).sidecar.health)
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(address.host, address.host)  # noqa: S104  dialled from here
    target = f"{host}:{address.port}"
    try:
        with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
            found = [_ask(channel, name, timeout) for name in components or _COMPONENTS]
    except grpc.RpcError as error:
        give_up(Exit.UNREACHABLE, f"no sidecar answers on {target} ({error.code().name})", as_json=as_json)
    well = all(each.well for each in found)
    if as_json:
        click.echo(json.dumps({"well": well, "components": [asdict(each) for each in found]}))
    else:
        for each in found:
            click.echo(f"{each.component:<14}  {'well' if each.well else f'NOT WELL: {each.detail}'}")
    sys.exit(Exit.DONE if well else Exit.NO)


def _address(text: str) -> Address:
    try:
        return parse_health(text)
    except LedgerError as error:  # the option alone: settings that are wrong leave the default
        raise click.BadParameter(error.message, param_hint="'--health'") from error


def _ask(channel: grpc.Channel, name: str, timeout: float) -> Probed:
    request = health_pb2.HealthCheckRequest(service=name)
    check = channel.unary_unary(
        _CHECK,
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    answer, call = check.with_call(request, timeout=timeout)
    well = answer.status == health_pb2.HealthCheckResponse.SERVING
    detail = dict(call.trailing_metadata() or ()).get(DETAIL_KEY, b"")
    return Probed(name, well, detail.decode() if isinstance(detail, bytes) else detail)
