"""Every error of the client, drawn once. The message says what happened and what to do.

NodError
├── CouldNotAsk           what people decided is not known
│   ├── Unreachable       Nod could not be reached, for longer than the client's patience
│   ├── Unsendable        the question holds what JSON can't hold, so it was not sent
│   └── Refused           Nod refused: ``status`` (of HTTP), ``fields`` (which is wrong, and why)
├── EditDoesNotFit        people approved other arguments, and the function can't take them
└── NotApproved           ``request`` tells the rest
    ├── Declined          a person said no; ``request.reason`` says why, if they said
    ├── Expired           no one decided in time
    ├── Cancelled         withdrawn before anyone decided
    ├── Undeliverable     it could not be shown to anyone who may decide
    ├── Failed            approved, but Nod could not finish; ask again
    ├── OutcomeUnknown    approved, but Nod stopped before it could say so; ask again
    └── StillWaiting      your ``wait`` is over and no one has decided yet
"""

from collections.abc import Mapping

from nod_client.request import End, Request


class NodError(Exception):
    """Anything this client raises on purpose."""


class CouldNotAsk(NodError):
    """What people decided is not known."""


class Unreachable(CouldNotAsk):
    """Nod could not be reached."""


class Unsendable(CouldNotAsk):
    """The question holds something that JSON can't hold, so it was not sent."""


class Refused(CouldNotAsk):
    """Nod refused the request, so asking again with the same contents can't help."""

    def __init__(self, message: str, status: int, fields: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.fields = dict(fields or {})
        super().__init__(message)


class EditDoesNotFit(NodError):
    """People approved arguments that the function can't take, so it did not run."""


class NotApproved(NodError):
    """Do not do it. The message is a sentence for people and models."""

    def __init__(self, request: Request) -> None:
        self.request = request
        super().__init__(request.told)


class Declined(NotApproved):
    """A person said no."""


class Expired(NotApproved):
    """No one decided in time."""


class Cancelled(NotApproved):
    """Withdrawn before anyone decided."""


class Undeliverable(NotApproved):
    """It could not be shown to anyone who may decide."""


class Failed(NotApproved):
    """Approved, but Nod could not finish."""


class OutcomeUnknown(NotApproved):
    """Approved, but Nod stopped before it could say so."""


class StillWaiting(NotApproved):
    """No one has decided yet."""


_ENDS: dict[End, type[NotApproved]] = {
    End.WAITING: StillWaiting,
    End.DECLINED: Declined,
    End.EXPIRED: Expired,
    End.CANCELLED: Cancelled,
    End.UNDELIVERABLE: Undeliverable,
    End.FAILED: Failed,
    End.OUTCOME_UNKNOWN: OutcomeUnknown,
}


def approved(request: Request) -> Request:
    """The request, if people approved it. Raises the `NotApproved` of its end."""
    if request.end is End.APPROVED:
        return request
    raise _ENDS[request.end](request)
