"""The rerankers of a deployment by address: a workspace's settings may name another one than the deployment's."""

from collections.abc import Callable

from app.clients.circuit import CircuitBreaker
from app.clients.http import UpstreamCall
from app.clients.rerank.client import HttpReranker


class RerankerPool:
    """One client for each (address, model), made when it is first asked for; its circuit is its own.

    Which addresses may be named is checked where settings are written.
    """

    def __init__(
        self,
        *,
        api_key: str | None,
        observer: Callable[[UpstreamCall], None] | None = None,
        on_circuit: Callable[[str], None] | None = None,
    ) -> None:
        """`api_key` is sent to all of them."""
        self._api_key, self._observer, self._on_circuit = api_key, observer, on_circuit
        self._clients: dict[tuple[str, str], HttpReranker] = {}

    def at(self, url: str, model: str) -> HttpReranker:
        client = self._clients.get((url, model))
        if client is None:
            client = self._clients[url, model] = HttpReranker(
                url=url,
                api_key=self._api_key,
                model=model,
                circuit=CircuitBreaker(on_change=self._on_circuit),
                observer=self._observer,
            )
        return client

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()
