#!/usr/bin/env python3
"""tools/mutants: each rule plants what it says, and nothing else; a fault that a test sees is
killed, one that none sees survives, one that changes nothing is known at once."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import build as building  # noqa: E402
import explored  # noqa: E402
import reach  # noqa: E402
import report  # noqa: E402
import rules  # noqa: E402
import trial  # noqa: E402

BODY = """\
/* if (a < b) in a comment */
#include <assert.h>
#define ROOM 20
int least(int a, int b)
{
    assert(a != 17);
%s
    return a;
}
"""

HEADER = """\
int room_least(int a, int b);
int room_next(int a);
int room_never(int a);
int room_days(int month);
"""

LIBRARY = """\
#include "room.h"

#include <stdlib.h>

int room_used; /* of 3 */
volatile char *room_copy;

static void count(void)
{
    room_used++;
}

int room_least(int a, int b)
{
    if (a < b)
        return a;
    count();
    (void)(a == b);
    return b;
}

int room_next(int a)
{
    room_copy = malloc(8);
    room_copy[7] = 5;
    free((void *)room_copy);
    return a + 1;
}

int room_never(int a)
{
    return a + 1;
}

int room_days(int month)
{
    static const int days[] = { 31, 28 };

    return days[month];
}
"""

TEST = """\
#include "room.h"

int main(void)
{
    return room_least(1, 2) == 1 && room_least(5, 4) == 4 && room_next(6) == 7 &&
           room_days(0) == 31 && room_days(1) == 28 ? 0 : 1;
}
"""


def found(body):
    """What is planted in these lines, as (rule, new line)."""
    return [(m.rule, m.new_line) for m in rules.mutants_of("src/x.c", BODY % body)
            if m.constant is None]


class Rules(unittest.TestCase):
    def test_relation(self):
        self.assertEqual(found("    a = a < b;"), [("relation", "a = a <= b;")])
        self.assertEqual(found("    a = !b && a;"),
                         [("relation", "a = b && a;"), ("relation", "a = !b || a;")])

    def test_one(self):
        self.assertEqual(found("    a = b - 1;"), [("one", "a = b - 0;")])
        self.assertEqual(found("    a = 0;"), [("one", "a = 1;")])
        self.assertEqual(found("    a++;"), [("one", ";")])

    def test_constant(self):
        self.assertEqual(found("    a = b + 10u;"), [("constant", "a = b + 20u;")])
        self.assertEqual([m.new_line for m in rules.mutants_of("src/x.c", BODY % "    a = ROOM;")],
                         ["#define ROOM 40"])
        self.assertEqual(found("    char text[20];"), [])

    def test_call(self):
        self.assertEqual(found("    f(a, g(b));"), [("call", ";")])
        self.assertEqual(found("    if (a)\n        it->f(a);"), [("call", ";")])
        self.assertEqual(found("    a = f(b);"), [])
        self.assertEqual(found("    assert(f(b));"), [])
        self.assertEqual(found("    __builtin_prefetch(&a, 1);"), [])

    def test_order(self):
        self.assertEqual(found("    due__store_seq(&a, b);"),
                         [("order", "due__store_release(&a, b);"), ("call", ";")])

    def test_swap(self):
        self.assertEqual(found("    a = f(b);\n    b = g(a);"),
                         [("swap", "b = g(a); a = f(b);")])
        self.assertEqual(found("    a = b;\n    c = d;"), [])
        self.assertEqual(found("    a = (int)(b);\n    c = d;"), [])
        self.assertEqual(found("    int a = f(b);\n    b = g(a);"), [])

    def test_names_stay_when_lines_move(self):
        body = "    a = a < b;\n    a = a < b;"
        before = rules.mutants_of("src/x.c", BODY % body)
        after = rules.mutants_of("src/x.c", "\n\n" + BODY % body)
        self.assertEqual([m.id for m in before], [m.id for m in after])
        self.assertEqual(len({m.id for m in before}), len(before))


class Tiny(building.Build):
    """Two small libraries and a test, as the preset would make them."""

    def make(self, programs=()):
        for folder in building.FOLDERS:
            os.makedirs(os.path.join(self.root, folder))
            os.makedirs(os.path.join(self.dir, folder))
        os.makedirs(os.path.join(self.root, "include", "due"))
        self.write("src/room.h", HEADER)
        self.write("src/room.c", LIBRARY)
        self.write("persist/other.c", "int other_room(void)\n{\n    return 2;\n}\n")
        self.write("test.c", TEST)
        for room, path in building.LIBRARIES.items():
            file = "src/room.c" if room == "src" else "persist/other.c"
            name = os.path.basename(path)
            self.compiled[file] = ["gcc", "-O1", "-fPIC", f"-I{self.root}/src"]
            self.libraries[room] = {"path": path, "objects": {file: f"{room}.o"},
                                    "link": ["gcc", "-shared", f"-Wl,-soname,{name}"],
                                    "with": []}
            self.compile(file, os.path.join(self.dir, f"{room}.o"))
            self.link(room, os.path.join(self.dir, path))
        subprocess.run(["gcc", "-I", f"{self.root}/src", "-o", f"{self.dir}/test_room",
                        f"{self.root}/test.c", f"{self.dir}/src/libdue.so"], check=True)

    def write(self, file, text):
        with open(os.path.join(self.root, file), "w", encoding="utf-8") as opened:
            opened.write(text)

    def programs(self):
        return [building.Program("test_room", "model", [os.path.join(self.dir, "test_room")])]


class Trial(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="due_mutants_test_")
        cls.build = Tiny(cls.root)
        cls.build.make()
        cls.tests = reach.read_map(cls.build, cls.build.programs(), 1, lambda text: None)
        texts = {}
        for file in building.sources(cls.root):
            with open(os.path.join(cls.root, file), encoding="utf-8") as opened:
                texts[file] = opened.read()
        cls.worker = trial.Worker(cls.build, cls.tests, argparse.Namespace(budget=None, near=None),
                                  texts)
        cls.mutants = rules.mutants_of("src/room.c", LIBRARY)

    @classmethod
    def tearDownClass(cls):
        cls.worker.close()
        shutil.rmtree(cls.root)

    def outcome(self, function, old, new):
        mutant = next(m for m in self.mutants
                      if (m.function, m.old_line, m.new_line) == (function, old, new))
        return self.worker.try_mutant(mutant, None).how

    def test_what_a_test_sees_is_killed(self):
        self.assertEqual(self.outcome("room_next", "return a + 1;", "return a + 0;"), trial.KILLED)

    def test_what_only_a_sanitizer_sees_is_killed(self):
        self.assertEqual(self.outcome("room_next", "room_copy[7] = 5;", "room_copy[14] = 5;"),
                         trial.KILLED)

    def test_what_none_sees_survives(self):
        self.assertEqual(self.outcome("room_least", "if (a < b)", "if (a <= b)"), trial.SURVIVED)
        self.assertEqual(self.outcome("room_least", "count();", ";"), trial.SURVIVED)

    def test_what_none_reaches_is_told(self):
        self.assertEqual(self.outcome("room_never", "return a + 1;", "return a + 0;"),
                         trial.UNREACHED)

    def test_a_static_array_is_reached_by_what_stands_behind_it(self):
        line = "static const int days[] = { %s, 28 };"
        self.assertEqual(self.outcome("room_days", line % 31, line % 62), trial.KILLED)

    def test_what_changes_nothing_is_known(self):
        self.assertEqual(self.outcome("room_least", "(void)(a == b);", "(void)(a != b);"),
                         trial.SAME)

    def test_the_table_has_them_all(self):
        table = report.Table()
        for mutant in self.mutants:
            table.add(mutant, self.worker.try_mutant(mutant, None).how)
        row = table.total()
        self.assertEqual((row.planted, row.killed, row.survived, row.unreached, row.equivalent),
                         (14, 6, 6, 1, 1))
        self.assertAlmostEqual(row.score(), 600 / 13)


class Reach(unittest.TestCase):
    TEXT = """Contents of the .debug_line section:

