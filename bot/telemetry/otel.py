"""Spans for an OpenTelemetry collector, over HTTP. What is traced, and by which names, is in ``tracing.py``.

Several processes can add spans to a *keyed trace* without exchanging ids: the ids of the trace and of its
first span are computed from a key, such as a proposal's id.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    set_span_in_context,
    use_span,
)

from bot import __version__

Value = str | int | float | bool | tuple[str, ...]

_EXPORT_TIMEOUT_SECONDS = 2.0  # also bounds how long the end of a process waits for a collector
_forced_ids: ContextVar[SpanContext | None] = ContextVar("forced_ids", default=None)
"""The ids for the span that begins now; None: random ones."""


class _IdGenerator(RandomIdGenerator):
    """A generator of random ids, except for the first span of a keyed trace."""

    def generate_trace_id(self) -> int:
        forced = _forced_ids.get()
        if forced:
            return forced.trace_id
        return super().generate_trace_id()

    def generate_span_id(self) -> int:
        forced = _forced_ids.get()
        if forced:
            return forced.span_id
        return super().generate_span_id()


def _first_span_of(key: str) -> SpanContext:
    """Return the context of the first span of ``key``'s trace, the same in every process."""
    digest = hashlib.sha256(f"nod {key}".encode()).digest()
    trace_id = int.from_bytes(digest[:16])
    span_id = int.from_bytes(digest[16:24])
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class Otel:
    """The spans of one process. No library makes spans here, since its spans could hold secrets."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], process: str) -> None:
        about = {"service.name": "nod", "service.version": __version__, "service.instance.id": process}
        configured = OTELResourceDetector().detect()  # OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
        self._provider = TracerProvider(
            resource=Resource.create(about).merge(configured),
            id_generator=_IdGenerator(),
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(
            f"{endpoint.rstrip('/')}/v1/traces", headers=headers, timeout=_EXPORT_TIMEOUT_SECONDS
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("nod", __version__)

    def begin_child(self, name: str, values: Mapping[str, Value], *, client: bool = False) -> Span:
        """Begin a span within the current one."""
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        return self._tracer.start_span(name, kind=kind, attributes=values)

    def begin_root(self, name: str, values: Mapping[str, Value], linked: Iterable[str]) -> Span:
        """Begin a trace with random ids, and with links to the keyed traces of ``linked``."""
        links = [Link(_first_span_of(key)) for key in linked]
        return self._tracer.start_span(name, context=Context(), attributes=values, links=links)

    def begin_keyed(self, key: str, name: str, values: Mapping[str, Value], cause: Span | None) -> Span:
        """Begin the keyed trace of ``key``. ``cause``: the span that caused it, if any."""
        links = [Link(cause.get_span_context())] if cause else []
        token = _forced_ids.set(_first_span_of(key))
        try:
            return self._tracer.start_span(name, context=Context(), attributes=values, links=links)
        finally:
            _forced_ids.reset(token)

    def continue_keyed(self, key: str, name: str, values: Mapping[str, Value]) -> Span:
        """Begin a further span in the keyed trace of ``key``, below its first span."""
        trace = set_span_in_context(NonRecordingSpan(_first_span_of(key)), Context())
        return self._tracer.start_span(name, context=trace, attributes=values)

    @staticmethod
    def current(span: Span) -> AbstractContextManager[Span]:
        """Make a span current in the context. Exceptions are not recorded: their text may hold secrets."""
        return use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False)

    def close(self) -> None:
        """Send the remaining spans, and wait until they are sent."""
        self._provider.shutdown()
