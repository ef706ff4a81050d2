"""The recipe for Conan 2: conan create packaging/conan.  It builds the tree in which it lies."""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps


class Libdue(ConanFile):
    name = "libdue"
    description = "Priority delay queue for C programs"
    license = "BSD-2-Clause"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "redis": [True, False], "sqlite": [True, False]}
    default_options = {"shared": False, "redis": True, "sqlite": True}
    languages = "C"

    def set_version(self):
        base = load(self, os.path.join(self.tree(), "include/due/base.h"))
        self.version = ".".join(re.search(rf"#define DUE_VERSION_{part} (\d+)", base).group(1)
                                for part in ("MAJOR", "MINOR", "PATCH"))

    def tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "NOTICE", "README.md", "CHANGELOG.md",
                        "cmake/*", "include/*", "src/*", "persist/*", "control/*", "docs/*",
                        "examples/*", "tools/amalgamate", "tools/manpages"):
            copy(self, pattern, self.tree(), self.export_sources_folder)

    def requirements(self):
        self.requires("userspace-rcu/0.14.0", visible=False)
        if self.options.redis:
            self.requires("hiredis/1.2.0")
        if self.options.sqlite:
            self.requires("sqlite3/3.45.0")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({
            "DUE_SHARED": bool(self.options.shared), "DUE_STATIC": not self.options.shared,
            "DUE_REDIS": bool(self.options.redis), "DUE_SQLITE": bool(self.options.sqlite),
            "DUE_TOOLS": False, "DUE_TESTS": False, "DUE_BENCH": False, "DUE_EXAMPLES": False})
        toolchain.generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "due")
        for name, wanted in (("due", True), ("control", True), ("redis", self.options.redis),
                             ("sqlite", self.options.sqlite)):
            if wanted:
                part = self.cpp_info.components[name]
                part.libs = ["due" if name == "due" else f"due-{name}"]
                part.set_property("cmake_target_name", f"due::{name}")
                part.set_property("pkg_config_name", part.libs[0])
                part.system_libs = ["pthread"]
                part.requires = [] if name == "due" else ["due", *{
                    "redis": ["hiredis::hiredis"], "sqlite": ["sqlite3::sqlite3"]}.get(name, [])]
