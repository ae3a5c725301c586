"""Tests the cost of a call besides the library's work, and the plans that matmul keeps between
calls."""
import ast
import gc
import pathlib
import re
import sys
import weakref

import bsmm
import numpy as np
import pytest
from bsmm import _product

A = np.random.default_rng(5).standard_normal((3, 64), np.float32)
W = bsmm.quantize(np.random.default_rng(6).standard_normal((32, 64), np.float32), "mxfp4")


@pytest.fixture(autouse=True)
def no_plans():
    _product._plans.clear()


def count_calls(function):
    """Returns the number of calls of Python functions and of functions in C that `function` makes.
    The number does not depend on the speed of the machine."""
    function()
    count = 0

    def see(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_a_call_makes_few_calls():
    """Tests that the number of calls stays small. An earlier version made 249 calls for matmul and
    149 for the run of a plan, because it kept no plans and read __array_interface__ of each array."""
    plan, out = bsmm.Plan(A, W), np.empty((3, 32), np.float32)
    assert count_calls(lambda: bsmm.matmul(A, W)) < 125
    assert count_calls(lambda: plan.run(A, W)) < 75
    assert count_calls(lambda: plan.run(A, W, out=out)) < 75


def test_equal_calls_share_a_plan():
    first = bsmm.matmul(A, W)
    assert len(_product._plans) == 1
    assert np.array_equal(bsmm.matmul(A.copy(), W), first) and len(_product._plans) == 1


OTHERS = [
    (A[:2], W, {}), (A.astype(np.float16), W, {}), (np.asfortranarray(A), W, {}), (A, W.relayout("nv_128x4"), {}),
    (A, bsmm.pack(W), {}), (A, W, {"alpha": 0.0}), (A, W, {"alpha": -0.0}), (A, W, {"out_dtype": "f16"}),
    (A, W, {"out_dtype": "mxfp8"}), (A, W, {"out_dtype": "mxfp8", "out_layout": "nv_128x4"}), (A, W, {"threads": 3}),
    (A, W, {"activation": "relu"}), (A, W, {"activation": "swiglu"}), (A, W, {"compute": "fast"}),
    (A, W, {"bias": np.ones(32, np.float32)}), (A, W, {"bias": np.ones(32, np.float16)}),
    (A, W, {"col_scale": np.ones(32, np.float32)}),
]


def as_bytes(result):
    if isinstance(result, np.ndarray):
        return result.tobytes()
    return result.elements.tobytes() + result.scales.tobytes()


def test_calls_that_differ_have_plans_of_their_own():
    """Tests that matmul makes one plan for each different call, and that its results are those of a new plan."""
    bsmm.matmul(A, W)
    for count, (a, w, options) in enumerate(OTHERS, 2):
        result = as_bytes(bsmm.matmul(a, w, **options))
        assert len(_product._plans) == count, options
        arrays = {name: options[name] for name in options if name in ("bias", "col_scale")}
        assert as_bytes(bsmm.Plan(a, w, **options).run(a, w, **arrays)) == result
    for a, w, options in OTHERS:
        kept = as_bytes(bsmm.matmul(a, w, **options))
        _product._plans.clear()
        assert as_bytes(bsmm.matmul(a, w, **options)) == kept


def test_a_wrong_option_leaves_no_plan():
    for options in ({"alpha": [1]}, {"recipe": []}, {"nothing": 1}, {"activation": "nothing"}):
        with pytest.raises((TypeError, bsmm.Error)):
            bsmm.matmul(A, W, **options)
    with pytest.raises(bsmm.InvalidError):
        bsmm.matmul(A[:, :32], W)
    assert not _product._plans


def test_the_number_of_plans_is_bounded():
    for rows in range(1, _product._MOST_PLANS + 9):
        bsmm.matmul(np.ones((rows, 64), np.float32), W)
    assert len(_product._plans) == _product._MOST_PLANS


def test_plans_keep_no_array_alive():
    a, w = A.copy(), bsmm.quantize(np.ones((32, 64), np.float32), "mxfp4")
    packed = bsmm.pack(w)
    bsmm.matmul(a, w)
    bsmm.matmul(a, packed)
    kept = [weakref.ref(a), weakref.ref(w.elements), weakref.ref(packed.data)]
    del a, w, packed
    gc.collect()
    assert len(_product._plans) == 2 and all(ref() is None for ref in kept)


@pytest.mark.parametrize("strides", [(256, 4), (4, 12), (512, 4)])
def test_arrays_of_every_order(strides):
    whole = np.zeros(1024, np.float32)
    a = np.lib.stride_tricks.as_strided(whole, (3, 64), strides)
    a[:] = A
    assert np.array_equal(bsmm.matmul(a, W), bsmm.matmul(A, W))


def test_strides_between_items_are_refused():
    pairs = np.zeros((3, 64), np.dtype([("value", np.float32), ("other", np.int16)]))
    with pytest.raises(ValueError, match="strides"):
        bsmm.matmul(pairs["value"], W)


def test_read_only_arrays():
    a, out = A.copy(), np.empty((3, 32), np.float32)
    a.flags.writeable = out.flags.writeable = False
    assert np.array_equal(bsmm.matmul(a, W), bsmm.matmul(A, W))
    with pytest.raises(ValueError, match="out: the array is read-only"):
        bsmm.matmul(A, W, out=out)


def test_a_tuple_describes_a_format_only_whole():
    for wrong in ((1,), (1, 2, 3, 4, 5), ()):
        with pytest.raises(TypeError, match="must have one item for each field"):
            bsmm._bsmm.format_name(wrong)


def test_the_stub_names_what_the_module_has():
    """Tests that _bsmm.pyi names every function of the extension module. The file is written by
    hand, and mypy trusts it."""
    stub = ast.parse((pathlib.Path(bsmm.__file__).parent / "_bsmm.pyi").read_text())
    names = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    assert names == {name for name in dir(bsmm._bsmm) if not name.startswith("_")}


def test_public_names_have_docstrings():
    for name in sorted(vars(bsmm)):
        found = getattr(bsmm, name)
        if not name.startswith("_") and callable(found):
            assert found.__doc__, name


@pytest.mark.parametrize("name", ["amax", "compare", "matmul", "pack", "quantize", "BlockScaled", "Packed", "File"])
def test_docstrings_give_the_shapes_of_arrays(name):
    assert re.search(r"\((\w+|\.\.\.), \w+(, \w+)?\)", getattr(bsmm, name).__doc__), name
