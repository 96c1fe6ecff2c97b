"""Metrics: what is counted on the way of a request, and the engine's own counts."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from api.metrics import Metrics
from api.settings import Settings
from constrained.decode.stats import EngineStats
from tests.api.server import ask, served
from tests.api.synthetic import SyntheticBackend

STRING = {"type": "string"}


def test_what_is_counted_on_the_way() -> None:
    with served(SyntheticBackend()) as service:
        for _ in range(2):
            service.client.post("/v1/structured", json=ask(STRING))
        service.client.post("/v1/structured", json=ask({"type": "strong"}))
        metric = service.metric
        assert metric('constrained_requests_total{endpoint="structured"}') == 2
        assert metric('constrained_refusals_total{code="invalid_schema"}') == 1
        assert metric('constrained_grammar_lookups_total{result="hit"}') == 1
        assert metric('constrained_grammar_lookups_total{result="miss"}') == 2
        assert metric('constrained_finished_sequences_total{finish_reason="stop"}') == 2
        tokens = metric("constrained_tokens_total")
        assert tokens > 0
        assert metric("constrained_forced_tokens_total") == 2 * (tokens // 2 // 2)
        prompt_tokens = metric("constrained_prompt_tokens_total")
        assert metric("constrained_cached_tokens_total") == 2 * (prompt_tokens // 2 // 2)
        for name in ("time_to_first_token", "queue_time"):
            assert metric(f"constrained_{name}_seconds_count") == 2
        assert metric("constrained_inter_token_latency_seconds_count") > 0
        assert metric("constrained_running_sequences") == metric("constrained_waiting_sequences") == 0


def test_a_schema_over_the_limit() -> None:
    with served(SyntheticBackend(), Settings(max_schema_bytes=100)) as service:
        answer = service.client.post("/v1/structured", json=ask({"description": "x" * 100}))
        assert answer.json()["error"]["code"] == "schema_too_complex"
        assert service.metric('constrained_refusals_total{code="schema_too_complex"}') == 1
        assert service.client.post("/v1/structured", json=ask(STRING)).status_code == 200


def test_the_engines_own_counts() -> None:
    metrics = Metrics()
    metrics.watch_engine(lambda: EngineStats(running=3, tokens=40, mask_ms=1500.0))
    families = {family.name: family for family in text_string_to_metric_families(metrics.render().decode())}
    assert (families["constrained_engine_running"].type, families["constrained_engine_tokens"].type) == ("gauge", "counter")
    values = {name: family.samples[0].value for name, family in families.items() if family.samples}
    assert values["constrained_engine_running"] == 3
    assert values["constrained_engine_tokens"] == 40
    assert values["constrained_engine_mask_seconds"] == 1.5
