"""Tests arrays that the library could misread or must not write: other byte orders, gaps, read-only
memory, stacks whose matrices lie at one place, and arrays that are too short."""
import bsmm
import numpy as np
import pytest

SHARED = "all matrices of the stack are the same memory"


@pytest.fixture
def stack(rng):
    return rng.standard_normal((3, 4, 32), np.float32)


def read_only(shape, dtype):
    """Returns a read-only array and the bytes object in which it lies. No call may change the bytes."""
    whole = bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    return np.frombuffer(whole, np.uint8).view(dtype).reshape(shape), whole


def test_other_byte_orders_are_refused(stack):
    swapped = stack[0].astype(stack.dtype.newbyteorder())
    for call in (lambda: bsmm.matmul(swapped, stack[0]), lambda: bsmm.quantize(swapped, "mxfp8")):
        with pytest.raises(TypeError, match="byte order"):
            call()


def test_stacks_at_one_place_are_shared(stack, rng):
    w = rng.standard_normal((6, 32), np.float32)
    one = np.broadcast_to(w, (3, 6, 32))
    batch = bsmm.Groups("batch")
    expected = bsmm.matmul(stack, one.copy(), groups=batch)
    assert np.array_equal(bsmm.matmul(stack, one, groups=batch), expected)
    assert np.array_equal(bsmm.matmul(np.broadcast_to(stack[0], (3, 4, 32)), one.copy(), groups=batch)[2], expected[0])
    with pytest.raises(ValueError, match=SHARED):
        bsmm.pack(one)
    with pytest.raises(ValueError, match="ascending order"):
        bsmm.matmul(stack[::-1], one, groups=batch)


def test_arrays_of_groups_have_the_right_shape(stack, rng):
    w, x = rng.standard_normal((3, 6, 32), np.float32), stack[0]
    ends = np.array([2, 9, 3, 9, 4, 9], np.int32)
    with pytest.raises(ValueError, match=r"group_alpha: shape is \(2,\); must be \(3,\)"):
        bsmm.matmul(x, w, groups=bsmm.Groups("rows", ends[:3], alpha=np.ones(2, np.float32)))
    with pytest.raises(ValueError, match="group_sizes: strides are"):
        bsmm.matmul(x, w, groups=bsmm.Groups("rows", ends[::2]))
    with pytest.raises(ValueError, match=r"gather: shape is \(4,\); must be \(3, 4\)"):
        bsmm.matmul(x, w, groups=bsmm.Groups("masked", ends[:3], gather=np.zeros(4, np.int32)))


def test_read_only_results_are_refused(stack):
    x, w = stack[0], np.repeat(stack[1], 8, 0)
    scaled = bsmm.matmul(x, w, out_dtype="mxfp8")
    out, whole = read_only((4, 32), np.float32)
    with pytest.raises(ValueError, match="read-only"):
        scaled.dequantize(out=out)
    elements, codes = read_only((4, 32), scaled.elements.dtype)
    with pytest.raises(ValueError, match="read-only"):
        bsmm.matmul(x, w, out_dtype="mxfp8", out=bsmm.BlockScaled(elements, scaled.scales.copy(), "mxfp8"))
    assert not any(whole) and not any(codes)


def test_results_in_another_form_are_refused(stack):
    """A product writes rows, with the second-level scale as a multiplier. As a matrix of another
    form, the same memory would have other values."""
    x, w = stack[0], np.repeat(stack[1], 8, 0)
    made = bsmm.matmul(x, w, out_dtype="nvfp4")
    divisor = bsmm.BlockScaled(made.elements, made.scales, "nvfp4", shape=made.shape, global_scale=2.0,
                               global_kind="divisor")
    columns = bsmm.BlockScaled(made.elements, made.scales, "nvfp4", shape=made.shape, order="col")
    for out in (divisor, columns):
        with pytest.raises(ValueError, match="'row', 'multiplier'"):
            bsmm.matmul(x, w, out_dtype="nvfp4", out=out)


def test_scales_and_magnitudes_are_fp32_without_gaps(stack):
    q = bsmm.quantize(stack[:2], "nvfp4")
    gaps = np.repeat(q.global_scale, 2)
    with pytest.raises(ValueError, match="no gaps"):
        bsmm.BlockScaled(q.elements, q.scales, "nvfp4", shape=q.shape, global_scale=gaps[::2])
    largest = np.abs(stack[0]).max()
    expected = bsmm.quantize(stack[0], "nvfp4").global_scale
    for amax in (largest, float(largest), np.array([largest]), np.array(largest)):
        assert np.array_equal(bsmm.quantize(stack[0], "nvfp4", amax=amax).global_scale, expected)
    for amax in (np.array([largest], np.float64), np.array([largest, largest])):
        with pytest.raises(ValueError, match="amax: type"):
            bsmm.quantize(stack[0], "nvfp4", amax=amax)


def test_stacks_are_not_compared_in_part(stack):
    with pytest.raises(ValueError, match="2 dimensions"):
        bsmm.compare(stack, bsmm.quantize(stack, "mxfp8"))
    with pytest.raises(ValueError, match="2 dimensions"):
        bsmm.amax(stack)
    with pytest.raises(ValueError, match="as quantized is"):
        bsmm.compare(stack[0], bsmm.quantize(stack, "mxfp8"))
