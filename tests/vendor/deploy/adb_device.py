"""A device for the real adb, on the loopback interface: it runs commands of this machine and keeps its files.

What adb says to a device over TCP: messages of 24 bytes and data, streams within them, shell with exit code,
and the sync service for files. `python -m tests.vendor.deploy.adb_device PORT` serves until it is ended.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

MOST = 1 << 18
BANNER = (
    b"device::ro.product.name=loopback;ro.product.model=loopback;ro.product.device=loopback;features=shell_v2"
)


def name(text: bytes) -> int:
    return int.from_bytes(text, "little")


class Stream:
    """One stream of a connection: bytes that came in, and bytes that go out when the other side is ready."""

    def __init__(self, connection: Connection, here: int, there: int) -> None:
        self.connection, self.here, self.there = connection, here, there
        self.came, self.ready, self.closed = bytearray(), True, False
        self.turn = threading.Condition()

    def read(self, count: int) -> bytes:
        with self.turn:
            self.turn.wait_for(lambda: len(self.came) >= count or self.closed)
            found = bytes(self.came[:count])
            del self.came[:count]
        if len(found) < count:
            raise EOFError
        return found

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), MOST // 2):
            with self.turn:
                self.turn.wait_for(lambda: self.ready or self.closed)
                if self.closed:
                    raise EOFError
                self.ready = False
            self.connection.send(b"WRTE", self.here, self.there, data[start : start + MOST // 2])

    def change(self, *, data: bytes = b"", ready: bool = False, closed: bool = False) -> None:
        with self.turn:
            self.came += data
            self.ready, self.closed = self.ready or ready, self.closed or closed
            self.turn.notify_all()

    def close(self) -> None:
        self.connection.send(b"CLSE", self.here, self.there)


class Connection:
    """What one adb server says, until it hangs up."""

    def __init__(self, link: socket.socket, room: int) -> None:
        self.link, self.streams, self.lock, self.room = link, dict[int, Stream](), threading.Lock(), room

    def send(self, command: bytes, first: int, second: int, data: bytes = b"") -> None:
        code = name(command)
        head = struct.pack("<6I", code, first, second, len(data), sum(data) & 0xFFFFFFFF, code ^ 0xFFFFFFFF)
        with self.lock:
            self.link.sendall(head + data)

    def take(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            part = self.link.recv(count - len(found))
            if not part:
                raise EOFError
            found += part
        return bytes(found)

    def serve(self) -> None:
        try:
            while True:
                self.answer(*struct.unpack("<4I", self.take(24)[:16]))
        except (EOFError, OSError):
            for stream in list(self.streams.values()):
                stream.change(closed=True)

    def answer(self, code: int, first: int, second: int, length: int) -> None:
        data, command = self.take(length), code.to_bytes(4, "little")
        if command == b"CNXN":
            self.send(b"CNXN", 0x01000001, MOST, BANNER)
        elif command == b"OPEN":
            stream = Stream(self, first + 1000, first)
            self.streams[stream.here] = stream
            self.send(b"OKAY", stream.here, stream.there)
            threading.Thread(target=self.run, args=(stream, data.rstrip(b"\0").decode()), daemon=True).start()
        elif second in self.streams:
            self.streams[second].change(data=data, ready=command == b"OKAY", closed=command == b"CLSE")
            if command == b"WRTE":
                self.send(b"OKAY", second, first)

    def run(self, stream: Stream, service: str) -> None:
        try:
            if service.startswith("shell"):
                shell(stream, service.partition(":")[2])
            elif service == "sync:":
                Sync(stream, self.room).serve()
        except (EOFError, OSError):
            pass
        finally:
            stream.close()


def shell(stream: Stream, command: str) -> None:
    """Packets of shell v2: standard output, errors, and the exit code."""
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    for kind, data in ((1, done.stdout), (2, done.stderr), (3, bytes([done.returncode & 255]))):
        if data:
            stream.write(struct.pack("<BI", kind, len(data)) + data)


class Sync:
    """Files there and back. `room` is how many bytes the device takes before it is full; -1 for any."""

    def __init__(self, stream: Stream, room: int) -> None:
        self.stream, self.room = stream, room

    def serve(self) -> None:
        while True:
            command, length = self.stream.read(4), struct.unpack("<I", self.stream.read(4))[0]
            path = self.stream.read(length).decode()
            if command == b"QUIT":
                return
            {b"STAT": self.stat, b"LIST": self.names, b"SEND": self.put, b"RECV": self.get}[command](path)

    def stat(self, path: str) -> None:
        self.stream.write(b"STAT" + figures(path))

    def names(self, path: str) -> None:
        for entry in os.listdir(path) if os.path.isdir(path) else []:
            file = os.fsencode(entry)
            about = figures(f"{path}/{entry}")
            self.stream.write(b"DENT" + about + struct.pack("<I", len(file)) + file)
        self.stream.write(b"DONE" + bytes(16))

    def put(self, path: str) -> None:
        target, _, mode = path.rpartition(",")
        content = bytearray()
        while (command := self.stream.read(4)) == b"DATA":
            content += self.stream.read(struct.unpack("<I", self.stream.read(4))[0])
        assert command == b"DONE"
        self.stream.read(4)
        if 0 <= self.room < len(content):
            words = b"couldn't write: No space left on device"
            self.stream.write(b"FAIL" + struct.pack("<I", len(words)) + words)
            return
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).write_bytes(content)
        os.chmod(target, int(mode) & 0o777)
        self.stream.write(b"OKAY" + bytes(4))

    def get(self, path: str) -> None:
        content = Path(path).read_bytes()
        for start in range(0, len(content), 65536):
            part = content[start : start + 65536]
            self.stream.write(b"DATA" + struct.pack("<I", len(part)) + part)
        self.stream.write(b"DONE" + bytes(4))


def figures(path: str) -> bytes:
    try:
        found = os.lstat(path)
    except OSError:
        return bytes(12)
    return struct.pack("<III", found.st_mode, min(found.st_size, 0xFFFFFFFF), int(found.st_mtime))


def main(port: int, room: int = -1) -> None:
    with socket.create_server(("127.0.0.1", port)) as server:
        print("ready", flush=True)
        while True:
            link, _ = server.accept()
            threading.Thread(target=Connection(link, room).serve, daemon=True).start()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
