"""Routes of the audit log, for admins: its rows in pages, the check if it is intact, and all of it as a file.

Each row has the hash of the row before it, so a check finds a row that was changed or removed later. It can't
find that the newest rows were removed. For that there are anchors: an admin keeps the number and the hash of
a row outside the database, and sends them to a later check.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import Depends, Query
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bot.approvals.lookup.admin import AuditCheck
from bot.domain.audit import AuditFilter
from bot.domain.people import Actor
from bot.web.body import Limit, Since
from bot.web.progress_lines import write_progress_lines
from bot.web.schemas.audit import AuditPage, Verified
from bot.web.site import Admin, SiteDep, make_router

router = make_router("audit", prefix="/api")

_JSON_LINES = "application/x-ndjson"
_FORMATS = {"jsonl": _JSON_LINES, "csv": "text/csv"}
_LAST_ROW_HEADER = "Nod-Last-Row"
_UNBUFFERED_HEADERS = {"X-Accel-Buffering": "no"}  # a proxy sends each line on as it comes
_NO_ACCOUNT_TEXT = "Write an account, such as slack:T1/U7 or http:ci."


async def _parse_filter(
    who: Annotated[str, Query(max_length=200, description="one account, and those linked with it")] = "",
    tool: Annotated[str, Query(max_length=200, description="one tool, and the rules about it")] = "",
    proposal: Annotated[
        str, Query(max_length=64, description="one proposal, by the beginning of its ID")
    ] = "",
    grant: Annotated[int | None, Query(ge=1, le=999_999_999, description="7 for G-7")] = None,
    since: Annotated[Since | None, Query(description="only from then on; UTC unless it says")] = None,
) -> AuditFilter:
    if who:
        try:
            Actor.parse(who)
        except ValueError:
            fault = {"type": "account", "loc": ("query", "who"), "msg": _NO_ACCOUNT_TEXT, "input": who}
            raise RequestValidationError([fault]) from None
    return AuditFilter(who, tool, proposal, since, grant)


FilterParams = Annotated[AuditFilter, Depends(_parse_filter)]
"""The rows that a request wants, by its query parameters."""


@router.get("/audit", summary="For admins: the audit log, newest first")
async def rows(
    _: Admin,  # only checks that the caller is an admin
    site: SiteDep,
    row_filter: FilterParams,
    limit: Limit = 50,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="an earlier page's `next`")] = None,
) -> AuditPage:
    """``next`` is the ``before`` of the next page; null on the last."""
    page_rows, next_before = await site.channel.admin.audit_page(row_filter.with_numbers_below(before), limit)
    return AuditPage.of(rows=page_rows, next=next_before)


@router.get(
    "/audit/verify",
    summary="For admins: whether the audit log is intact",
    response_model=Verified,
    responses={200: {"content": {_JSON_LINES: {}}}},
)
async def verify(
    _: Admin,
    request: Request,
    site: SiteDep,
    anchor: Annotated[
        list[Annotated[str, Query(pattern=r"^[0-9]{1,15}-[0-9a-fA-F]{16,64}$")]] | None,
        Query(max_length=20, description="what an earlier answer gave as `anchor`; may be repeated"),
    ] = None,
) -> Verified | StreamingResponse:
    """Every row is checked, which takes a while for a long log.

    With `Accept: application/x-ndjson` the response has lines: each says how many rows are checked, such as
    `{"done": 2000, "total": 9000}`, and the last line is the answer.
    """
    if _JSON_LINES not in request.headers.get("accept", ""):
        return _make_answer(await site.channel.admin.check_audit_log(anchor or ()))
    lines = write_progress_lines(
        lambda progress: site.channel.admin.check_audit_log(anchor or (), progress),
        lambda check: _make_answer(check).model_dump_json(),
    )
    return StreamingResponse(lines, media_type=_JSON_LINES, headers=_UNBUFFERED_HEADERS)


def _make_answer(check: AuditCheck) -> Verified:
    return Verified(intact=not check.faults, faults=check.faults, anchor=check.newest_anchor)


async def _limit_exports(actor: Admin, site: SiteDep) -> AsyncIterator[None]:
    """Count an export as open until its response ends.

    Raises TooManyRequests if the caller has too many open.
    """
    with site.export_limit.hold(str(actor)):
        yield


@router.get(
    "/audit/export",
    summary="For admins: the audit log as a file, oldest first",
    response_class=Response,
    response_model=None,
    responses={200: {"content": {kind: {} for kind in _FORMATS.values()}}},
)
async def export(
    _: Admin,
    site: SiteDep,
    row_filter: FilterParams,
    _is_counted: Annotated[None, Depends(_limit_exports)],  # while the response lasts
    file_format: Annotated[Literal["jsonl", "csv"], Query(alias="format")] = "jsonl",
) -> Response:
    """The file has no secrets. Each line of JSON is a row as `GET /api/audit` gives it.

    The header `Nod-Last-Row` is the number of the last row, by which a reader can tell how far the file is.
    """
    file = await site.channel.admin.audit_file(row_filter, file_format)
    headers = {
        **_UNBUFFERED_HEADERS,
        "Content-Disposition": f'attachment; filename="audit.{file_format}"',
        _LAST_ROW_HEADER: str(file.last_row),
    }
    return StreamingResponse(file.pieces, media_type=_FORMATS[file_format], headers=headers)
