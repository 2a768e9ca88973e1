"""As much of an HTTP/2 client as it takes to misbehave towards a gRPC server."""
import socket
import struct
import time

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def hpack_integer(value):
    if value < 127:
        return bytes([value])
    out, value = [127], value - 127
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def literal(name, value):
    """A header without index and without Huffman coding."""
    return b"\0" + b"".join(hpack_integer(len(t)) + t.encode() for t in (name, value))


def message(body, compressed=False, claimed=None):
    """A gRPC message's five bytes and its body."""
    return struct.pack(">BI", compressed, len(body) if claimed is None else claimed) + body


class Connection:
    """What the server said is in `settings`, `ended` (stream to its trailers), `reset`, `goaway`, `closed`."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.received = b""
        self.window, self.initial_window, self.windows = 65535, 65535, {}
        self.settings, self.ended, self.reset = {}, {}, {}
        self.goaway = None
        self.closed = False
        self._send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))

    def close(self):
        self.socket.close()

    def call(self, stream, extra=()):
        """The headers of a call whose body comes later."""
        headers = [(":method", "POST"), (":scheme", "http"), (":path", "/attend.v1.Attention/Attend"),
                   (":authority", "localhost"), ("te", "trailers"), ("content-type", "application/grpc"), *extra]
        self.windows[stream] = self.initial_window
        self._send(frame(HEADERS, END_HEADERS, stream, b"".join(literal(*h) for h in headers)))

    def ping(self):
        self._send(frame(PING, 0, 0, bytes(8)))

    def body(self, stream, data, end=False, patience=5):
        """Sends as much as the server takes; how much that was."""
        sent, moved = 0, time.monotonic()
        while sent < len(data) and not self.over(stream) and time.monotonic() - moved < patience:
            self.pump(0)
            size = min(16384, len(data) - sent, self.window, self.windows[stream])
            if size <= 0:
                self.pump(0.02)
                continue
            last = end and sent + size == len(data)
            self._send(frame(DATA, END_STREAM if last else 0, stream, data[sent:sent + size]))
            self.window -= size
            self.windows[stream] -= size
            sent, moved = sent + size, time.monotonic()
        return sent

    def over(self, stream):
        return self.closed or stream in self.ended or stream in self.reset

    def await_true(self, check, seconds=20):
        """Listens until the check holds; whether it did."""
        end = time.monotonic() + seconds
        while not check() and not self.closed and time.monotonic() < end:
            self.pump(0.02)
        return bool(check())

    def pump(self, seconds):
        """Takes in what comes within so many seconds."""
        end = time.monotonic() + seconds
        while not self.closed:
            self.socket.settimeout(max(1e-4, end - time.monotonic()))
            try:
                data = self.socket.recv(1 << 20)
                self.closed = not data
                self.received += data
            except TimeoutError:
                pass
            except OSError:
                self.closed = True
            while len(self.received) >= 9:
                size = int.from_bytes(self.received[:3], "big")
                if len(self.received) < 9 + size:
                    break
                kind, flags, stream = struct.unpack(">BBI", self.received[3:9])
                self._take(kind, flags, stream, self.received[9:9 + size])
                self.received = self.received[9 + size:]
            if time.monotonic() >= end:
                return

    def _take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.settings.update(struct.iter_unpack(">HI", payload))
            change = self.settings.get(INITIAL_WINDOW_SIZE, self.initial_window) - self.initial_window
            self.initial_window += change
            self.windows = {s: w + change for s, w in self.windows.items()}
            self._send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            size = int.from_bytes(payload, "big")
            if stream:
                self.windows[stream] = self.windows.get(stream, 0) + size
            else:
                self.window += size
        elif kind == RST_STREAM:
            self.reset[stream] = int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            self.goaway = payload[8:].decode()
        elif kind == HEADERS and flags & END_STREAM:
            self.ended[stream] = payload.decode("latin-1")

    def _send(self, data):
        self.socket.settimeout(20)
        try:
            self.socket.sendall(data)
        except OSError:
            self.closed = True
