"""slow_server SERVER PATH RATE - a way to the server's UNIX socket, at PATH, by which so many bytes
a second come back at most."""
import os
import socket
import sys
import threading
import time

server, path, rate = sys.argv[1], sys.argv[2], int(sys.argv[3])


def carry(source, to, a_second):
    try:
        while True:
            data = source.recv(8192)
            if not data:
                break
            to.sendall(data)
            if a_second:
                time.sleep(len(data) / a_second)
    except OSError:
        pass
    for end in (source, to):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


listener = socket.socket(socket.AF_UNIX)
listener.bind(path + ".new")
listener.listen(16)
os.rename(path + ".new", path)
while True:
    client = listener.accept()[0]
    behind = socket.socket(socket.AF_UNIX)
    behind.connect(server)
    threading.Thread(target=carry, args=(client, behind, 0), daemon=True).start()
    threading.Thread(target=carry, args=(behind, client, rate), daemon=True).start()
