"""Runs the cells of each group interleaved, A B C, B C A, ..., and says how far it is."""

import sys

from runner import cell
from runner.environment import moment, neighbours_percent
from runner.programs import LANGUAGES, SHARED
from runner.results import summary

GUESS_S = {"lateness": 1.5, "handoff": 1.0, "burst": 1.5}
GUESS_FOREIGN_S, GUESS_OTHER_S = 2.5, 0.5


class Progress:
    """A line on standard error: rewritten on a terminal, else one for each group."""

    def __init__(self, groups, runs, subjects, stream=sys.stderr):
        self.stream, self.terminal = stream, stream.isatty()
        self.took, self.guessed = 1.0, 1.0
        self.left = {(group.name, member.label): runs if member.subject in subjects else 0
                     for group in groups for member in group.contenders}
        self.guess = {(group.name, member.label): self.first_guess(group, member)
                      for group in groups for member in group.contenders}

    @staticmethod
    def first_guess(group, member):
        """Seconds that a cell may take, before it was ever run."""
        if member.subject.split("-")[0] in LANGUAGES + SHARED:
            return GUESS_FOREIGN_S
        return GUESS_S.get(group.workload, GUESS_OTHER_S)

    def done(self, name, label, seconds, for_good):
        """A cell took so long; @for_good: it is not started again."""
        self.took += seconds
        self.guessed += self.guess[name, label]
        self.left[name, label] = 0 if for_good else self.left[name, label] - 1

    def time_left(self):
        """How long the rest may take, for people."""
        seconds = sum(count * self.guess[key] for key, count in self.left.items())
        seconds *= self.took / self.guessed
        if seconds < 90:
            return f"{seconds:.0f} s left"
        return f"{seconds / 60:.0f} min left"

    def say(self, text):
        """Something that stays."""
        erase = "\r\033[K" if self.terminal else ""
        print(f"{erase}{text}", file=self.stream, flush=True)

    def show(self, text):
        """What is running now, on a terminal."""
        if self.terminal:
            line = f"{text}; about {self.time_left()}"[:100]
            print(f"\r\033[K{line}", end="", file=self.stream, flush=True)

    def erase(self):
        """Before something else is written to the terminal."""
        if self.terminal:
            print("\r\033[K", end="", file=self.stream, flush=True)


def start_cell(group, member, subjects, absent_reason, pinned):
    """Run one cell once, or say why it cannot be."""
    if member.subject not in subjects:
        return cell.outcome("cannot", absent_reason(member.subject), 0.0)
    params = {**group.params, **member.params, **({"pin": True} if pinned else {})}
    program = subjects[member.subject]["program"]
    return cell.run(program, group.workload, member.subject, params)


def run_group(group, runs, subjects, absent_reason, progress, pinned=False):
    """All rounds of a group: its result.  Who cannot, or fails, is not asked again."""
    outcomes = {member.label: [] for member in group.contenders}
    neighbours, gone = [], set()
    first = moment()
    for number in range(runs):
        before = moment()
        turn = number % len(group.contenders)
        for member in group.contenders[turn:] + group.contenders[:turn]:
            if member.label in gone:
                outcomes[member.label].append(None)
                continue
            progress.show(f"{group.name}: round {number + 1} of {runs}: {member.label}")
            found = start_cell(group, member, subjects, absent_reason, pinned)
            outcomes[member.label].append(found)
            failed = found["status"] != "ok"
            if failed:
                gone.add(member.label)
            progress.done(group.name, member.label, found["seconds"], failed)
        neighbours.append(neighbours_percent(before, moment()))
    last = moment()
    took = last[0] - first[0]
    progress.erase()
    if not progress.terminal:
        progress.say(f"{group.name}: {len(group.contenders)} contenders, {runs} rounds, "
                     f"{took:.1f} s; about {progress.time_left()}")
    return summary(group, outcomes, neighbours, neighbours_percent(first, last))
