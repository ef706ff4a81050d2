"""explored.py - mutants of what threads share, in the interleaving explorer.

What the tests of one interleaving cannot see, a scenario may.  Those are tried which see the faults
planted by hand in the same file (tests/explore/mutants.txt).
"""

import collections
import importlib.machinery
import importlib.util
import os
import re
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXPLORE = os.path.join(HERE, "..", "explore")
SHARED = re.compile(
    r"\bdue__(?:load|store|xchg|add|sub|or|and|cas|bell|lock|tenure|word|facts)_?\w*\(")


def run_mutants():
    """What plants faults by hand knows how to compile the explorer."""
    path = os.path.join(EXPLORE, "run_mutants")
    loader = importlib.machinery.SourceFileLoader("run_mutants", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_mutants", loader))
    loader.exec_module(module)
    return module


def scenarios_by_file(mutants):
    """Of each file the scenarios that see the faults planted there by hand, the best first."""
    seen = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        for file, _, _ in mutant.changes:
            seen[file].update(mutant.scenarios)
    return {file: [name for name, _ in count.most_common()] for file, count in seen.items()}


class Explorer:
    def __init__(self, build):
        self.root, self.runner = build.root, run_mutants()
        self.build = self.runner.read_build(
            os.path.join(build.dir, "tests", "explore", "mutants.build"))
        self.objects = {self.runner.source_of(o) for o in self.build["subject"]}
        self.scenarios = scenarios_by_file(
            self.runner.read_mutants(os.path.join(EXPLORE, "mutants.txt")))

    def knows(self, mutant):
        """Is it about what threads share, or a call that may ring one, in a file that is
        explored?"""
        name = mutant.file.removeprefix("src/")
        return (mutant.file.startswith("src/") and name in self.objects and
                name in self.scenarios and
                (mutant.rule in ("order", "call") or SHARED.search(mutant.old_line) is not None))

    def try_mutant(self, mutant, texts):
        """The scenario that sees it, and what it says; or None, and those that do not."""
        name = mutant.file.removeprefix("src/")
        with tempfile.TemporaryDirectory(prefix="due_mutant_") as directory:
            for file, text in texts.items():
                if file.startswith("src/"):
                    to = os.path.join(directory, file.removeprefix("src/"))
                    os.makedirs(os.path.dirname(to), exist_ok=True)
                    with open(to, "w", encoding="utf-8") as opened:
                        opened.write(mutant.plant(text) if file == mutant.file else text)
            planted = self.runner.Mutant(mutant.id, mutant.line)
            planted.change(name)
            program, why = self.runner.compile_mutant(planted, self.build, directory, "-O0")
            if program is None:
                return None, why
            hows = []
            for scenario in self.scenarios[name]:
                killed, how = self.runner.explore(program, scenario, "--quick")
                if killed:
                    return f"explore: {scenario}", how
                hows.append(how)
        return None, "; ".join(hows)
