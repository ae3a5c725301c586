"""Defines for torch the operators torch.ops.bsmm.*, the module Linear, and quantize_ for whole models.

>>> import torch, bsmm.torch
>>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU())
>>> bsmm.torch.quantize_(model, "mxfp4")[0]
Linear(in_features=64, out_features=32, bias=True, format=mxfp4, layout=row_major)
>>> model(torch.ones(3, 64)).shape
torch.Size([3, 32])
"""
from ._linear import Linear, quantize_
from ._ops import dequantize, linear, quantize

__all__ = ["Linear", "dequantize", "linear", "quantize", "quantize_"]
