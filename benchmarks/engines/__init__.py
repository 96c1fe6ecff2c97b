"""The engines that `mask_time` compares, each behind the same few calls (`base.Engine`).

Any other module that defines `ENGINE` can be named by its dotted path.
"""

from __future__ import annotations

MODULES = {
    "ours": "benchmarks.engines.ours",
    "ours-any-order": "benchmarks.engines.ours_any_order",
    "llguidance": "benchmarks.engines.llguidance_engine",
    "xgrammar": "benchmarks.engines.xgrammar_engine",
}
