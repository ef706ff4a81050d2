#!/usr/bin/env python3
"""Each rule of tools/tidy finds what it is there for, and nothing in a tree that is in order."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TIDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "tidy")

HEADER = """\
/* due.h - a queue. */
#define DUE_ERRORS(X) X(EINVAL, 1, "") X(EBUSY, 2, "")

/**
 * Open it, or look at it.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL
 */
DUE_API int due_open(int a) DUE_MUST_CHECK;
DUE_API int due_look(int a);
"""

ROOM = """\
/* room.c - a room.
 *
 * Guards     I  set at open      T  the lock
 *
 * Edges      R1  put stores -> take loads
 */
struct due__room {
    int kind;  /* I */
    int *word; /* T  R1: what it means
                *    takes two lines */
    /* T  above */
    void (*call)(int, int);
};

/* Guard: none, a value. */
struct due__pair {
    int a;
};

void due__put(struct due__room *r)
{
    due__store_release(r->word, 1); /* R1 */
}

int due__take(struct due__room *r)
{
    /* R1: before anything else,
     * and so on. */
    return due__load_acquire(r->word);
}
"""


def tidy(files, rules, *more):
    """What tidy says of a tree with these files: a list of "FILE:LINE: MESSAGE"."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        answer = subprocess.run([sys.executable, TIDY, "--root", root, "--rules", rules, *more],
                                capture_output=True, text=True, check=False)
    found = [line for line in answer.stdout.split("\n") if "[rule " in line]
    assert answer.returncode == (1 if found else 0), answer.stdout + answer.stderr
    return found


def tree(room=ROOM, header=HEADER, more=()):
    return {"include/due/due.h": header, "src/room.c": room, **dict(more)}


