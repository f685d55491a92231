"""The client's end: one connection, many calls at once, a new owner when the old one is gone."""

import asyncio
import contextlib
import itertools
import subprocess
import sys
from pathlib import Path

import msgspec

from app.clients.embedded_index import paths
from app.clients.embedded_index.wire import (
    HEAD_BYTES,
    FrameTooLarge,
    Operation,
    Reply,
    Request,
    decode_reply,
    encode,
    frame_length,
)
from app.domain.deadline import Deadline
from app.domain.errors import IndexUnavailable, InvalidInput

FIRST_WAIT_S, LONGEST_WAIT_S = 0.005, 0.05
START_AGAIN_S = 3.0


class ConnectionGone(Exception):
    """The owner went away in the middle; every operation is idempotent and may be sent again."""


class OwnerConnection:
    """Calls are multiplexed by number. The owner is started when nobody listens, and again when it dies."""

    def __init__(self, *, folder: Path, dimension: int, linger_s: float) -> None:
        self._folder, self._dimension, self._linger_s = folder, dimension, linger_s
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._started_at = float("-inf")
        self._children: list[subprocess.Popen[bytes]] = []

    async def call(self, operation: Operation, deadline: Deadline) -> Reply:
        """Sends, and sends again after a broken connection, until the deadline."""
        while True:
            try:
                async with asyncio.timeout(deadline.remaining_s()):
                    reply = await self._exchange(operation, deadline)
            except ConnectionGone:
                if deadline.expired():
                    raise IndexUnavailable("the index went away", cause="reset") from None
                continue
            except TimeoutError:
                raise IndexUnavailable("the index did not answer in time", cause="timeout") from None
            if reply.error == "deadline":
                raise IndexUnavailable("the index had no time for the request", cause="timeout")
            if reply.error is not None:
                raise InvalidInput("/points", f"the index {reply.error}")
            return reply

    async def aclose(self) -> None:
        """The owner leaves by itself when its last client is gone."""
        await self._disconnect()
        for child in self._children:
            child.poll()
            # Not ours to wait for: the owner lives on for other clients.
            child.returncode = child.returncode if child.returncode is not None else 0

    async def _exchange(self, operation: Operation, deadline: Deadline) -> Reply:
        writer = await self._connected(deadline)
        number = next(self._numbers)
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            writer.write(encode(Request(number, deadline.at, operation)))
            await writer.drain()
            return await answer
        except FrameTooLarge as error:
            raise InvalidInput("/points", str(error)) from error
        except OSError:
            await self._disconnect()
            raise ConnectionGone from None
        finally:
            self._waiting.pop(number, None)

    async def _connected(self, deadline: Deadline) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is None or self._writer.is_closing():
                reader, self._writer = await self._connect(deadline)
                self._reading = asyncio.create_task(self._read(reader, self._writer))
            return self._writer

    async def _connect(self, deadline: Deadline) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """connect → start → connect, until it works: whoever else starts an owner, the lock leaves one of them."""
        wait_s = FIRST_WAIT_S
        while True:
            with contextlib.suppress(OSError):
                return await asyncio.open_unix_connection(str(paths.socket_path(self._folder)))
            if any((child.poll() or 0) > 0 for child in self._children):  # killed (below 0) is no reason to give up
                self._children.clear()
                reason = f"does not start: {self._last_words()}"
                raise IndexUnavailable(f"the index of {self._folder} {reason}", cause="refused")
            if deadline.expired():
                raise IndexUnavailable(f"the index of {self._folder} cannot be opened", cause="refused")
            if deadline.clock() - self._started_at > START_AGAIN_S:
                self._started_at = deadline.clock()
                await asyncio.to_thread(self._start)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 1.5, LONGEST_WAIT_S)

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._children = [child for child in self._children if child.poll() is None]
        module = "app.clients.embedded_index.owner"
        options = ["--dimension", str(self._dimension), "--linger", str(self._linger_s)]
        with (self._folder / paths.LOG).open("ab") as log:
            self._children.append(
                subprocess.Popen(  # noqa: S603  # our own module with our own paths, no shell
                    [sys.executable, "-m", module, str(self._folder), *options],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _last_words(self) -> str:
        """The last line of the owner's log: an exception's own text, if it ended with one."""
        lines = (self._folder / paths.LOG).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its log is empty"

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readexactly(HEAD_BYTES)
                reply = decode_reply(await reader.readexactly(frame_length(head)))
                waiting = self._waiting.pop(reply.number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except (asyncio.IncompleteReadError, OSError, FrameTooLarge, msgspec.DecodeError):
            pass
        finally:
            writer.close()
            self._fail_waiting()

    def _fail_waiting(self) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionGone())
        self._waiting.clear()

    async def _disconnect(self) -> None:
        writer, reading = self._writer, self._reading
        self._writer = self._reading = None
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        if reading is not None and reading is not asyncio.current_task():
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
