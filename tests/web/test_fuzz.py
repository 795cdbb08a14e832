"""Schemathesis over the document: what no one thought of sending gets no fault, and no answer but those."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.web.conftest import CHIEF, TOKENS, Json, Serve
from tests.web.scripted import ScriptedModel, ask, say

pytestmark = pytest.mark.slow

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ENDLESS = {"proposals_changes", "conversations_conversation_events"}  # read in test_events.py
EXAMPLES = 8  # for each operation


def fuzzed(document: Json, url: str, known: Mapping[str, str]) -> list[str]:
    """Send what fits the document and what does not; what was wrong with the answers."""
    faults = []
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = found.ok()
        ident = operation.definition.raw["operationId"]
        if ident not in ENDLESS:
            try:
                _examples_of(operation, url, known)()
            except Exception as error:  # noqa: BLE001 - whatever a check says is a finding
                faults.append(f"{ident}: {error}")
    return faults


def _examples_of(operation: Any, url: str, known: Mapping[str, str]) -> Any:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(case=operation.as_strategy(), real=st.booleans())
    def send(case: Any, real: bool) -> None:
        names = case.path_parameters or {}
        if real:  # otherwise hardly a path would lead to anything
            case.path_parameters = {**names, **{k: v for k, v in known.items() if k in names}}
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        response = case.call(base_url=url, headers={"Authorization": f"Bearer {CHIEF}"}, timeout=20)
        case.validate_response(response, checks=CHECKS)

    return send


async def test_no_request_gets_a_fault_of_the_server_or_an_answer_outside_the_document(serve: Serve):
    model = ScriptedModel(ask(("keep", {"text": "milk"})), say("Kept."))
    who = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",)}
    async with serve(model=model, token=CHIEF, patience=300, **who) as nod:
        document = (await nod.client.get("/openapi.json")).json()
        (proposal,) = await nod.proposed("keep milk")
        assert (await nod.client.get("/api/doctor", timeout=150)).is_success  # later its answer is kept
        known = {"proposal_id": proposal["id"], "conversation_id": proposal["conversation_id"]}
        assert await asyncio.to_thread(fuzzed, document, nod.url, known) == []
