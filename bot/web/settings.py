"""For admins: the settings that apply, and what `nod doctor` says of them."""

from bot.approvals.lookup.settings import listed as settings_listed
from bot.web.schemas.status import Findings, SettingList
from bot.web.site import Admin, Here, api_routes

router = api_routes("status", prefix="/api")


@router.get("/settings", summary="For admins: the settings that apply")
async def settings(_: Admin, site: Here) -> SettingList:
    """Of secrets only whether they are set."""
    return SettingList.of(settings=settings_listed(site.doctor.settings))


@router.get("/doctor", summary="For admins: what nod doctor finds")
async def doctor(_: Admin, site: Here) -> Findings:
    """The settings and all they reach are looked at, in at most two minutes. Findings are kept for 10 s."""
    return Findings.model_validate(await site.doctor.examine())
