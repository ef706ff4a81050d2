"""web_driver - a headless Chromium, told what to do by the WebDriver protocol."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "--force-color-profile=srgb", "--hide-scrollbars",
             "--lang=en", "--host-resolver-rules=MAP elsewhere.example 127.0.0.1"]


def found():
    """The two programs, or None."""
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium")
    return (driver, browser) if driver and browser else None


class Browser:
    """A browser with an empty profile; close() ends it."""

    def __init__(self, size=(1320, 1000), dark=False):
        driver, browser = found()
        self.profile = tempfile.mkdtemp()
        self.log = tempfile.TemporaryFile()
        environment = dict(os.environ, HOME=self.profile, TZ="UTC", LC_ALL="C.UTF-8")
        environment.pop("DUE_STORE_URL", None)
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE,
                                       stderr=self.log, text=True, env=environment)
        self.base = None
        for line in self.driver.stdout:
            words = line.split()
            if "started successfully on port" in line:
                self.base = f"http://127.0.0.1:{words[-1].rstrip('.')}"
                break
        if self.base is None:
            sys.exit("chromedriver does not start")
        arguments = ARGUMENTS + [f"--user-data-dir={self.profile}/data",
                                 f"--window-size={size[0]},{size[1]}"]
        if dark:
            arguments.append("--force-dark-mode")
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "timeouts": {"script": 20000, "pageLoad": 60000},
            "goog:chromeOptions": {"binary": browser, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = "/session/" + made["sessionId"]

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.base + path, method=method, headers={"Content-Type": "application/json"},
            data=None if method != "POST" else json.dumps(body or {}).encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise AssertionError(f"{path}: {value['error']}: {value['message']}") from error

    def go(self, url):
        self.call("POST", self.session + "/url", {"url": url})

    def script(self, text, *arguments):
        return self.call("POST", self.session + "/execute/sync",
                         {"script": text, "args": list(arguments)})

    def until(self, text, *arguments, seconds=60):
        """What the script answers, once that is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.script(text, *arguments)
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"never: {text}")

    def click(self, selector):
        element = self.call("POST", self.session + "/element",
                            {"using": "css selector", "value": selector})
        self.call("POST", f"{self.session}/element/{element[ELEMENT]}/click")

    def write(self, selector, text):
        element = self.call("POST", self.session + "/element",
                            {"using": "css selector", "value": selector})
        place = f"{self.session}/element/{element[ELEMENT]}"
        self.call("POST", place + "/clear")
        self.call("POST", place + "/value", {"text": text})

    def complaints(self):
        """What stands in the browser's console."""
        return [entry["message"] for entry in
                self.call("POST", self.session + "/se/log", {"type": "browser"})]

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", self.session + "/screenshot")))

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)
