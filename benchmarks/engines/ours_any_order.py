"""This project with `property_order="any"`, for verdicts on instances whatever the order of their keys."""

from __future__ import annotations

from benchmarks.engines.ours import OurEngine
from constrained import CompileOptions


class OurEngineInAnyOrder(OurEngine):
    options = CompileOptions(property_order="any")


ENGINE = OurEngineInAnyOrder
