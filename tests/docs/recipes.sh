#!/bin/sh
# recipes.sh SOURCE [BUILD] - the recipes of packaging name the version of the header, files that
# are there and options that CMakeLists.txt has, and can be read.
set -eu
cd "$1"
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
python3 - <<'END'
import ast, glob, json, re, sys

base = open("include/due/base.h").read()
version = ".".join(re.search(rf"#define DUE_VERSION_{part} (\d+)", base).group(1)
                   for part in ("MAJOR", "MINOR", "PATCH"))
cmake = open("CMakeLists.txt").read()
options = set(re.findall(r"(?m)^(?:option|set)\((DUE_\w+)", cmake))
wrong = []
port = json.load(open("packaging/vcpkg/vcpkg.json"))
if port["version"] != version:
    wrong.append(f"vcpkg.json says {port['version']}, the header {version}")
portfile = open("packaging/vcpkg/portfile.cmake").read()
recipe = open("packaging/conan/conanfile.py").read()
tree = ast.parse(recipe)
for where, text in (("portfile.cmake", portfile), ("conanfile.py", recipe)):
    for name in re.findall(r"\bDUE_[A-Z]+\b", text):
        if name not in options and name != "DUE_VERSION":
            wrong.append(f"{where}: there is no option {name}")
for name in port["features"]:
    if f"{name} DUE_{name.upper()}" not in portfile:
        wrong.append(f"portfile.cmake: feature {name}")
exported = next(node for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef) and node.name == "export_sources")
patterns = [node.value for node in ast.walk(exported)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)]
for pattern in patterns:
    if not glob.glob(pattern):
        wrong.append(f"conanfile.py: nothing is {pattern}")
for folder in re.findall(r"add_subdirectory\((src|persist|control)\)|include\(Due", cmake):
    if folder and f"{folder}/*" not in patterns:
        wrong.append(f"conanfile.py: {folder} is not exported")
print(*wrong, sep="\n", end="\n" if wrong else "")
sys.exit(bool(wrong))
END
