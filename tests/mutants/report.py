"""report.py - what has been found, by room and by folder; and mutants that are known to
change nothing."""

import math
import os
import sys

import trial

HERE = os.path.dirname(os.path.abspath(__file__))
EQUIVALENT = os.path.join(HERE, "equivalent.txt")
SURVIVORS = os.path.join(HERE, "survivors.txt")
DOUBT = 0.01  # a score is too low if chance alone makes it so no more often than this


class Reason:
    def __init__(self, name, line):
        self.id, self.line, self.old, self.new, self.why = name, line, "", "", []


def read_reasons(path=EQUIVALENT):
    reasons = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "" or word.startswith("#"):
                continue
            if word in ("equivalent", "survivor"):
                reason = Reason(rest, number)
                reasons[rest] = reason
            elif word == "-":
                reason.old = rest
            elif word == "+":
                reason.new = rest
            else:
                reason.why.append(line.strip())
    return reasons


def stale(reasons, mutants, path=EQUIVALENT):
    """Reasons whose mutant is not there, or reads differently, or which say nothing."""
    by_id = {m.id: m for m in mutants}
    for reason in reasons.values():
        mutant = by_id.get(reason.id)
        if mutant is None:
            yield f"{path}:{reason.line}: {reason.id} is no mutant"
        elif (mutant.old_line, mutant.new_line) != (reason.old, reason.new):
            yield f"{path}:{reason.line}: {reason.id} reads differently: {mutant.show()}"
        elif not reason.why and path == EQUIVALENT:
            yield f"{path}:{reason.line}: {reason.id} has no reason"


def chance(killed, of, share):
    """That so few are killed, or fewer, of so many drawn at random, where this share of all is."""
    return sum(math.exp(math.lgamma(of + 1) - math.lgamma(k + 1) - math.lgamma(of - k + 1) +
                        k * math.log(share) + (of - k) * math.log(1 - share))
               for k in range(killed + 1))


class Row:
    """What became of the mutants of a room."""

    def __init__(self):
        self.planted = self.killed = self.equivalent = self.survived = self.unreached = 0

    def add(self, how):
        if how == trial.BROKEN:
            return
        self.planted += 1
        self.killed += how == trial.KILLED
        self.equivalent += how == trial.SAME
        self.survived += how == trial.SURVIVED
        self.unreached += how == trial.UNREACHED

    def plus(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def different(self):
        return self.planted - self.equivalent

    def score(self):
        return 100.0 * self.killed / self.different() if self.different() else 100.0

    def is_under(self, least):
        """Is the score so low that a sample of a library with at least this is not?"""
        return 0 < least < 100 and chance(self.killed, self.different(), least / 100) < DOUBT

    def text(self, name):
        return (f"{name:<22}{self.planted:>8}{self.equivalent:>12}{self.killed:>8}"
                f"{self.survived:>10}{self.unreached:>11}{self.score():>8.1f}")


def head(name):
    return (f"{name:<22}{'planted':>8}{'equivalent':>12}{'killed':>8}{'survived':>10}"
            f"{'unreached':>11}{'score':>8}")


class Table:
    def __init__(self):
        self.rows = {}

    def add(self, mutant, how):
        self.rows.setdefault(trial.room_name(mutant.file), Row()).add(how)

    def total(self):
        total = Row()
        for row in self.rows.values():
            total.plus(row)
        return total

    def folders(self):
        found = {}
        for name, row in sorted(self.rows.items()):
            found.setdefault(os.path.dirname(name), Row()).plus(row)
        return found

    def show(self):
        print(head("room"))
        for name in sorted(self.rows, key=lambda n: (not n.startswith("src"), n)):
            print(self.rows[name].text(name))
        print("\n" + head("folder"))
        for name, row in self.folders().items():
            print(row.text(name))
        print(self.total().text("all"))

    def under(self, least):
        """What is under this score, as far as so many can tell."""
        rows = {**self.folders(), "all": self.total()}
        return [name for name, row in rows.items() if row.is_under(least)]


def tell_survivor(mutant, verdict):
    """As much as it takes to write the test that sees it, or the reason."""
    note = f" ({verdict.by})" if verdict.by else f", {verdict.tried} tests" if verdict.tried else ""
    print(f"{verdict.how.upper()}  {mutant.file}:{mutant.line} {mutant.function}{note}\n"
          f"  equivalent {mutant.id}\n  - {mutant.old_line}\n  + {mutant.new_line}", flush=True)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
