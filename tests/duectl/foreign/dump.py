#!/usr/bin/env python3
"""dump.py SOCKET - all that the server at this UNIX socket holds, as lines for redis-cli, which
make the same again: byte for byte, but for streams, times to live and stack traces."""
import os
import socket
import sys


def quoted(data):
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}"
                         for b in data) + '"'


class Server:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        if "REDISCLI_AUTH" in os.environ:
            self.ask("AUTH", os.environ["REDISCLI_AUTH"])

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else word.encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) +
                            b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.answer()

    def answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2]
        if kind == b"-":
            sys.exit(rest.decode())
        return rest


def fields(words):
    pairs = sorted(zip(words[::2], words[1::2]))
    return [word for pair in pairs if pair[0] != b"stacktrace" for word in pair]


def main():
    server = Server(sys.argv[1])
    reads = {
        b"string": ("SET", lambda key: [server.ask("GET", key)]),
        b"list": ("RPUSH", lambda key: server.ask("LRANGE", key, "0", "-1")),
        b"set": ("SADD", lambda key: sorted(server.ask("SMEMBERS", key))),
        b"hash": ("HSET", lambda key: fields(server.ask("HGETALL", key))),
        b"zset": ("ZADD", lambda key: server.ask("ZRANGE", key, "0", "-1", "WITHSCORES")),
    }
    for key in sorted(server.ask("KEYS", "*")):
        kind = server.ask("TYPE", key)
        if kind not in reads:
            continue
        command, read = reads[kind]
        words = read(key)
        if kind == b"zset":
            words = [word for i in range(0, len(words), 2) for word in (words[i + 1], words[i])]
        print(command, quoted(key), *map(quoted, words))


main()
