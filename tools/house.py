"""house - the floors of a part of the project (a library, tools/duectl), for tools/tidy.

floors.txt there has a line "floors" with the folders, the lowest first; "." is the top itself.
Other lines are what is put up with: "include FILE HEADER", "call FILE FUNCTION", "circle SIZE".
"""

import os
import re
import subprocess

MAX_CIRCLE = 4


class House:
    """A top with its floors, and who calls whom in it."""

    def __init__(self, root, top, sources, objects):
        """@sources have a path and a text; @objects is where their objects are, or None."""
        self.root, self.top, self.list = root, top, top + "/floors.txt"
        self.objects = objects
        self.sources = [source for source in sources if source.path.startswith(top + "/")]
        self.order, self.known = [], {}
        with open(os.path.join(self.root, self.list), encoding="utf-8") as file:
            for number, line in enumerate(file):
                word, *rest = line.split("#")[0].split() or [""]
                if word == "floors":
                    self.order = rest
                elif word:
                    self.known[(word, *rest)] = number
        self.calls = list(self.find_calls()) if self.objects else []

    def within(self, path):
        return os.path.relpath(path, self.top)

    def floor(self, path):
        return os.path.dirname(self.within(path)) or "."

    def is_above(self, path, mine):
        floor, below = self.floor(path), self.floor(mine)
        return floor in self.order and below in self.order and \
            self.order.index(floor) > self.order.index(below)

    def includes_upward(self):
        for source in self.sources:
            for header in re.findall(r'(?m)^\s*#\s*include "([\w/.]+)"', source.text):
                there = os.path.join(self.top, header)
                if os.path.exists(os.path.join(self.root, there)) and \
                        self.is_above(there, source.path):
                    yield ("include", self.within(source.path), header), source

    def find_calls(self):
        """Who uses what of whom: two sources and a name."""
        defined, wanted = {}, []
        for source in self.sources:
            there = os.path.join(self.objects, self.within(source.path) + ".o")
            if not os.path.exists(there):
                continue
            for line in subprocess.run(["nm", there], capture_output=True, text=True,
                                       check=True).stdout.splitlines():
                kind, name = line.split()[-2:]
                if kind == "U":
                    wanted.append((source, name))
                elif kind in "TDRBV":
                    defined[name] = source
        return ((source, name, defined[name]) for source, name in wanted if name in defined)

    def calls_upward(self):
        for source, name, there in self.calls:
            if self.is_above(there.path, source.path):
                yield ("call", self.within(source.path), name), source

    def circles(self):
        """The size of the largest circle, if it has too many files, and the first of them.  Two
        files are of one if each reaches the other."""
        to = {}
        for source, _, there in self.calls:
            to.setdefault(source, set()).add(there)
        reach = {source: self.reached(to, source) for source in to}
        left, largest = sorted(to, key=lambda source: source.path), []
        while left:
            circle = [other for other in left
                      if other in reach[left[0]] and left[0] in reach[other]]
            largest = max(largest, circle, key=len)
            left = [source for source in left[1:] if source not in circle]
        if len(largest) > MAX_CIRCLE:
            yield ("circle", str(len(largest))), largest[0]

    @staticmethod
    def reached(to, source):
        found, ahead = set(), [source]
        while ahead:
            for there in to.get(ahead.pop(), ()):
                if there not in found:
                    found.add(there)
                    ahead.append(there)
        return found
