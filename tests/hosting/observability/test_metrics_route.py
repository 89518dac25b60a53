"""`/metrics` of the HTTP application, asked as Prometheus does."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="needs kizuki[observability]")
pytest.importorskip("starlette", reason="needs kizuki[http]")
pytest.importorskip("httpx", reason="needs kizuki[http]")

import httpx

from kizuki.actors import Gateway, open_gateway
from kizuki.actors.hosting.http import metrics_route
from kizuki.actors.hosting.http.app import http_app
from tests.hosting.integrations.staging import spoken_to


async def ask(gateway: Gateway, *, token: str | None = None, shown: str | None = None) -> httpx.Response:
    app = http_app(gateway, token=token)
    headers = {} if shown is None else {"Authorization": f"Bearer {shown}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers) as client:
        answer = await client.get("/metrics")
    await app.close()
    return answer


async def test_prometheus_reads_the_gateways_metrics(tmp_path: Path) -> None:
    """The answer is Prometheus' text format, with what the gateway did, and what only the database knows."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)
        answer = await ask(gateway)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "kizuki_events_recorded_total 2.0\n" in answer.text
    assert "kizuki_notices_pending 1.0\n" in answer.text


async def test_metrics_are_behind_the_token(tmp_path: Path) -> None:
    """Where a token is asked for, it is asked for here, too."""
    token = "t" * 32
    async with open_gateway(tmp_path / "state.db") as gateway:
        assert (await ask(gateway, token=token)).status_code == 401
        assert (await ask(gateway, token=token, shown=token)).status_code == 200


async def test_without_the_extra_there_is_no_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without prometheus-client serves everything else."""
    monkeypatch.setattr(metrics_route, "AVAILABLE", False)
    async with open_gateway(tmp_path / "state.db") as gateway:
        assert (await ask(gateway)).status_code == 404
