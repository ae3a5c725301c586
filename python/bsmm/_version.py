"""The version of the library, which the package shares."""
from . import _bsmm

_number = _bsmm.version()
__version__ = f"{_number // 10000}.{_number // 100 % 100}.{_number % 100}"
