"""The command line of bench/run."""

import argparse
import os
import signal
import subprocess
import sys

from runner import (cell, cell_counting, charts, check, counting, document, environment, plan,
                    programs, records, table, targets)
from runner.records import Files
from runner.rounds import Progress, run_group

FINE, WRONG, USAGE, STOPPED = 0, 1, 2, 130


def parser():
    """What the command line may hold."""
    made = argparse.ArgumentParser(
        prog="bench/run", description="Compare libdue with what else could be used, in one run on "
        "this machine. The programs must have been built; those in other languages are built if "
        "their tools are there.",
        epilog="Exit status: 0 all is well; 1 a cell was wrong or a target was missed; 2 wrong "
        "usage, or nothing to run.")
    add = made.add_argument
    add("--build", metavar="DIR", help="build directory (build/release)")
    size = made.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick",
                      help="a subset with smaller sizes, about two minutes (the default)")
    size.add_argument("--full", dest="size", action="store_const", const="full",
                      help="everything, with larger sizes, and instructions: about half an hour")
    size.add_argument("--tiny", dest="size", action="store_const", const="tiny",
                      help="one run of the smallest sizes: shows that it works, measures nothing")
    add("--workload", action="append", default=[], metavar="W", help="only this; may be repeated")
    add("--subject", action="append", default=[], metavar="S", help="only this; may be repeated")
    add("--group", action="append", default=[], metavar="G",
        help="only this group, such as \"through 2\"; may be repeated")
    add("--runs", type=positive, metavar="N", help="rounds of each group")
    add("--pin", action="store_true", help="every cell on one core")
    add("--check", action="store_true", help="run what the targets need, say which are met")
    add("--json", metavar="FILE", help="write one object a line")
    add("--csv", metavar="FILE")
    add("--markdown", metavar="FILE", help="write the tables as markdown")
    add("--svg", metavar="DIR", help="draw pictures, with gnuplot")
    add("--document", metavar="FILE", help="write the figures between the marks of this page")
    add("--count", action="store_true", help="count instructions of the cells too, with valgrind")
    add("--from", dest="earlier", metavar="FILE", help="run nothing: check, draw and write what "
        "--json has written")
    add("--no-build", action="store_true", help="do not build the rivals in other languages")
    add("--list", action="store_true", help="say which subjects and groups there are, run nothing")
    made.set_defaults(size="quick")
    return made


def positive(text):
    """A number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("a number from 1")
    return int(text)


def say(text):
    """A message on standard error."""
    print(text, file=sys.stderr, flush=True)


def complain(text):
    """Wrong usage."""
    say(f"bench/run: {text}")
    return USAGE


def select(options):
    """The groups of this run."""
    needed = targets.groups_needed(options.size) if options.check else None
    return plan.chosen(options.size, needed, options.workload, options.subject, options.group)


def unknown_words(options):
    """What is wrong with the workloads and subjects that were named; or None."""
    everything = plan.every_group("full")
    known = {"workload": {one.workload for one in everything},
             "group": {one.name for one in plan.every_group(options.size)},
             "subject": {member.subject for one in everything for _, member in one.contenders}}
    for name, words in known.items():
        for word in getattr(options, name):
            if word not in words:
                return f"no {name} is called {word}; there are: {', '.join(sorted(words))}"
    return None


def write_markdown(path, lines, results):
    """Environment and tables into a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("```text\n" + "\n".join(lines) + "\n```\n\n")
        file.write("\n".join(table.markdown(one) for one in results))


def measure(options, groups, subjects, absent, files):
    """Run every group, printing each table as soon as it is there: {name: result}."""
    runs = options.runs or plan.SIZES[options.size].runs
    progress = Progress(groups, runs, subjects)
    results = {}
    for group in groups:
        result = run_group(group, runs, subjects, lambda name: programs.home(name, absent),
                           progress, options.pin)
        results[group.name] = result
        print(table.text(result), flush=True)
        files.add(result)
    return results


