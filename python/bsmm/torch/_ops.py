"""Defines the operators torch.ops.bsmm.*: quantize, dequantize and linear, with fake kernels and
gradients.

The operators take and return quantized matrices as bytes (uint8): elements, scales and the float32
of the global scale. Casts of floating-point tensors, such as module.half(), therefore do not change
them. A tensor without elements stands for no global scale."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _bsmm
from .._blockscaled import ORDERS, BlockScaled, quantize as quantize_matrix
from .._product import matmul
from .._tables import format_of, layout_number


def _bytes_of(x: Tensor | None, like: Tensor) -> Tensor:
    if x is None:
        return torch.empty(0, dtype=torch.uint8, device=like.device)
    return x.view(torch.uint8).reshape(-1)


def _sizes(rows: int, cols: int, format: str, layout: str) -> tuple[int, int]:
    wanted = format_of(format)
    return _bsmm.sizes_of({"order": ORDERS["row"], "rows": rows, "cols": cols, "format": wanted,
                           "scale_layout": layout_number(layout)})


def scaled_of(elements: Tensor, scales: Tensor, level: Tensor, shape: list[int], format: str, layout: str,
              global_kind: str) -> BlockScaled:
    """Returns the BlockScaled that an operator's bytes describe."""
    return BlockScaled(elements, scales if scales.numel() else None, format, shape=tuple(shape), layout=layout,
                       global_scale=level.view(torch.float32) if level.numel() else None, global_kind=global_kind)


@torch.library.custom_op("bsmm::quantize", mutates_args=())
def quantize(x: Tensor, format: str, recipe: str | None, layout: str) -> tuple[Tensor, Tensor, Tensor]:
    """Quantizes x of shape (rows, cols); returns the bytes of elements, scales and global scale."""
    q = quantize_matrix(x.detach(), format, recipe=recipe, layout=layout)
    return _bytes_of(q.elements, x), _bytes_of(q.scales, x), _bytes_of(q.global_scale, x)


@quantize.register_fake
def _(x: Tensor, format: str, recipe: str | None, layout: str) -> tuple[Tensor, Tensor, Tensor]:
    data, scales = _sizes(int(x.shape[0]), int(x.shape[1]), format, layout)
    level = 4 if format_of(format).has_global else 0
    return tuple(x.new_empty(size, dtype=torch.uint8) for size in (data, scales, level))  # type: ignore[return-value]


@torch.library.custom_op("bsmm::dequantize", mutates_args=())
def dequantize(elements: Tensor, scales: Tensor, level: Tensor, shape: list[int], format: str, layout: str,
               global_kind: str, dtype: torch.dtype) -> Tensor:
    """Returns the values of shape (rows, cols) in float32, float16 or bfloat16."""
    whole: Tensor = scaled_of(elements, scales, level, shape, format, layout, global_kind).dequantize(dtype)
    return whole


@dequantize.register_fake
def _(elements: Tensor, scales: Tensor, level: Tensor, shape: list[int], format: str, layout: str,
      global_kind: str, dtype: torch.dtype) -> Tensor:
    return elements.new_empty(shape, dtype=dtype)


@torch.library.custom_op("bsmm::linear", mutates_args=())
def linear(x: Tensor, elements: Tensor, scales: Tensor, level: Tensor, bias: Tensor | None, shape: list[int],
           format: str, layout: str, global_kind: str) -> Tensor:
    """Returns x W^T + bias. x has shape (..., K), W has the shape `shape` (N, K), and the result
    has shape (..., N) and x's type."""
    rows = x.detach().reshape(-1, shape[1])
    weight = scaled_of(elements, scales, level, shape, format, layout, global_kind)
    # The result must not be a view, because torch forbids in-place changes of a view that an operator
    # returns.
    result = x.new_empty((*x.shape[:-1], shape[0]))
    matmul(rows if rows.stride(1) == 1 else rows.contiguous(), weight, out_dtype=x.dtype,
           bias=None if bias is None else bias.detach(), out=result.view(-1, shape[0]))
    return result


@linear.register_fake
def _(x: Tensor, elements: Tensor, scales: Tensor, level: Tensor, bias: Tensor | None, shape: list[int],
      format: str, layout: str, global_kind: str) -> Tensor:
    return x.new_empty((*x.shape[:-1], shape[0]))


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:4])
    ctx.weight = inputs[5:]


def _linear_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Returns the gradients of x and the bias. The weights are constant and have no gradient."""
    weight = torch.ops.bsmm.dequantize(*ctx.saved_tensors, *ctx.weight, grad.dtype)
    bias = grad.reshape(-1, grad.shape[-1]).sum(0) if ctx.needs_input_grad[4] else None
    return grad @ weight, None, None, None, bias, None, None, None, None


linear.register_autograd(_linear_backward, setup_context=_save_for_backward)