class Rules(unittest.TestCase):
    def finds(self, files, rule, *expected):
        """Exactly these findings, in this order, each beginning so."""
        found = tidy(files, rule)
        self.assertEqual(len(found), len(expected), found)
        for line, begin in zip(found, expected):
            self.assertTrue(line.startswith(begin), f"{line!r} does not begin {begin!r}")

    def test_nothing_is_found_in_a_tree_in_order(self):
        self.finds(tree(), "1,2,3,4,5,6,9")

    def test_rule_1_wants_threads_and_errors(self):
        for label in ("Threads", "Errors"):
            self.finds(tree(header=HEADER.replace(label + ":", label)), "1",
                       f"include/due/due.h:10: due_open: its comment has no \"{label}:\"")

    def test_rule_1_wants_a_comment_at_all(self):
        self.finds(tree(header=HEADER + "\nDUE_API int due_bare(void);\n"), "1",
                   "include/due/due.h:13: due_bare: its comment has no \"Errors:\"",
                   "include/due/due.h:13: due_bare: its comment has no \"Threads:\"")

    def test_rule_1_knows_the_errors(self):
        self.finds(tree(header=HEADER.replace("DUE_EINVAL\n", "DUE_EINVAL, DUE_EOOPS\n")), "1",
                   "include/due/due.h:10: due_open: DUE_EOOPS is not in the list of errors")

    def test_rule_2_finds_a_false_name_in_a_comment(self):
        self.finds(tree(room=ROOM.replace("above", "due__gone() knows, due__putt too")), "2",
                   "src/room.c:11: due__gone is declared nowhere",
                   "src/room.c:11: due__putt is declared nowhere")

    def test_rule_2_finds_a_false_name_in_a_page(self):
        page = "One: `due_open`\nTwo: `due_opened()` and DUE_EBUSY\n"
        self.finds(tree(more={"README.md": page}), "2",
                   "README.md:2: due_opened is declared nowhere")

    def test_rule_2_takes_a_star_for_any_ending(self):
        self.finds(tree(more={"README.md": "due__pu*, due_*, DUE_E*; due_nothing_*\n"}), "2",
                   "README.md:1: due_nothing_* is declared nowhere")

    def test_rule_3_wants_an_edge_or_a_reason(self):
        self.finds(tree(room=ROOM.replace("1); /* R1 */", "1);")), "3",
                   "src/room.c:22: an atomic without its edge")
        self.finds(tree(room=ROOM.replace("1); /* R1 */", "1); /* no edge: ours */")), "3")

    def test_rule_3_wants_the_comment_near(self):
        far = ROOM.replace("     * and so on. */", "     * and so on. */\n    int a;\n\n    a = 1;")
        self.finds(tree(room=far), "3", "src/room.c:32: an atomic without its edge")

    def test_rule_3_takes_a_comment_in_the_statement(self):
        split = ROOM.replace("1); /* R1 */", "\n                       1); /* R1 */")
        self.finds(tree(room=split), "3")
        self.finds(tree(room=split.replace("1); /* R1 */", "1);\n    int a; /* R1 */")), "3",
                   "src/room.c:22: an atomic without its edge")

    def test_rule_3_wants_each_edge_described(self):
        self.finds(tree(room=ROOM.replace("1); /* R1 */", "1); /* R1, R2 */")), "3",
                   "src/room.c:22: R2 is not described in this file")
        self.finds(tree(room=ROOM.replace("1); /* R1 */", "1); /* R1, R1 of hall.c */")), "3",
                   "src/room.c:22: R1 is not described in hall.c")

    def test_rule_3_finds_edges_of_other_files(self):
        def other(head, use):
            text = f"/* other.c\n *\n * Edges  {head}\n */\nint a; /* {use} */\nint b; /* R1 */\n"
            return {**tree(), "src/other.c": text}
        self.finds(other("R1  of its own", "R1"), "3")
        self.finds(other("R1  of its own", "R1, R1 of room.c"), "3")
        self.finds(other("R1  see room.c", "R1"), "3")
        self.finds(other("R1  see hall.c", "R1"), "3",
                   "src/other.c:3: R1 is not described in hall.c")
        self.finds({**other("R1  of its own", "R1"), "src/third.c": "int c; /* R1 */\n"}, "3",
                   "src/third.c:1: R1 is not described in this file, nor in just one other")

    def test_rule_3_wants_both_ends(self):
        lonely = ROOM.replace("/* R1 */", "/* no edge: ours */").replace("T  R1:", "T")
        self.finds(tree(room=lonely), "3", "src/room.c:5: R1 is named 1 times")

    def test_rule_4_wants_a_guard_on_every_field(self):
        self.finds(tree(room=ROOM.replace("int kind;  /* I */", "int kind;")), "4",
                   "src/room.c:8: field kind has no guard")
        self.finds(tree(room=ROOM.replace("/* T  above */", "/* This is above. */")), "4",
                   "src/room.c:12: field call has no guard")
        self.finds(tree(room=ROOM.replace("/* Guard: none, a value. */", "")), "4",
                   "src/room.c:17: field a has no guard")

    def test_rule_4_knows_the_guards(self):
        self.finds(tree(room=ROOM.replace("/* I */", "/* Q */")), "4",
                   "src/room.c:8: field kind: no guard is called Q")

    def test_rule_4_wants_all_fields_or_none_where_there_is_no_legend(self):
        room = "struct a {\n    int a; /* T */\n    int b[3];\n};\nstruct b {\n    int c;\n};\n"
        self.finds(tree(room=room), "4", "src/room.c:3: field b has no guard")

    def test_rule_4_wants_numbers_of_64_bits_aligned_that_are_shared(self):
        room = "struct a {\n    uint64_t a; /* A */\n    int64_t\n        b[2]; /* A  E1 */\n%s};\n"
        fine = ("    _Alignas(8) uint64_t c; /* A */\n    _Alignas(8)\n        int64_t d; /* A */\n"
                "    uint64_t e; /* T */\n    uint32_t f; /* A */\n"
                "    uint64_t g __attribute__((aligned(64))); /* A */\n")
        self.finds(tree(room=room % fine), "4", "src/room.c:2: field a needs _Alignas(8)",
                   "src/room.c:4: field b needs _Alignas(8)")

    def test_rule_5_measures(self):
        long = "\nint f(int a,\n      int b)\n{\n" + "    a++;\n" * 56 + "}\n"
        self.finds(tree(room=long), "5")
        self.finds(tree(room=long.replace("{\n", "{\n    a--;\n")), "5",
                   "src/room.c:2: a function of 61 lines")
        self.finds(tree(room="/* " + "x" * 98 + " */\n"), "5", "src/room.c:1: 104 columns")
        self.finds(tree(room="int a;\n" * 601), "5", "src/room.c:601: 601 lines")
        self.finds(tree(more={"README.md": "| " + "x" * 120 + "\n" + "y" * 101 + "\n"}), "5",
                   "README.md:2: 101 columns")

    def test_rule_6_keeps_clocks_in_clock_c(self):
        read = "void f(void)\n{\n    /* usleep() is */ nanosleep(&t, 0);\n}\n"
        self.finds(tree(room=read), "6", "src/room.c:3: nanosleep() outside clock.c")
        self.finds({"src/os/clock.c": read}, "6")

    def test_rule_6_wants_asserts_without_effect(self):
        bad = ("assert(n++ < 3);", "assert((a = b) != 0);", "assert(due_open(1) == 0);",
               "assert(due__xchg_seq(&w, 1) == 0);", "assert(a &&\n       (b += 1));")
        for text in bad:
            self.finds(tree(room=f"int x;\n{text}\n"), "6", "src/room.c:2: an assert that changes")
        good = ("assert(a == b && a <= c && a >= d && a != e);", 'assert(a && "a = b, a++");',
                "assert(due_look(1) == 0);")
        for text in good:
            self.finds(tree(room=f"int x;\n{text}\n"), "6")

    def test_rule_7_wants_blocks_to_be_compiled(self):
        page = "Text.\n\n```c\n    return due__load_acquire(r->word);\n}\n```\n\n```sh\nmake\n```\n"
        style = {".clang-format": "DisableFormat: true\n"}
        self.finds(tree(more={"docs/guide.md": page, **style}), "7")
        self.finds(tree(more={"docs/guide.md": page.replace("acquire", "relaxed"), **style}), "7",
                   "docs/guide.md:3: this block is not the text of a compiled file")

    def test_rule_7_looks_into_files_of_the_language_of_the_block(self):
        style = {".clang-format": "DisableFormat: true\n"}
        for language, path in ("cpp", "tests/a.cpp"), ("cpp", "include/due/a.hpp"), \
                ("python", "python/a.py"):
            page = f"```{language}\nuse(a)\n```\n"
            files = {"docs/guide.md": page, path: "use(a)\n", **style}
            self.finds(files, "7")
            self.finds({**files, path: "use(b)\n", "src/room.c": "use(a)\n"}, "7",
                       "docs/guide.md:1: this block is not the text of a compiled file")

    @unittest.skipUnless(shutil.which("clang-format-14") or shutil.which("clang-format"),
                         "there is no clang-format here")
    def test_rule_7_wants_the_format(self):
        style = {".clang-format": "BasedOnStyle: LLVM\n"}
        self.finds({"src/room.c": "int a;\n", **style}, "7")
        self.finds({"src/room.c": "int a;\nint   b;\n", **style}, "7",
                   "src/room.c:2: clang-format would change this line")

    def test_rule_8_wants_each_tag_once(self):
        def and_another(text, path="src/hall.c"):
            return {**tree(), path: text}
        for text in ("struct due__room {\n", "static const struct due__room {\n"):
            self.finds(and_another(text), "8", "src/room.c:7: due__room is defined in src/hall.c")
        self.finds(and_another("union due__pair {\n", "src/zoo.h"), "8",
                   "src/zoo.h:1: due__pair is defined in src/room.c too")
        self.finds(and_another("struct due__hall {\n#else\nstruct due__hall {\n"), "8")
        self.finds(and_another("struct due__room *r;\nstruct due__room;\n"), "8")
        self.finds(and_another("struct due__room {\n", "tests/hall.c"), "8")

    def test_rule_10_lets_one_header_change_the_word_of_a_job(self):
        def change(path, line):
            return {path: "void f(void)\n{\n    " + line + "\n}\n"}
        store = "due__store_release(&it->job->word, /* J1 */\n        1);"
        self.finds(change("src/mem/word.h", "due__store_release(word, 1);"), "10")
        self.finds(change("src/os/lock.c", store), "10")
        self.finds(change("src/job/a.c", "w = due__load_acquire(&j->word);"), "10")
        self.finds(change("src/job/a.c", "due__store_relaxed(&l->token, j->word);"), "10")
        for line in store, "x = due__cas_acq_rel(&due__job_at(s, n)->word, &w, 1);":
            self.finds(change("src/job/a.c", line), "10",
                       "src/job/a.c:3: the word of a job is changed outside src/mem/word.h")

    def test_rule_11_knows_the_words_that_went(self):
        page = "# Glossary\n\n| reap | more |\n\n## Words that went\n\n| doom, doomed | dying |\n"

        def beside(text, path="src/job/a.c"):
            return {"docs/glossary.md": page, path: text}
        self.finds(beside("int reap; /* predoomed */\n"), "11")
        self.finds(beside("int doomed;\n", "tests/a.c"), "11")
        self.finds(beside("int a;\nint all_doomed;\n"), "11", "src/job/a.c:2: doomed: dying")
        self.finds(beside("int a; /* Doom. */\n"), "11", "src/job/a.c:1: Doom: dying")

    FLOORS = "floors os queue\n"

    def test_rule_9_wants_includes_to_run_down(self):
        def house(floors, low='#include "queue/high.h"\n'):
            return {"src/floors.txt": floors, "src/os/low.c": low,
                    "src/queue/high.h": '#include "os/low.h"\n'}
        self.finds(house(self.FLOORS), "9", "src/os/low.c:1: includes queue/high.h")
        self.finds(house(self.FLOORS + "include os/low.c queue/high.h\n"), "9")
        self.finds(house(self.FLOORS + "include os/low.c queue/high.h\n", "int a;\n"), "9",
                   "src/floors.txt:2: include os/low.c queue/high.h: not any more")

    def test_rule_9_wants_each_folder_on_a_floor(self):
        files = {"src/floors.txt": self.FLOORS, "src/os/low.c": "int a;\n"}
        self.finds({**files, "src/queue/deep/high.c": "int a;\n"}, "9",
                   "src/queue/deep/high.c:1: its folder is no floor of src/floors.txt")
        self.finds({**files, "src/top.c": "int a;\n"}, "9",
                   "src/top.c:1: its folder is no floor of src/floors.txt")

    def test_rule_9_knows_folders_in_folders_and_other_tops(self):
        floors = "floors redis/os redis .\n"
        self.finds({"persist/floors.txt": floors,
                    "persist/redis/os/low.c": '#include "redis/store.h"\n',
                    "persist/redis/store.h": '#include "redis/os/low.h"\n',
                    "persist/redis/os/low.h": '#include "queue/high.h"\n',  # of another top
                    "persist/all.h": '#include "redis/store.h"\n'}, "9",
                   "persist/redis/os/low.c:1: includes redis/store.h")
        self.finds({"tools/duectl/floors.txt": "floors base .\n",
                    "tools/duectl/base/low.h": '#include "duectl.h"\n',
                    "tools/duectl/duectl.h": '#include "base/low.h"\n'}, "9",
                   "tools/duectl/base/low.h:1: includes duectl.h")

    def with_objects(self, floors, sources, rules="9"):
        """What is found in src where the objects of these sources are there too."""
        with tempfile.TemporaryDirectory() as objects:
            for path, text in sources.items():
                there = os.path.join(objects, path + ".o")
                os.makedirs(os.path.dirname(there), exist_ok=True)
                subprocess.run(["cc", "-x", "c", "-c", "-o", there, "-"], input=text, text=True,
                               check=True)
            files = {"src/" + path: text for path, text in sources.items()}
            return tidy({"src/floors.txt": floors, **files}, rules, "--objects", "src=" + objects)

    def test_rule_9_looks_at_the_symbols_of_objects(self):
        sources = {"os/low.c": "int above(void); int low(void) { return above(); }\n",
                   "queue/high.c": "int low(void); int above(void) { return 1; }\n"
                                   "int both(void) { return low() + above(); }\n"}
        self.finds({"src/floors.txt": self.FLOORS,
                    **{"src/" + path: text for path, text in sources.items()}}, "9")
        answer = self.with_objects(self.FLOORS, sources)
        self.assertEqual(len(answer), 1, answer)
        self.assertTrue(answer[0].startswith("src/os/low.c:1: calls above,"), answer)
        known = self.FLOORS + "call os/low.c above\n"
        self.assertEqual(self.with_objects(known, sources), [])

    def test_rule_9_wants_no_more_than_four_files_in_a_circle(self):
        def ring(n):
            return {f"os/f{i}.c": f"int g{(i + 1) % n}(void); int g{i}(void) "
                                  f"{{ return g{(i + 1) % n}(); }}\n" for i in range(n)}
        beside = {"os/h.c": "int g0(void); int h(void) { return g0(); }\n"}  # in none
        self.assertEqual(self.with_objects(self.FLOORS, {**ring(4), **beside}), [])
        answer = self.with_objects(self.FLOORS, {**ring(6), **beside})
        self.assertEqual(len(answer), 1, answer)
        self.assertTrue(answer[0].startswith("src/os/f0.c:1: calls in a circle of 6"), answer)
        self.assertEqual(self.with_objects(self.FLOORS + "circle 6\n", {**ring(6), **beside}), [])
        self.assertEqual(self.with_objects(self.FLOORS + "circle 6\n", ring(4)),
                         ["src/floors.txt:2: circle 6: not any more [rule 9]"])
        answer = self.with_objects(self.FLOORS + "circle 6\n", ring(5))  # it only shrinks
        self.assertEqual(len(answer), 2, answer)
        self.assertTrue(answer[1].startswith("src/os/f0.c:1: calls in a circle of 5"), answer)


if __name__ == "__main__":
    unittest.main()
