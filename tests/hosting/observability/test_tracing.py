"""Spans of a gateway through the real OpenTelemetry SDK, kept in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk, of the test-hosting extra")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from kizuki.actors import InvalidSessionKey, open_gateway
from kizuki.actors.hosting.observability.tracing import trace_gateway
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.integrations.staging import spoken_to


class Traced:
    """A tracer provider whose spans are kept."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def names(self) -> list[str]:
        return [span.name for span in self.spans()]


async def test_operations_and_commits_have_spans(tmp_path: Path) -> None:
    """A span for each method, named after it, and one for each transaction, with its size; none after the host stopped it."""
    traced = Traced()
    async with open_gateway(tmp_path / "state.db") as gateway:
        stop = trace_gateway(gateway, provider=traced.provider)
        await gateway.open_session(MAIN)
        stop()
        await gateway.open_session(MAIN)
    assert sorted(traced.names()) == ["kizuki.commit", "kizuki.open_session"]
    commit = next(span for span in traced.spans() if span.name == "kizuki.commit")
    assert dict(commit.attributes or {}) == {"kizuki.commit.writes": 1}
    assert commit.instrumentation_scope is not None
    assert commit.instrumentation_scope.name == "kizuki"


async def test_a_span_is_the_callers_child_and_a_commit_is_nobodys(tmp_path: Path) -> None:
    """The host's current span is the parent of what it calls; a transaction, which writes for many, has none."""
    traced = Traced()
    tracer = traced.provider.get_tracer("host")
    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)
        trace_gateway(gateway, provider=traced.provider)
        with tracer.start_as_current_span("run") as run:
            async with gateway.turn(MAIN):
                await gateway.session_status(CHILD, changes_since=1)
    parents = {span.name: span.parent and span.parent.span_id for span in traced.spans()}
    assert parents == {
        "kizuki.commit": None,
        "kizuki.session_status": run.get_span_context().span_id,
        "kizuki.turn": run.get_span_context().span_id,
        "run": None,
    }


async def test_an_error_is_named_by_its_type_and_no_span_holds_a_key(tmp_path: Path) -> None:
    """A failed operation is an error with a type and without a text; no attribute, event or status says a session key."""
    traced = Traced()
    async with open_gateway(tmp_path / "state.db") as gateway:
        trace_gateway(gateway, provider=traced.provider)
        await spoken_to(gateway)
        with pytest.raises(InvalidSessionKey):
            await gateway.open_session("agent::secret")
        async with gateway.turn(MAIN):
            pass
    failed = [span for span in traced.spans() if span.status.status_code is StatusCode.ERROR]
    assert [(span.name, dict(span.attributes or {})["error.type"]) for span in failed] == [("kizuki.open_session", "InvalidSessionKey")]
    everything = "".join(span.to_json() for span in traced.spans())
    assert "agent:" not in everything
    assert "secret" not in everything


async def test_without_a_provider_spans_go_nowhere(tmp_path: Path) -> None:
    """The API alone does: a host that configured no tracing loses nothing by it."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        trace_gateway(gateway)
        await spoken_to(gateway)
        assert len(await gateway.pending(MAIN)) == 1
