"""moving_blocks PAGES BUILD - each block of the pages of docs/moving that is not C is compiled.

Those in C are the text of compiled files: rule 7 of tools/tidy.  A block in another language is put
into the program beside this file that has the page's name (tests/docs/moving), in place of its line
"// BLOCK", and that is compiled: Java by javac, Go by go vet, JavaScript run by node; with stubs
of the libraries that it uses.  Whoever adds a language adds it here: an unknown one fails.  A
compiler that is not there is said, and its blocks are left out; with none at all, status 77.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "moving")
STUBS = os.path.join(HERE, "stubs")
PLAIN = ("", "c", "console", "text")  # no program, or looked at elsewhere


def run(words, folder, **more):
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(os.environ, **more), text=True,
                          timeout=240)
    return done.stdout if done.returncode != 0 else None


def java(folder, source):
    os.rename(source, os.path.join(folder, "Page.java"))
    return run(["javac", "-Xlint:all", "-Werror", "-d", "out", "-sourcepath", STUBS, "Page.java"],
               folder)


def go(folder, source):
    stubs = {"github.com/hibiken/asynq": "asynq", "github.com/hdt3213/delayqueue": "delayqueue"}
    used = [name for name in stubs if f'"{name}"' in open(source, encoding="utf-8").read()]
    with open(os.path.join(folder, "go.mod"), "w", encoding="utf-8") as module:
        module.write("module page\n\ngo 1.19\n")
        for name in used:
            module.write(f"\nrequire {name} v0.0.0\n\n"
                         f"replace {name} => {os.path.join(STUBS, stubs[name])}\n")
    return run(["go", "vet", "."], folder, GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local",
               GOCACHE=os.path.join(os.path.abspath(sys.argv[2]), "go-cache"))


def javascript(folder, source):
    shutil.copy(os.path.join(STUBS, "bullmq_stub.mjs"), folder)
    os.rename(source, os.path.join(folder, "page.mjs"))
    return run(["node", "page.mjs"], folder)


LANGUAGES = {"java": ("javac", java, ".java"), "go": ("go", go, ".go"),
             "js": ("node", javascript, ".js")}


def blocks(page):
    """The language, line and text of each."""
    text = open(page, encoding="utf-8").read()
    for match in re.finditer(r"(?ms)^( *)```(\w*)\n(.*?)^ *```$", text):
        yield match.group(2), text.count("\n", 0, match.start()) + 1, match.group(3)


def program(path, block):
    """The program with the block in it, as far to the right as its place."""
    out, places = [], 0
    for line in open(path, encoding="utf-8").read().split("\n"):
        if line.strip() == "// BLOCK":
            indent = line[:len(line) - len(line.lstrip())]
            out += [indent + part if part else part for part in block.rstrip("\n").split("\n")]
            places += 1
        else:
            out.append(line)
    if places != 1:
        sys.exit(f"{path}: {places} places for a block")
    return "\n".join(out)


def compile_block(language, page, number, block):
    """What is wrong with it, or None."""
    _, how, ending = LANGUAGES[language]
    stem = os.path.splitext(os.path.basename(page))[0]
    path = os.path.join(HERE, stem + ending)
    if not os.path.exists(path):
        return f"there is no {path} to put it into\n"
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "page" + ending)
        with open(source, "w", encoding="utf-8") as file:
            file.write(program(path, block))
        return how(folder, source)


def main():
    compiled, wrong, missing, used = {}, 0, set(), set()
    for page in sorted(glob.glob(os.path.join(sys.argv[1], "*.md"))):
        for language, number, block in blocks(page):
            if language in PLAIN:
                continue
            if language not in LANGUAGES:
                print(f"{page}:{number}: nobody compiles a block of {language}")
                wrong += 1
                continue
            tool = LANGUAGES[language][0]
            used.add(os.path.splitext(os.path.basename(page))[0] + LANGUAGES[language][2])
            if shutil.which(tool) is None:
                missing.add(tool)
                continue
            said = compile_block(language, page, number, block)
            compiled[language] = compiled.get(language, 0) + 1
            if said is not None:
                print(f"{page}:{number}: not accepted by {tool}:\n{said}")
                wrong += 1
    for path in sorted(os.listdir(HERE)):
        if path != "stubs" and path not in used:
            print(f"{path}: no page has a block for it")
            wrong += 1
    for tool in sorted(missing):
        print(f"there is no {tool}: its blocks are left out")
    print(", ".join(f"{n} of {language}" for language, n in sorted(compiled.items())) or "nothing",
          "compiled")
    sys.exit(1 if wrong else 0 if compiled else 77)


main()
