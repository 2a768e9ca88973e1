#!/usr/bin/env python3
"""What one caller may take of a server: each limit is run into by a client that no library would be.

usage: limits_test.py BIN_DIR [unittest arguments]
"""
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest
import urllib.request
import zlib

from http2_client import MAX_CONCURRENT_STREAMS, Connection, message

BINARIES = pathlib.Path(sys.argv.pop(1)).resolve()
INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED = 3, 8, 12
MIB = 1 << 20


class Limits(unittest.TestCase):
    def start(self, *flags, wrap=()):
        self.server = subprocess.Popen(
            [*wrap, BINARIES / "attend-server", "--grpc-address", "127.0.0.1:0", "--metrics-address",
             "127.0.0.1:0", "--drain-delay", "0s", "--grace-period", "5s", *flags],
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        for line in self.server.stderr:
            found = re.search(r"grpc=\S+:(\d+) metrics=(\S+)", line)
            if found:
                self.port, self.metrics_address = int(found[1]), found[2]
                return
        self.fail("the server ended before it listened")

    def stop(self):
        if self.server.poll() is None:
            self.server.kill()
            self.server.wait()
        self.server.stderr.close()

    def connect(self):
        connection = Connection(self.port)
        self.addCleanup(connection.close)
        return connection

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def metric(self, name):
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics") as page:
            return float(re.search(rf"^{name} (\S+)$", page.read().decode(), re.M)[1])

    def assert_serves(self):
        asked = subprocess.run([BINARIES / "attend", "explain", "--target", f"127.0.0.1:{self.port}"],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(asked.returncode, 0, asked.stderr)

    def assert_ended(self, connection, stream, code):
        self.assertTrue(connection.await_true(lambda: connection.over(stream)), "the call goes on")
        self.assertIn("grpc-status" + chr(len(str(code))) + str(code), connection.ended.get(stream, ""))

    def test_a_message_above_the_limit_is_refused_with_the_limit_named(self):
        self.start("--max-message-bytes", "1MiB")
        connection = self.connect()
        connection.call(1)
        connection.body(1, message(bytes(2 * MIB)), end=True)
        self.assert_ended(connection, 1, INVALID_ARGUMENT)
        self.assert_serves()

    def test_a_message_far_above_the_limit_is_refused_unseen(self):
        self.start("--max-message-bytes", "1MiB")
        connection = self.connect()
        connection.call(1)
        connection.body(1, message(bytes(66 * MIB)), end=True)
        self.assert_ended(connection, 1, RESOURCE_EXHAUSTED)
        self.assert_serves()

    def test_metadata_above_the_limit_is_refused(self):
        self.start()
        connection = self.connect()
        connection.call(1, extra=[(f"noise-{i}", "x" * 1000) for i in range(20)])
        self.assertTrue(connection.await_true(lambda: connection.over(1)), "the call goes on")
        self.assert_serves()

    def test_streams_above_the_limit_are_refused_and_the_others_go_on(self):
        self.start()
        connection = self.connect()
        self.assertTrue(connection.await_true(lambda: MAX_CONCURRENT_STREAMS in connection.settings))
        limit = connection.settings[MAX_CONCURRENT_STREAMS]
        self.assertEqual(limit, 1024)
        for i in range(limit + 1):
            connection.call(2 * i + 1)
        last = 2 * limit + 1
        self.assertTrue(connection.await_true(lambda: connection.over(last)), "one stream too many")
        self.assert_serves()

    def test_connections_above_the_limit_are_closed_and_counted(self):
        self.start("--max-connections", "20")
        connections = [self.connect() for _ in range(40)]
        closed = lambda: sum(c.closed for c in connections)
        for connection in connections:
            connection.pump(0.01)
        self.assertTrue(connections[-1].await_true(lambda: connections[-1].closed))
        self.assertGreater(closed(), 10)
        self.assertGreater(self.metric("attend_connections_refused_total"), 10)
        for connection in connections:
            connection.close()
        self.assert_serves()

    def test_a_server_short_of_files_serves_again_when_there_are_some(self):
        self.start(wrap=["prlimit", "--nofile=64:64"])
        connections = [self.connect() for _ in range(100)]
        self.assertTrue(connections[-1].await_true(lambda: connections[-1].closed))
        self.assertGreater(self.metric("attend_connections_refused_total"), 10)
        for connection in connections:
            connection.close()
        self.assert_serves()

    def test_pings_without_end_lose_their_connection(self):
        self.start()
        connection = self.connect()
        for _ in range(10):
            connection.ping()
            connection.pump(0.01)
        self.assertTrue(connection.await_true(lambda: connection.closed))
        self.assertEqual(connection.goaway, "too_many_pings")
        self.assert_serves()

    def test_a_body_that_stalls_ends_at_its_deadline_and_delays_nobody(self):
        self.start()
        connection = self.connect()
        for i in range(300):  # more than the calls of one method that are waited for
            connection.call(2 * i + 1, extra=[("grpc-timeout", "2S" if i == 0 else "1H")])
            connection.body(2 * i + 1, message(bytes(100), claimed=200))
        self.assert_serves()
        self.assertTrue(connection.await_true(lambda: connection.over(1)), "the deadline has no effect")
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(timeout=60), 0, "a stalled body keeps a drain from its end")

    def test_bodies_that_stall_are_ended_before_they_fill_the_memory(self):
        self.start("--max-message-bytes", "32MiB", "--max-incoming-bytes", "64MiB")
        before = self.resident_mib()
        connections = [self.connect() for _ in range(10)]
        for connection in connections:
            connection.call(1)
            connection.body(1, message(bytes(30 * MIB), claimed=31 * MIB))
        self.assertLess(self.resident_mib() - before, 150)  # 300 MiB were offered
        self.assert_serves()

    def test_memory_of_large_bodies_is_given_back(self):
        self.start("--max-message-bytes", "128MiB")
        before = self.resident_mib()
        for _ in range(2):  # and not the first time alone
            connection = self.connect()
            connection.call(1)
            connection.body(1, message(bytes(120 * MIB), claimed=121 * MIB))
            self.assertGreater(self.resident_mib() - before, 100)
            connection.close()
            end = time.monotonic() + 60
            while self.resident_mib() - before > 50 and time.monotonic() < end:
                time.sleep(0.1)
            self.assertLess(self.resident_mib() - before, 50)

    def test_a_compressed_body_is_refused_before_it_is_inflated(self):
        self.start()
        before = self.resident_mib()
        deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = b"".join(deflate.compress(bytes(16 * MIB)) for _ in range(16)) + deflate.flush()
        self.assertLess(len(bomb), MIB)  # of 256 MiB
        connection = self.connect()
        connection.call(1, extra=[("grpc-encoding", "gzip")])
        connection.body(1, message(bomb, compressed=True), end=True)
        self.assert_ended(connection, 1, UNIMPLEMENTED)
        self.assertLess(self.resident_mib() - before, 32)
        self.assert_serves()


unittest.main()
