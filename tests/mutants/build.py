"""build.py - the build that mutants are tried in: preset `mutants`, where the test programs use the
libraries as shared ones, and another can be put in their place.

Nothing is said twice: how files are compiled and linked is asked of ninja, what the tests are of
ctest.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDERS = ("src", "persist", "control")
LIBRARIES = {"src": "src/libdue.so", "redis": "persist/libdue-redis.so",
             "sqlite": "persist/libdue-sqlite.so", "control": "control/libdue-control.so"}
LABELS = ("unit", "model", "liveness", "thread", "store", "redis")  # as they are tried
# A program once more, in another environment.
VARIANT = re.compile(
    r"^(test_\w+|stored_model|store_share_\w+)_(?:journal|plain|on_sqlite|on_redis|by_rank)$")
LEFT_OUT = re.compile(r"corpus_|symbols|consumer|redis_canary")


def output(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode != 0:
        raise SystemExit(f"mutants: failed: {' '.join(command)}")
    return done.stdout


def digest(*paths):
    summed = hashlib.sha1()
    for path in paths:
        with open(path, "rb") as file:
            summed.update(file.read())
    return summed.hexdigest()


def sources(root=ROOT):
    """The files in which faults are planted."""
    return sorted(os.path.relpath(os.path.join(folder, name), root) for top in FOLDERS
                  for folder, _, names in os.walk(os.path.join(root, top)) for name in names
                  if name.endswith((".c", ".h")))


class Program:
    """A test program as ctest runs it, in the environment that it is given there."""

    def __init__(self, name, label, command, environment=()):
        self.name, self.label, self.file = name, label, command[0]
        self.command = [*(["env", *environment] if environment else []), *command]
        self.is_criterion = label == "unit"


class Build:
    def __init__(self, root=ROOT):
        self.root = root
        self.dir = os.path.join(root, "build", "mutants")
        self.libraries = {}  # "src": where it is, its objects, and how it is linked
        self.compiled = {}  # file: how it is compiled, without input and output
        self.includes = {}  # header: the files that include it

    def make(self, programs=()):
        """Configure and build, all or these test programs, then look at what there is."""
        log = os.path.join(self.root, "build", "log")
        os.makedirs(log, exist_ok=True)
        with open(os.path.join(log, "mutants.log"), "w", encoding="utf-8") as out:
            files = {VARIANT.sub(r"\1", name) for name in programs}
            targets = ["--target", "src/all", "persist/all", "control/all",
                       *sorted(files)] if programs else []
            for command in (["cmake", "--preset", "mutants"],
                            ["cmake", "--build", "--preset", "mutants", *targets]):
                if subprocess.run(command, cwd=self.root, stdout=out, stderr=out,
                                  check=False).returncode != 0:
                    raise SystemExit("mutants: the build failed: see build/log/mutants.log")
        self.look()

    def look(self):
        for room, path in LIBRARIES.items():
            if not os.path.exists(os.path.join(self.dir, path)):
                continue
            folder = path.split("/")[0]
            made = output(["ninja", "-C", self.dir, "--quiet", "-t", "commands",
                           path]).splitlines()
            own = [shlex.split(line) for line in made if f" -c {self.root}/{folder}/" in line]
            for words in own:
                self.take_compile(words)
            link = shlex.split(made[-1].split("&&")[1])
            at = link.index("-o")
            objects = [w for w in link if w.endswith(".o")]
            self.libraries[room] = {
                "path": path, "objects": {self.file_of(o, folder): o for o in objects},
                "link": link[:at], "with": [w for w in link[at + 2:] if not w.endswith(".o")]}
        self.read_includes()

    def take_compile(self, words):
        if os.path.basename(words[0]) == "ccache":
            words = words[1:]
        source = os.path.relpath(words[words.index("-c") + 1], self.root)
        kept, skip = [], False
        for word in words:
            if skip or word in ("-MD", "-c"):
                skip = False
            elif word in ("-MT", "-MF", "-o"):
                skip = True
            elif not word.endswith(source):
                kept.append(word)
        self.compiled[source] = kept

    @staticmethod
    def file_of(path, folder):
        """src/CMakeFiles/due_objects.dir/os/clock.c.o is of src/os/clock.c."""
        return re.sub(r".*CMakeFiles/\w+\.dir/", f"{folder}/", path)[:-2]

    def read_includes(self):
        found = output(["ninja", "-C", self.dir, "--quiet", "-t", "deps"])
        file = None
        for line in found.splitlines():
            if not line.startswith(" "):
                match = re.match(r"(src|persist|control)/CMakeFiles/\w+\.dir/([\w/]+\.c)\.o:", line)
                file = f"{match[1]}/{match[2]}" if match else None
            elif file is not None:
                header = os.path.relpath(os.path.join(self.dir, line.strip()), self.root)
                if header.endswith(".h") and header.split(os.sep)[0] in FOLDERS:
                    self.includes.setdefault(header, []).append(file)

    def affected(self, file):
        """What must be compiled again when it changes."""
        return [file] if file.endswith(".c") else sorted(self.includes.get(file, []))

    def name_of(self, room):
        return os.path.basename(self.libraries[room]["path"])

    def holds(self, room, file):
        """Is the file in this library?  What stores share is in each of theirs."""
        return file in self.libraries[room]["objects"]

    def compile(self, file, to, tree=None, flags=()):
        """Compile a file, from the copy of the tree if there is one.  Is there an object now?"""
        command = list(self.compiled[file])
        if tree is not None:
            moved = {f"-I{self.root}/{top}": f"-I{tree}/{top}" for top in FOLDERS}
            command = [moved.get(word, word) for word in command]
        source = os.path.join(tree or self.root, file)
        done = subprocess.run([*command, "-w", *flags, "-o", to, "-c", source], cwd=self.dir,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def link(self, room, to, objects=None, flags=()):
        """Link a library, with other objects than its own for some files."""
        library = self.libraries[room]
        chosen = [(objects or {}).get(f, o) for f, o in library["objects"].items()]
        done = subprocess.run([*library["link"], "-o", to, *chosen, *flags,
                               *library["with"]], cwd=self.dir,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def variant(self, name, flags, beside=None):
        """All libraries compiled once more with these flags.  beside(room): another object."""
        directory = os.path.join(self.dir, name)
        os.makedirs(directory, exist_ok=True)
        stamps_path = os.path.join(directory, "stamps.json")
        stamps = read_json(stamps_path)
        headers = [f for f in sources(self.root) if f.endswith(".h")]
        public = os.path.join(self.root, "include", "due")
        common = digest(*(os.path.join(self.root, f) for f in headers),
                        *sorted(os.path.join(public, f) for f in os.listdir(public)
                                if f.endswith(".h")))
        objects = self.variant_objects(name)
        stale = False
        for file in self.compiled:
            stamp = digest(os.path.join(self.root, file)) + common + " ".join(flags)
            if stamps.get(file) == stamp and os.path.exists(objects[file]):
                continue
            if not self.compile(file, objects[file], flags=flags):
                raise SystemExit(f"mutants: {file} does not compile with {' '.join(flags)}")
            stamps[file] = stamp
            stale = True
        for room in self.libraries:
            to = os.path.join(directory, self.name_of(room))
            extra = [beside(room, directory)] if beside is not None else []
            stamp = digest(*extra)
            if stale or stamps.get(room) != stamp or not os.path.exists(to):
                self.link(room, to, objects, [*extra, *flags])  # else another run may be using it
            stamps[room] = stamp
        with open(stamps_path, "w", encoding="utf-8") as file:
            json.dump(stamps, file)
        return directory

    def variant_objects(self, name):
        """What a variant is made of."""
        directory = os.path.join(self.dir, name)
        return {file: os.path.join(directory, file.replace("/", "_")[:-2] + ".o")
                for file in self.compiled}

    def programs(self):
        """The tests that mutants are tried with."""
        known = json.loads(output(["ctest", "--test-dir", self.dir, "--show-only=json-v1"]))
        found = []
        for test in known["tests"]:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            label = properties.get("LABELS", [""])[0]
            if label in LABELS and "command" in test and not LEFT_OUT.search(test["name"]):
                found.append(Program(test["name"], label, test["command"],
                                     properties.get("ENVIRONMENT", ())))
        return found


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}
