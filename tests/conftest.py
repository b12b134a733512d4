"""How hard the properties are tried: HYPOTHESIS_PROFILE=fast, default or thorough."""

import os

import pytest
from hypothesis import HealthCheck, settings

import wavesim

# Simulations of random programs take as long as they take: no deadline, and no complaint about it.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("default", max_examples=60, derandomize=True, **COMMON)
settings.register_profile("thorough", max_examples=1_000, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def h200() -> wavesim.Device:
    return wavesim.device("h200")
