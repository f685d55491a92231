"""The owner process of one index folder: `python -m app.clients.embedded_index.owner FOLDER --dimension N`.

It holds the lock file for life (so there is one owner, whoever starts how many), listens on a UNIX socket in the
folder, and leaves when nobody has been connected for a while. It runs in its own session: the death of the process that
happened to start it concerns nobody. One thread: the engine never releases the GIL, so more would only queue.
"""

import argparse
import fcntl
import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.clients.embedded_index import paths
from app.clients.embedded_index.shard import Shard
from app.clients.embedded_index.wire import (
    HEAD_BYTES,
    READS,
    Delete,
    DeleteWhere,
    Figures,
    Flush,
    FrameTooLarge,
    Hello,
    Ids,
    Operation,
    Reply,
    Request,
    Search,
    Upsert,
    decode_request,
    encode,
    frame_length,
)

ENGINE = "qdrant-edge 0.9.0"
LOCK_WAIT_S = 1.0
FLUSH_EVERY_S = 5.0
FAIR_WAIT_S = 0.05  # a write that waited this long goes before the next search
BUSY_WINDOW_S = 1.0
PIECE_IDLE, PIECE_BUSY = 128, 32  # points of one engine call; small while searches run
IDLE_BEFORE_OPTIMIZE_S = 20.0
RECEIVE_BYTES = 1 << 20


class Connection:
    """One client: what it sent so far, and what it has not taken yet."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel, self.inbox, self.outbox, self.closed = channel, bytearray(), bytearray(), False


class Work:
    """A request in the queue. An upsert is done in pieces; `done` counts its points."""

    __slots__ = ("arrived", "connection", "done", "request")

    def __init__(self, connection: Connection, request: Request, arrived: float) -> None:
        self.connection, self.request, self.arrived, self.done = connection, request, arrived, 0


class Owner:
    """The loop: sockets, then one piece of work, then housekeeping."""

    def __init__(self, *, shard: Shard, listener: socket.socket, linger_s: float) -> None:
        self._shard, self._listener, self._linger_s = shard, listener, linger_s
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._connections: set[Connection] = set()
        self._searches: deque[Work] = deque()
        self._writes: deque[Work] = deque()
        self._last_was_write, self._stopping = False, False
        self._last_search = self._last_work = self._last_company = time.monotonic()

    def stop(self, *_: object) -> None:
        """Leaves after the piece of work at hand."""
        self._stopping = True

    def run(self) -> None:
        while not self._stopping:
            busy = bool(self._searches or self._writes)
            for key, events in self._selector.select(0 if busy else 0.2):
                self._serve_socket(key.data, events)
            self._work()
            self._keep_house()
        for connection in list(self._connections):
            self._drop(connection)
        self._selector.close()

    def _serve_socket(self, connection: Connection | None, events: int) -> None:
        if connection is None:
            self._accept()
            return
        if events & selectors.EVENT_WRITE:
            self._pump(connection)
        if events & selectors.EVENT_READ and not connection.closed:
            self._receive(connection)

    def _accept(self) -> None:
        channel, _ = self._listener.accept()
        if not _same_user(channel):
            channel.close()
            return
        channel.setblocking(False)
        connection = Connection(channel)
        self._connections.add(connection)
        self._selector.register(channel, selectors.EVENT_READ, connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.channel.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        connection.inbox += data
        try:
            while (frame := _take_frame(connection.inbox)) is not None:
                self._enqueue(connection, decode_request(frame))
        except (FrameTooLarge, msgspec.DecodeError) as error:
            print(f"a client spoke nonsense and was dropped: {error}", file=sys.stderr, flush=True)
            self._drop(connection)

    def _enqueue(self, connection: Connection, request: Request) -> None:
        now = time.monotonic()
        if isinstance(request.operation, READS):
            self._searches.append(Work(connection, request, now))
            self._last_search = now
        else:
            self._writes.append(Work(connection, request, now))

    def _work(self) -> None:
        """Searches first, but a write that waited goes next: strict priority would starve writes."""
        if not (self._searches or self._writes):
            return
        now = time.monotonic()
        self._last_work = now
        overdue = bool(self._writes) and not self._last_was_write and now - self._writes[0].arrived > FAIR_WAIT_S
        write = overdue or not self._searches
        queue = self._writes if write else self._searches
        work = queue[0]
        self._last_was_write = write
        if self._step(work, now):
            queue.popleft()

    def _step(self, work: Work, now: float) -> bool:
        """Does a piece; True when the work is finished (or failed, or not wanted any more)."""
        number = work.request.number
        if work.connection.closed and isinstance(work.request.operation, READS):
            return True
        if now > work.request.deadline:
            self._send(work.connection, Reply(number, error="deadline"))
            return True
        try:
            reply = self._execute(work)
        except Exception as error:  # noqa: BLE001  # the engine raises bare Exception for everything
            reply = Reply(number, error=f"rejected: {error}")
        if reply is not None:
            self._send(work.connection, reply)
        return reply is not None

    def _execute(self, work: Work) -> Reply | None:
        operation: Operation = work.request.operation
        number = work.request.number
        match operation:
            case Search():
                dense, lexical, cosines = self._shard.search(operation)
                return Reply(number, dense=dense, lexical=lexical, lexical_cosines=cosines)
            case Upsert():
                return self._upsert_piece(work, operation)
            case Delete():
                self._shard.delete(operation.ids)
            case DeleteWhere():
                self._shard.delete_where(operation.where)
            case Ids():
                return Reply(number, ids=self._shard.ids(operation.where))
            case Flush():
                self._shard.flush()
            case Hello():
                return Reply(number, figures=Figures(os.getpid(), self._shard.dimension, self._shard.count(), ENGINE))
        return Reply(number)

    def _upsert_piece(self, work: Work, operation: Upsert) -> Reply | None:
        """None while points are left: searches may go between the pieces."""
        busy = self._searches or time.monotonic() - self._last_search < BUSY_WINDOW_S
        size = PIECE_BUSY if busy else PIECE_IDLE
        piece = operation.points[work.done : work.done + size]
        self._shard.upsert(piece)
        work.done += len(piece)
        return Reply(work.request.number) if work.done >= len(operation.points) else None

    def _send(self, connection: Connection, reply: Reply) -> None:
        if connection.closed:
            return
        connection.outbox += encode(reply)
        self._pump(connection)

    def _pump(self, connection: Connection) -> None:
        try:
            while connection.outbox:
                sent = connection.channel.send(connection.outbox)
                del connection.outbox[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.outbox else 0)
        self._selector.modify(connection.channel, wanted, connection)

    def _drop(self, connection: Connection) -> None:
        if connection.closed:
            return
        connection.closed = True
        self._connections.discard(connection)
        self._selector.unregister(connection.channel)
        connection.channel.close()

    def _keep_house(self) -> None:
        now = time.monotonic()
        if self._shard.dirty and now - self._shard.flushed_at > FLUSH_EVERY_S:
            self._shard.flush()
        idle = not self._searches and not self._writes and now - self._last_work > IDLE_BEFORE_OPTIMIZE_S
        if idle and self._shard.optimize_if_due():
            self._last_work = time.monotonic()
        if self._connections:
            self._last_company = now
        elif now - self._last_company > self._linger_s:
            self._stopping = True


def _take_frame(inbox: bytearray) -> bytes | None:
    """The next whole frame's body, taken out of the buffer; None while it is not all there."""
    if len(inbox) < HEAD_BYTES:
        return None
    end = HEAD_BYTES + frame_length(bytes(inbox[:HEAD_BYTES]))
    if len(inbox) < end:
        return None
    frame = bytes(inbox[HEAD_BYTES:end])
    del inbox[:end]
    return frame