def count_all(options, build, subjects, say_it):
    """Instructions: those of the cells, and those that targets are about, as a group."""
    cells = {}
    if options.count or options.size == "full":
        cells = cell_counting.count(subjects, say_it)
    group = {}
    if options.check:
        try:
            group = counting.as_result(targets.COUNTED, counting.count(build))
        except (SystemExit, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            say_it(f"no instructions of bench/instructions: {str(error)[:200]}")
    return cells, group


def written(what, action):
    """Do it; what goes wrong is said, and the rest goes on.  Did it go well?"""
    try:
        action()
        return True
    except Exception as error:  # pylint: disable=broad-except
        say(f"bench/run: error: {what}: {type(error).__name__}: {error}")
        return False


def conclude(options, surroundings, lines, results, counted):
    """Pictures, markdown, errors and the check: the exit status.  @counted: see count_all()."""
    cells, group = counted
    fine = True
    parts = {}
    if options.check or options.document:
        known = {**results, **({targets.COUNTED: group} if group else {})}
        parts = check.judge_all(options.size, known, surroundings["abilities"])
    if options.markdown:
        fine &= written(options.markdown,
                        lambda: write_markdown(options.markdown, lines, results.values()))
    if options.document:
        text = document.figures(surroundings, results, parts, cells)
        fine &= written(options.document, lambda: document.rewrite(options.document, text))
    if options.svg:
        fine &= written(options.svg, lambda: charts.draw(results, cells, options.svg, say))
    disturbed = [name for name, one in results.items() if one["disturbed"]]
    if disturbed:
        print(f"Disturbed by other programs, measure again: {', '.join(disturbed)}\n")
    missed = False
    if options.check:
        text, missed = check.report(parts)
        print(text, end="")
        if options.size != "full":
            print(f"The targets were set at the sizes of --full; this was --{options.size}.")
    errors = [error for one in results.values() for error in one["errors"]]
    for error in errors:
        say(f"bench/run: error: {error}")
    return FINE if fine and not errors and not missed else WRONG


def run_again(options):
    """Check, draw and write the results of an earlier run."""
    surroundings, results, cells, group = records.load(options.earlier)
    options.size = surroundings["size"]
    lines = table.environment_lines(surroundings, {})
    return conclude(options, surroundings, lines, results, (cells, group))


def run(options, sources, build):
    """Everything that a run consists of: the exit status."""
    groups = select(options)
    if not groups:
        return complain("no group is left to run")
    wanted = {member.subject.split("-")[0] for one in groups for member in one.contenders}
    subjects, absent = programs.gather(sources, build, not options.no_build,
                                       wanted.__contains__, say)
    if "libdue" not in subjects:
        return complain(f"there is no bench_cell in {build}; build it with: cmake --preset release "
                        "&& cmake --build --preset release")
    if options.list:
        print("\n".join(table.subject_lines(subjects)))
        print("\n".join(f"absent: {name}: {reason}" for name, reason in absent.items()))
        print("\n".join(f"group: {one.name}" for one in groups))
        return FINE
    return run_groups(options, sources, build, groups, subjects, absent)


def run_groups(options, sources, build, groups, subjects, absent):
    """Describe, measure, conclude."""
    taking_part = {member.subject for one in groups for member in one.contenders}
    part = {name: one for name, one in subjects.items() if name in taking_part}
    surroundings = environment.describe(build, sources, part, options.size)
    surroundings["abilities"] = {name: one["abilities"] for name, one in subjects.items()}
    lines = table.environment_lines(surroundings, absent) + [""] + table.subject_lines(part)
    print("\n".join(lines) + "\n", flush=True)
    files = Files(options.json, options.csv, surroundings)
    results, counted = {}, ({}, {})
    try:
        results = measure(options, groups, subjects, absent, files)
        counted = count_all(options, build, part, say)
        files.count(*counted)
    finally:
        files.close()
    return conclude(options, surroundings, lines, results, counted)


class Stopped(KeyboardInterrupt):
    """A signal has come: its number."""


def stop(number, _):
    """What runs is killed on the way out, as at an interrupt from the keyboard."""
    raise Stopped(number)


def heed_signals():
    """What was ignored from the beginning stays so."""
    for number in cell.STOPS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


def main(words, sources, place):
    """The command line: the exit status.  @sources: where this runner lies; @place: where it was
    called, which may be a link in a build directory."""
    options = parser().parse_args(words)
    wrong = unknown_words(options)
    if wrong:
        return complain(wrong)
    heed_signals()
    build = os.path.abspath(options.build or programs.default_build(place))
    try:
        return run_again(options) if options.earlier else run(options, sources, build)
    except Stopped as stopped:
        say("\nbench/run: stopped")
        return 128 + stopped.args[0]
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STOPPED
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return complain(str(error))
