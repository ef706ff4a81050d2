#!/bin/sh
# site.sh SOURCE BUILD - the site is made; every link and picture in it leads to a page that is
# there, and to an anchor that is there; nothing is asked for from elsewhere, and no script runs;
# pages fit a phone: what is wide has a bar of its own.
set -u
source=$1
build=$2
site=$(mktemp -d) || exit 1
trap 'rm -rf "$site"' EXIT

man=
[ ! -f "$build/man/made" ] || man="--man $build/man"
"$source/tools/site" --out "$site" $man
status=$?
[ $status = 0 ] || exit $status
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
python3 - "$site" <<'END'
import html.parser
import os
import re
import sys

root = sys.argv[1]
wrong = []


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.ids, self.tags = [], [], set(), []
        self.wide = self.tables = 0
        self.text = []
        self.code = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.code += tag in ("code", "pre")
        self.wide += attrs.get("class") == "wide"
        self.tables += tag == "table" and attrs.get("class") is None
        if "id" in attrs:
            self.ids.add(attrs["id"])
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        elif "href" in attrs:
            self.loads.append(attrs["href"])
        if "src" in attrs:
            self.loads.append(attrs["src"])
        if any(name.startswith("on") or name == "style" for name in attrs):
            wrong.append(f"an attribute of {tag} that acts")

    def handle_endtag(self, tag):
        self.code -= tag in ("code", "pre")

    def handle_data(self, data):
        if not self.code:
            self.text.append(data)


pages = {}
for folder, _, names in os.walk(root):
    for name in names:
        path = os.path.relpath(os.path.join(folder, name), root)
        if name.endswith(".html"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                pages[path] = (Page(file.read()), os.path.getsize(os.path.join(folder, name)))

for path, (page, _) in pages.items():
    for target in page.loads:
        if target != "data:," and (re.match(r"[a-z]+:|//", target) or
                not os.path.exists(os.path.join(root, os.path.dirname(path), target))):
            wrong.append(f"{path} loads {target}")
    for target in page.links:
        if re.match(r"https?://|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.isfile(os.path.join(root, there)):
            wrong.append(f"{path}: no page for {target}")
        elif anchor and (there not in pages or anchor not in pages[there][0].ids):
            wrong.append(f"{path}: no anchor for {target}")
    if {"script", "iframe", "object", "embed", "form"} & set(page.tags):
        wrong.append(f"{path}: what acts")
    if page.tables != page.wide:
        wrong.append(f"{path}: a table that may be wider than a phone")
    text = "".join(page.text)
    if re.search(r"\|---|\n- |\]\(|```", text):
        wrong.append(f"{path}: Markdown that was not read: "
                     + repr(re.search(r"(?s).{0,20}(\|---|\n- |\]\(|```).{0,20}", text)[0]))
for path in ("index.html", "docs/guide.html", "docs/moving/asynq.html", "CHANGELOG.html"):
    if path not in pages:
        wrong.append(f"there is no {path}")
index = pages["index.html"][0]
if len(index.links) < 20:
    wrong.append("index.html has hardly any links")
with open(os.path.join(root, "index.html"), encoding="utf-8") as file:
    if '<meta name="viewport" content="width=device-width, initial-scale=1">' not in file.read():
        wrong.append("index.html does not say that it fits a phone")
with open(os.path.join(root, "style.css"), encoding="utf-8") as file:
    if re.search(r"@import|url\(", file.read()):
        wrong.append("style.css loads something")
print(*wrong, sep="\n", end="\n" if wrong else "")
print(len(pages), "pages,", sum(len(p.links) for p, _ in pages.values()), "links")
sys.exit(bool(wrong))
END
