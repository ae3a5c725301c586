"""Defines the module Linear, whose weights are block-scaled, and quantize_, which puts Linear
modules into a model."""
from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .._blockscaled import BlockScaled, global_kind_of
from .._tables import format_of
from ._ops import scaled_of


class Linear(nn.Module):
    """Implements a linear layer with constant block-scaled weights (out_features, in_features).
    The buffers of the module are bytes, so that casts of the module (`half`, `to(dtype)`) change
    only the bias."""

    elements: Tensor
    scales: Tensor
    global_scale: Tensor

    def __init__(self, in_features: int, out_features: int, weight: tuple[Tensor, Tensor, Tensor], bias: Tensor | None,
                 format: str, layout: str, global_kind: str) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.format, self.layout, self.global_kind = format, layout, global_kind
        for name, part in zip(("elements", "scales", "global_scale"), weight):
            self.register_buffer(name, part)
        self.register_parameter("bias", None if bias is None else nn.Parameter(bias.detach().clone()))

    @classmethod
    def from_linear(cls, linear: nn.Linear, format: str = "mxfp4", *, recipe: str | None = None,
                    layout: str = "row_major") -> Linear:
        """Quantizes the weights of a torch.nn.Linear on their device."""
        weight = torch.ops.bsmm.quantize(linear.weight.detach(), format, recipe, layout)
        return cls(linear.in_features, linear.out_features, weight, linear.bias, format, layout,
                   global_kind_of(recipe, format_of(format)))

    @property
    def weight(self) -> BlockScaled:
        """Returns the weights as a BlockScaled that shares the module's memory."""
        return scaled_of(self.elements, self.scales, self.global_scale, [self.out_features, self.in_features],
                         self.format, self.layout, self.global_kind)

    def forward(self, x: Tensor) -> Tensor:
        """Returns x W^T + bias. x has shape (..., in_features), and the result has shape (...,
        out_features) and x's type."""
        result: Tensor = torch.ops.bsmm.linear(x, self.elements, self.scales, self.global_scale, self.bias,
                                               [self.out_features, self.in_features], self.format, self.layout,
                                               self.global_kind)
        return result

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, format={self.format}, layout={self.layout}")


def quantize_(model: nn.Module, format: str = "mxfp4", *, recipe: str | None = None, layout: str = "row_major",
              filter: Callable[[str, nn.Linear], bool] | None = None) -> nn.Module:
    """Replaces each torch.nn.Linear of a model by a Linear in `format`, in place, and returns
    the model. `filter(name, module)` returns True for the layers to replace; None means all. If
    a layer cannot be quantized, the model stays unchanged."""
    found = [(name, module) for name, module in model.named_modules(remove_duplicate=False)
             if type(module) is nn.Linear and (filter is None or filter(name, module))]
    made = {module: Linear.from_linear(module, format, recipe=recipe, layout=layout) for _, module in found}
    if model in made:
        return made[model]  # type: ignore[index]
    for name, module in found:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, made[module].train(module.training))
    return model