CU: /there/src/job/claim.c:
File name                            Line number    Starting address    View    Stmt
claim.c                                       32              0xfa71               x
queue.h                                        7              0xfa7e               x

CU: /there/persist/redis/claim.c:
File name                            Line number    Starting address    View    Stmt
claim.c                                       33              0xfa92               x
stdio.h                                        9              0xfa9f               x
"""

    def test_files_of_one_name_are_told_apart(self):
        files = ["persist/redis/claim.c", "src/job/claim.c", "src/queue/queue.h"]
        self.assertEqual(list(reach.Blocks.rows(self.TEXT, files)),
                         [(0xfa71, "src/job/claim.c", 32), (0xfa7e, "src/queue/queue.h", 7),
                          (0xfa92, "persist/redis/claim.c", 33), (0xfa9f, "", 9)])


class Explored(unittest.TestCase):
    def test_files_of_the_faults_planted_by_hand_have_their_scenarios(self):
        runner = explored.run_mutants()
        planted = runner.read_mutants(os.path.join(explored.EXPLORE, "mutants.txt"))
        scenarios = explored.scenarios_by_file(planted)
        for mutant in planted:
            for file, _, _ in mutant.changes:
                self.assertTrue(set(mutant.scenarios) <= set(scenarios[file]))

    def test_a_fault_is_compiled_into_its_own_file_only(self):
        runner = explored.run_mutants()
        planted = runner.Mutant("job/lease.c:call:0", 1)
        planted.change("job/lease.c")
        self.assertEqual(planted.files(), {"job/lease.c"})

    def test_a_fault_is_handed_to_what_compiles_the_explorer_as_that_wants_it(self):
        explorer = explored.Explorer.__new__(explored.Explorer)
        explorer.runner, explorer.build = explored.run_mutants(), {}
        explorer.runner.compile_mutant = unittest.mock.create_autospec(
            explorer.runner.compile_mutant, return_value=(None, "it does not compile"))
        text = "int f(int a)\n{\n    return a < 2;\n}\n"
        mutant = rules.mutants_of("src/job/lease.c", text)[0]
        self.assertEqual(explorer.try_mutant(mutant, {mutant.file: text}),
                         (None, "it does not compile"))


if __name__ == "__main__":
    unittest.main()
