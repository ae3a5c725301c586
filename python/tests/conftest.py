"""Defines fixtures that the tests share: a generator of random numbers, and the values of each
format's codes."""
import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)
