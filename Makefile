# A front door for habits; the work is done by CMake and the scripts in tools/.
PREFIX ?= /usr/local

all:
	cmake --preset release
	cmake --build --preset release

check:
	tools/check

demo:
	tools/demo

proof:
	tools/proof

bench bench-check bench-inside: all
	cmake --build --preset release --target $@

# Only what is installed is built: no tests, no benchmarks.
install:
	cmake --preset install
	cmake --build --preset install
	cmake --install build/install --prefix $(PREFIX)
	test -n "$(DESTDIR)" || test "$$(id -u)" != 0 || ldconfig

uninstall:
	cmake -DBUILD=build/install -DPREFIX=$(PREFIX) -P cmake/Uninstall.cmake

# The documents as pages of HTML, in build/release/site.
site:
	cmake --preset release
	cmake --build --preset release --target $@

packages:
	tools/packages

format:
	clang-format-14 -i $$(tools/tidy --list-c)

clean:
	rm -rf build

.PHONY: all check demo proof bench bench-check bench-inside install uninstall packages site format \
	clean
