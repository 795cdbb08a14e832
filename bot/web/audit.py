"""The audit log for admins: its rows a page at a time, whether it is intact, and all of it as a file."""

from typing import Annotated, Literal

from fastapi import Depends, Query
from fastapi.exceptions import RequestValidationError
from starlette.responses import Response

from bot.domain.people import Actor
from bot.domain.record import Wanted
from bot.web.body import Limit, Since
from bot.web.schemas.rules import AuditPage, Verified
from bot.web.site import Admin, Here, api_routes

router = api_routes("audit", prefix="/api")

_FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv"}
_NO_ACCOUNT = "Write an account, such as slack:T1/U7 or http:ci."


async def _wanted(
    who: Annotated[str, Query(max_length=200, description="one account, and those linked with it")] = "",
    tool: Annotated[str, Query(max_length=200, description="one tool, and the rules about it")] = "",
    proposal: Annotated[
        str, Query(max_length=64, description="one proposal, by the beginning of its ID")
    ] = "",
    grant: Annotated[int | None, Query(ge=1, le=999_999_999, description="7 for G-7")] = None,
    since: Annotated[Since | None, Query(description="only from then on; UTC unless it says")] = None,
) -> Wanted:
    if who:
        try:
            Actor.parse(who)
        except ValueError:
            fault = {"type": "account", "loc": ("query", "who"), "msg": _NO_ACCOUNT, "input": who}
            raise RequestValidationError([fault]) from None
    return Wanted(who, tool, proposal, since, grant)


Sought = Annotated[Wanted, Depends(_wanted)]


@router.get("/audit", summary="For admins: the audit log, newest first")
async def rows(
    _: Admin,
    site: Here,
    wanted: Sought,
    limit: Limit = 50,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="an earlier page's `next`")] = None,
) -> AuditPage:
    """``next`` is the ``before`` of the next page; null on the last."""
    narrowed = wanted.below(before)
    found, further = await site.channel.admin.audit_page(narrowed, limit)
    return AuditPage.of(rows=found, next=further)


@router.get("/audit/verify", summary="For admins: whether the audit log is intact")
async def verify(
    _: Admin,
    site: Here,
    anchor: Annotated[
        list[Annotated[str, Query(pattern=r"^[0-9]{1,15}-[0-9a-fA-F]{16,64}$")]] | None,
        Query(max_length=20, description="what an earlier answer gave as `anchor`; may be repeated"),
    ] = None,
) -> Verified:
    """Every row is checked, so with a long log this takes a while."""
    faults, newest = await site.channel.admin.audit_faults(anchor or ())
    return Verified(intact=not faults, faults=faults, anchor=newest)


@router.get(
    "/audit/export",
    summary="For admins: the audit log as a file, oldest first",
    response_class=Response,
    response_model=None,
    responses={200: {"content": {kind: {} for kind in _FORMATS.values()}}},
)
async def export(
    _: Admin,
    site: Here,
    wanted: Sought,
    form: Annotated[Literal["jsonl", "csv"], Query(alias="format")] = "jsonl",
) -> Response:
    """Without secrets. Each line of JSON is a row as `GET /api/audit` gives it."""
    text = await site.channel.admin.audit_file(wanted, form)
    attached = f'attachment; filename="audit.{form}"'
    return Response(text, media_type=_FORMATS[form], headers={"Content-Disposition": attached})
