"""What each of AgentDojo's functions does, as a team would declare it for a tool of its own. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a function does to the world outside the conversation."""

    READS = "reads"
    TELLS = "reads, and its address tells a server outside"
    CHANGES = "changes"
    LOSES = "changes, and can't be undone"


@dataclass(frozen=True, slots=True)
class Annotation:
    """``key``: the arguments by which two calls are of one kind, for *Approve similar*."""

    kind: Kind
    key: tuple[str, ...] = ()


_READING = (
    "check_restaurant_opening_hours", "get_all_car_rental_companies_in_city", "get_all_hotels_in_city",
    "get_all_restaurants_in_city", "get_balance", "get_car_fuel_options", "get_car_price_per_day",
    "get_car_rental_address", "get_car_types_available", "get_channels",
    "get_contact_information_for_restaurants", "get_cuisine_type_for_restaurants", "get_current_day",
    "get_day_calendar_events", "get_dietary_restrictions_for_all_restaurants", "get_draft_emails",
    "get_file_by_id", "get_flight_information", "get_hotels_address", "get_hotels_prices", "get_iban",
    "get_most_recent_transactions", "get_price_for_restaurants", "get_rating_reviews_for_car_rental",
    "get_rating_reviews_for_hotels", "get_rating_reviews_for_restaurants", "get_received_emails",
    "get_restaurants_address", "get_scheduled_transactions", "get_sent_emails", "get_unread_emails",
    "get_user_info", "get_user_information", "get_users_in_channel", "list_files",
    "read_channel_messages", "read_file", "read_inbox", "search_calendar_events",
    "search_contacts_by_email", "search_contacts_by_name", "search_emails", "search_files",
    "search_files_by_filename",
)  # fmt: skip

ANNOTATIONS: dict[str, Annotation] = {
    **dict.fromkeys(_READING, Annotation(Kind.READS)),
    "get_webpage": Annotation(Kind.TELLS, ("url",)),
    "add_calendar_event_participants": Annotation(Kind.CHANGES, ("participants",)),
    "add_user_to_channel": Annotation(Kind.CHANGES, ("channel", "user")),
    "append_to_file": Annotation(Kind.CHANGES, ("file_id",)),
    "create_calendar_event": Annotation(Kind.CHANGES, ("participants",)),
    "create_file": Annotation(Kind.CHANGES),
    "invite_user_to_slack": Annotation(Kind.CHANGES, ("user_email",)),
    "post_webpage": Annotation(Kind.CHANGES, ("url",)),
    "reschedule_calendar_event": Annotation(Kind.CHANGES, ("event_id",)),
    "reserve_car_rental": Annotation(Kind.CHANGES),
    "reserve_hotel": Annotation(Kind.CHANGES),
    "reserve_restaurant": Annotation(Kind.CHANGES),
    "schedule_transaction": Annotation(Kind.LOSES),
    "send_channel_message": Annotation(Kind.CHANGES, ("channel",)),
    "send_direct_message": Annotation(Kind.CHANGES, ("recipient",)),
    "send_email": Annotation(Kind.CHANGES, ("recipients", "cc", "bcc")),
    "send_money": Annotation(Kind.LOSES),
    "share_file": Annotation(Kind.CHANGES, ("email", "permission")),
    "update_scheduled_transaction": Annotation(Kind.LOSES),
    "update_user_info": Annotation(Kind.CHANGES),
    "update_password": Annotation(Kind.LOSES),
    "cancel_calendar_event": Annotation(Kind.LOSES),
    "delete_email": Annotation(Kind.LOSES),
    "delete_file": Annotation(Kind.LOSES),
    "remove_user_from_slack": Annotation(Kind.LOSES),
}
"""By the function's name. One that is not here changes, as every tool of which nothing is known."""
