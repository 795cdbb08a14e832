"""Every error of the client. The message of each says what happened and what to do.

NodError
├── CouldNotAsk           the request may not have reached people, so their decision is not known
│   ├── Unreachable       Nod could not be reached, for longer than the client's patience
│   ├── Unsendable        the question holds what JSON can't hold, so it was not sent
│   └── Refused           Nod refused the request: ``status`` (of HTTP), ``fields`` (each fault, by field)
├── EditDoesNotFit        people approved other arguments, and the function can't take them
└── NotApproved           the request ended in another way, or is open; ``request`` has the details
    ├── Declined          a person said no; ``request.reason`` says why, if they said
    ├── Expired           no one decided in time
    ├── Cancelled         the request was withdrawn before anyone decided
    ├── Undeliverable     the request could not be shown to anyone who may decide
    ├── Failed            a person approved, but Nod could not finish; ask again
    ├── OutcomeUnknown    a person approved, but Nod stopped before it could say so; ask again
    └── StillWaiting      your ``wait`` is over and no one has decided yet
"""

from collections.abc import Mapping

from nod_client.request import End, Request


class NodError(Exception):
    """Anything this client raises on purpose."""


class CouldNotAsk(NodError):
    """The request may not have reached people, so their decision is not known."""


class Unreachable(CouldNotAsk):
    """Nod could not be reached."""


class Unsendable(CouldNotAsk):
    """The question holds something that JSON can't hold, so it was not sent."""


class Refused(CouldNotAsk):
    """Nod refused the request, or its reply can't be used. To ask again with the same contents can't help."""

    def __init__(self, message: str, status: int, fields: Mapping[str, str] | None = None) -> None:
        """``status``: of HTTP. ``fields``: the faults of the request, by field."""
        self.status = status
        self.fields = dict(fields or {})
        super().__init__(message)


class EditDoesNotFit(NodError):
    """People approved arguments that the function can't take, so it did not run."""


class NotApproved(NodError):
    """No one has approved the request, so do not do it. The message is for people and models."""

    def __init__(self, request: Request) -> None:
        self.request = request
        super().__init__(request.told)


class Declined(NotApproved):
    """A person said no."""


class Expired(NotApproved):
    """No one decided in time."""


class Cancelled(NotApproved):
    """The request was withdrawn before anyone decided."""


class Undeliverable(NotApproved):
    """The request could not be shown to anyone who may decide."""


class Failed(NotApproved):
    """A person approved, but Nod could not finish."""


class OutcomeUnknown(NotApproved):
    """A person approved, but Nod stopped before it could say so."""


class StillWaiting(NotApproved):
    """No one has decided yet."""


_ERRORS: dict[End, type[NotApproved]] = {
    End.WAITING: StillWaiting,
    End.DECLINED: Declined,
    End.EXPIRED: Expired,
    End.CANCELLED: Cancelled,
    End.UNDELIVERABLE: Undeliverable,
    End.FAILED: Failed,
    End.OUTCOME_UNKNOWN: OutcomeUnknown,
}


def approved(request: Request) -> Request:
    """Return the request if people approved it, else raise the `NotApproved` for its state."""
    if request.end is End.APPROVED:
        return request
    raise _ERRORS[request.end](request)
