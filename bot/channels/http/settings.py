"""For admins: the settings that apply, and what `nod doctor` says of them."""

from dataclasses import asdict

from starlette.responses import JSONResponse

from bot.channels.http.site import Admin, Here, api_routes, ok
from bot.channels.http.wire import Findings, SettingList
from bot.lookup.settings import listed

router = api_routes("status", prefix="/api")


@router.get("/settings", summary="For admins: the settings that apply", response_model=SettingList)
async def settings(_: Admin, site: Here) -> JSONResponse:
    """Of secrets only whether they are set."""
    return ok(settings=[asdict(each) for each in listed(site.doctor.settings)])


@router.get("/doctor", summary="For admins: what nod doctor finds", response_model=Findings)
async def doctor(_: Admin, site: Here) -> JSONResponse:
    """The settings and all they reach are looked at, in at most two minutes. Findings are kept for 10 s."""
    found = await site.doctor.examine()
    findings = [
        {"name": each.name, "health": each.health.lower(), "fix": each.fix} for each in found.findings
    ]
    return ok(at=found.at.isoformat(), findings=findings, fault=found.fault)
