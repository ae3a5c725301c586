"""Tests what the installed package says about itself: what it needs, and where it can be installed."""
import re
from importlib import metadata
from pathlib import PurePath

import pytest

PACKAGE = metadata.distribution("bsmm")
TAG = re.search(r"^Tag: (.*)$", PACKAGE.read_text("WHEEL"), re.MULTILINE)[1]


def test_the_package_needs_only_numpy():
    needed = [line for line in PACKAGE.requires if "extra ==" not in line]
    assert [re.match(r"[\w-]+", line)[0] for line in needed] == ["numpy"]
    assert PACKAGE.metadata["Requires-Python"] == ">=3.11"


def test_one_module_serves_all_versions_of_python():
    """Tests that the extension module uses the limited API of CPython 3.11."""
    modules = [file.name for file in PACKAGE.files if PurePath(file).suffix == ".so" and file.parent.name == "bsmm"]
    assert modules == ["_bsmm.abi3.so"]
    assert TAG.startswith("cp311-abi3-")


def test_the_wheel_runs_with_glibc_2_34():
    found = re.search(r"manylinux_2_(\d+)_", TAG)
    if not found:
        pytest.skip(f"the package is not from tools/make-wheel.sh: its tag is {TAG}")
    assert int(found[1]) <= 34


def test_no_library_beside_those_of_files_is_inside():
    """Tests that auditwheel put no OpenMP runtime into the wheel."""
    names = {re.match(r"lib[a-z]+", file.name)[0] for file in PACKAGE.files if ".libs" in str(file.parent)}
    assert names <= {"libjansson", "libzstd"}
