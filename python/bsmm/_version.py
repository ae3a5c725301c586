"""Gives the version of the library, which is also the version of the package."""
from . import _bsmm

_number = _bsmm.version()
__version__ = f"{_number // 10000}.{_number // 100 % 100}.{_number % 100}"
