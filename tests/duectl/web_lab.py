"""web_lab - a running `duectl web`, and requests to it as bytes."""
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time

failures = 0


def check(fine, *what):
    """Say what is wrong, and go on."""
    global failures
    if not fine:
        failures += 1
        print("FAILED:", *what, flush=True)
    return fine


class Answer:
    def __init__(self, raw):
        self.raw = raw
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1]) if first.startswith("HTTP/1.1 ") else 0
        self.headers = {name.lower(): value.strip()
                        for name, _, value in (line.partition(":") for line in rest)}

    def lines(self):
        """Of JSON; the last one has how it ended."""
        text = self.body.decode("utf-8")
        return [json.loads(line) for line in text.split("\n") if line]

    def named(self, name):
        return [line for line in self.lines() if name in line]


class Web:
    """Started with these arguments; served at self.url."""

    def __init__(self, duectl, *arguments, environment=None):
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [duectl, "web", *arguments], stdout=subprocess.PIPE, stderr=self.said,
            stdin=subprocess.DEVNULL, env=dict(os.environ, **(environment or {})))
        atexit.register(self.process.kill)  # where a test breaks off
        ready = select.select([self.process.stdout], [], [], 60)[0]
        self.url = self.process.stdout.readline().decode().strip() if ready else ""
        if self.url:
            self.port = int(self.url.split(":")[2].split("/")[0])
            self.token = self.url.split("/")[3]
            self.host = f"127.0.0.1:{self.port}"

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def raw(self, request):
        """Send these bytes; what comes back."""
        with self.connect() as s:
            got = b""
            try:
                s.sendall(request)
                part = s.recv(1 << 16)
                while part:
                    got += part
                    part = s.recv(1 << 16)
            except ConnectionError:
                pass
            return Answer(got)

    def ask(self, path, method="GET", body=b"", host=None, **headers):
        """@path is below the token, unless it begins with a slash; None leaves a header out."""
        where = path if path.startswith("/") else f"/{self.token}/{path}"
        all_headers = {"Host": host or self.host, "Connection": "close"}
        if method == "POST":
            all_headers.update({"Content-Length": str(len(body)), "Origin": f"http://{self.host}",
                                "Content-Type": "application/json"})
        all_headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        head = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items()
                       if value is not None)
        return self.raw(f"{method} {where} HTTP/1.1\r\n{head}\r\n".encode() + body)

    def change(self, request, **headers):
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        return self.ask("api/change", "POST", body, **headers)

    def until(self, path, fine):
        """Ask until the answer is so."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            answer = self.ask(path)
            if fine(answer):
                return answer
            time.sleep(0.05)
        check(False, path, "never came so:", answer.body[:2000])
        return answer

    def errors(self):
        self.said.seek(0)
        return self.said.read()

    def stop(self, number=signal.SIGTERM):
        """How it ends, when this signal comes."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            check(False, "it does not end")
            return self.process.wait()


def run(duectl, *arguments, text=b"", status=0):
    """Run duectl to its end: what it has printed."""
    done = subprocess.run([duectl, *arguments], input=text, capture_output=True, timeout=120,
                          check=False)
    check(done.returncode == status, arguments, "status", done.returncode, "not", status,
          done.stderr[-500:])
    return done.stdout
