"""Settings for the whole test suite."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Examples of property tests create ONNX Runtime sessions: a time limit per example would only be noise.
settings.register_profile("openqnn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("openqnn")
