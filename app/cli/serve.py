"""`kroshka serve`."""

import asyncio
import contextlib
import ipaddress
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import click
import structlog
import uvicorn

from app.api.starting import StartingGate
from app.cli.context import data_option, environment
from app.clients.kroshka_api import announce, withdraw
from app.config.deployment import Deployment
from app.domain.errors import ConfigurationError
from app.observability.logs import configure_logging
from app.observability.process import resident_bytes

SHUTDOWN_S = 10


@click.command("serve")
@click.option("--host", envvar="KROSHKA_HOST", help="Default: 127.0.0.1 (environment: KROSHKA_HOST).")
@click.option("--port", type=click.IntRange(0, 65535), envvar="KROSHKA_PORT", help="Default: 8000; 0 takes a free one.")
@data_option
def command(host: str | None, port: int | None, data: Path | None) -> None:
    """Run the service with its worker. Alive at once, ready when the models are loaded."""
    given = {"KROSHKA_HOST": host, "KROSHKA_PORT": str(port) if port is not None else None}
    deployment = Deployment.from_environ(environment(data, **given))
    configure_logging(level=deployment.log_level, log_format=deployment.log_format)
    _check_host(deployment)
    listener = _listen(deployment.host, deployment.port)
    try:
        _run(deployment, listener)
    finally:
        listener.close()


def _check_host(deployment: Deployment) -> None:
    """Without keys the service is for this machine alone (a proxy or a public address would open it to the world)."""
    if not _is_loopback(deployment.host) and deployment.allow_anonymous != "search":
        raise ConfigurationError(
            f"KROSHKA_HOST={deployment.host} is not a loopback address and there is no API key: "
            "set KROSHKA_ALLOW_ANONYMOUS=search to serve everyone who can reach it"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    """Bound here rather than by the server, so that a taken port is a sentence."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
    except OSError as error:
        raise ConfigurationError(f"KROSHKA_PORT={port} cannot be opened on {host}: {error.strerror}") from error


def _run(deployment: Deployment, listener: socket.socket) -> None:
    """The web server runs at once; the service opens behind it. A service that cannot open ends the server."""
    gate = StartingGate(anonymous_search=deployment.allow_anonymous == "search")
    config = uvicorn.Config(
        gate,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
        server_header=False,
    )
    server = _Server(config)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(deployment, listener, server, gate))


class _Server(uvicorn.Server):
    """Leaves signals to us: uvicorn raises them again when it ends, which would kill the process before it is tidy."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(deployment: Deployment, listener: socket.socket, server: uvicorn.Server, gate: StartingGate) -> None:
    """Requests end first, then the service closes."""
    began, stop = time.monotonic(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    opening = asyncio.create_task(_open(deployment, listener, gate, stop, began))
    await asyncio.wait((serving, opening), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving
    stop.set()
    await opening


async def _open(
    deployment: Deployment, listener: socket.socket, gate: StartingGate, stop: asyncio.Event, began: float
) -> None:
    # Imported here: the models' libraries take a second, and the door must answer before that.
    from app.api import create_app
    from app.bootstrap import open_service

    log = structlog.get_logger("kroshka.serve")
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    log.info("listening", url=url, data=str(deployment.data_dir))
    async with open_service(deployment, worker=True) as service:
        gate.open(create_app(service.for_api()))
        announce(deployment.data_dir, url)
        log.info("ready", url=url, seconds=round(time.monotonic() - began, 2), rss_mb=resident_bytes() >> 20)
        try:
            await stop.wait()
        finally:
            withdraw(deployment.data_dir)