def _same_user(channel: socket.socket) -> bool:
    """The socket's folder is closed to others already; where the system tells who calls, it is asked, too."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, user, _ = struct.unpack("3i", channel.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return bool(user == os.getuid())


def _lock(folder: Path) -> int | None:
    """Held for life. Waits a moment for a former owner that is flushing its last; None when somebody else has it."""
    handle = os.open(folder / paths.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(handle)
                return None
            time.sleep(0.02)
        else:
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
            return handle


def _listen(folder: Path) -> tuple[socket.socket, Path]:
    """Bound under its final name only after the folder's lock is ours, so a name that is there already is stale."""
    address = paths.new_socket_path(folder)
    address.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    address.chmod(0o600)
    listener.listen(64)
    listener.setblocking(False)
    paths.publish_socket_path(folder, address)
    return listener, address


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 also when another owner is there: whoever started this one finds that one."""
    parser = argparse.ArgumentParser(prog="kroshka-index-owner", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dimension", type=int, required=True)
    parser.add_argument("--linger", type=float, default=2.0, help="seconds without a client before leaving")
    options = parser.parse_args(arguments)
    os.umask(0o077)
    options.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if _lock(options.folder) is None:
        return 0
    return _own(
        options.folder, options.dimension, options.linger, lambda owner: signal.signal(signal.SIGTERM, owner.stop)
    )


def _own(folder: Path, dimension: int, linger_s: float, on_start: Callable[[Owner], object]) -> int:
    shard = Shard(folder, dimension=dimension)
    listener, address = _listen(folder)
    owner = Owner(shard=shard, listener=listener, linger_s=linger_s)
    on_start(owner)
    try:
        owner.run()
    finally:
        # In this order: nobody can connect any more, then the last flush, then the lock goes with the process.
        address.unlink(missing_ok=True)
        listener.close()
        shard.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
