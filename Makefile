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

install: all
	cmake --install build/release --prefix $(PREFIX)
	test -n "$(DESTDIR)" || test "$$(id -u)" != 0 || ldconfig

format:
	clang-format-14 -i $$(tools/tidy --list-c)

clean:
	rm -rf build

.PHONY: all check demo proof bench bench-check bench-inside install format clean
