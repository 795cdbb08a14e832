"""Two tiers of tests: `make test` runs those of the day, `make test-more` those that a night is for.

A behaviour moves to the night where its cost is out of proportion to what a change is likely to break there,
and something of its kind stays in the day. Each entry says why.
"""

import zlib
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import pytest

MORE = pytest.mark.more
LINT = (
    "tests/test_architecture.py",
    "tests/test_front_doors.py",
    "tests/test_habits.py",
    "tests/test_kinds.py::test_few_places_ask_which_kind_a_proposal_is",
    "tests/test_language.py",
    "tests/test_names.py",
    "tests/test_staircase.py",
    "tests/test_tiers.py",
    "tests/test_words.py",
)
"""Tests that read the source tree alone: part of `make lint`."""

LONGEST = (
    "tests/tools/test_reading.py",
    "tests/store/audit/test_chain.py",
    "tests/web/test_too_much.py",
    "tests/web/test_tracing.py",
    "tests/features/connections/test_attacks.py",
    "tests/approvals/test_hooks.py",
    "tests/cli/test_demo.py",
    "tests/tools/builtin/trials/test_applying.py",
)
"""Files that take longest. They begin first, so that at the end no process is left alone with one of them."""

_TAKE_TURNS = ("tests/contracts/test_telegram.py", "tests/contracts/test_discord.py")

_AGENTS = "tests/features/mcp/test_agents.py"
_TWO_CHANNELS = "tests/features/connections/test_two_channels.py"
_ADOPTION = "tests/store/test_adoption.py"
_AUDIT = "tests/store/audit"
_CONSOLE = "tests/web/console"
_MCP = "tests/tools/mcp"
NIGHT = {
    "tests/torture/test_torture.py": "real processes killed at random; the day crashes at each write",
    "tests/torture/test_faults.py": "full disks, frozen processes, clocks that jump, on real processes",
    "tests/features/agents/test_thousand.py": "a thousand open calls; the day counts the polls alone",
    "tests/features/attention/test_attention.py::test_of_a_flood_nothing_is_lost_or_late[999": (
        "a thousand cards; the day has forty"
    ),
    "tests/features/push/test_devices.py::test_five_hundred": "the day has twenty devices",
    "tests/features/push/test_devices.py::test_a_person_has_at_most_twenty_devices_and_is_told[500": (
        "five hundred tries; the day has thirty"
    ),
    "tests/torture/test_presses.py": "three hundred presses on a real process",
    "tests/cli/test_package.py": "builds and installs wheels; the day runs the checkout",
    "tests/cli/test_clock.py": "a clock that is set under a real process",
    "tests/clients/test_wheel.py::test_from_an_empty_folder": "installs the client's wheel",
    "tests/clients/test_wheel.py::test_its_last_command": "the same, for a command",
    "tests/clients/test_examples.py::test_the_bash_script": "the Python script's steps, in bash",
    "tests/clients/test_examples.py::test_the_workflows": "the Python script's steps, in a workflow",
    "tests/clients/test_examples.py::test_an_agent_that_is_killed": "loads large libraries twice",
    "tests/clients/test_examples.py::test_the_agents_deploy": "the adapters themselves are tests of the day",
    "tests/clients/test_examples.py::test_the_dag": "needs an Airflow",
    "tests/deploy/test_rolling.py": "a rolling restart of real processes",
    "tests/test_benchmarks.py": "measures speed; each part's rows are the same in every change",
    "tests/web/test_document.py::test_a_validator_of_openapi": (
        "three seconds; answers are held to the document in the day"
    ),
    "tests/web/test_fuzz.py": "generated requests to every path of the document",
    "tests/features/mcp/test_conformance.py": "the public suite, from npm",
    "tests/tools/mcp/test_conformance.py::test_the_client_passes": "the public suite, from npm",
    "tests/web/test_copilotkit.py": "a page of a public front end, bundled from npm",
    "tests/web/test_agui_client.py": "the public client, from npm; its protocol is a test of the day",
    "tests/conversations/test_recorded.py::test_what_the_model_is_sent_is_what_was_recorded[two_hundred": (
        "nine shorter conversations stay in the day"
    ),
    "tests/agentdojo/test_agentdojo.py::test_a_reviewer": "two hundred calls of a public suite",
    "tests/agentdojo/test_agentdojo.py::test_an_obeyed": "whole tasks of a public suite",
    "tests/machines/test_file_machine.py": "random orders; the state machine of proposals stays in the day",
    "tests/machines/test_memory_machine.py": "random orders; the state machine of proposals stays in the day",
    "tests/machines/test_people_machine.py": "random orders; the state machine of proposals stays in the day",
    "tests/store/test_tables.py::test_what_a_foreign_key_names_is_imported_with_it": (
        "a process for each file of tables; the day imports them all in one"
    ),
    "tests/cli/test_tools.py::test_with_wait_a_decline": "two processes; an approval is in the day",
    "tests/contracts/test_http.py::TestHttp": "tests of the HTTP interface are in tests/web, in the day",
    "tests/contracts/test_shell.py::TestShell": "the command line reads the same rows; Slack's is whole",
    "tests/contracts/test_plugin.py::TestLines": "the smallest channel; Slack's contract is whole in the day",
    "tests/web/console/test_pages.py::test_axe_finds_nothing_on_any_page[dark": "light is in the day",
    "tests/web/console/test_docs_page.py": "a library lays it out; the document itself is checked in the day",
    "tests/web/console/test_inbox.py::test_the_card_and_its_buttons_are_seen[820": (
        "the phone and the widest are in the day"
    ),
    "tests/web/console/test_inbox.py::test_the_card_and_its_buttons_are_seen[1024": (
        "the phone and the widest are in the day"
    ),
    "tests/web/console/test_inbox.py::test_nothing_jumps[820": "the phone and the widest are in the day",
    "tests/web/console/test_inbox.py::test_nothing_jumps[1024": "the phone and the widest are in the day",
    "tests/web/console/test_installing.py::test_while_nod_is_away_a_page_says_so[dark": "light is in the day",
    "tests/web/console/test_pages.py::test_no_page_is_too_high_or_misleads[desktop": (
        "the phone is in the day"
    ),
    "tests/web/console/test_pages.py::test_no_page_is_too_high_or_misleads[small": "the phone is in the day",
    "tests/web/console/test_signing_in.py::test_the_organisations_account_signs_in_and_out[phone": (
        "the desktop is in the day"
    ),
    "tests/web/console/test_tabs.py::test_a_hidden_tab_holds_no_stream[plain": (
        "the old browser lacks more, and is in the day"
    ),
    "tests/web/console/test_tabs.py::test_where_the_tab_that_leads_falls_silent_another_does[plain": (
        "one that is closed there is in the day"
    ),
    "tests/web/console/test_trials.py::test_a_trial_is_shown_applied_and_undone[dark": "light is in the day",
    "tests/web/console/test_trials.py::test_a_trial_is_shown_applied_and_undone[phone": "light is in the day",
    f"{_AGENTS}::test_a_cancelled_call_withdraws_its_card[permission_prompt-given0-over_s": (
        "each begins a process; two of them are in the day"
    ),
    f"{_AGENTS}::test_a_cancelled_call_withdraws_its_card[request_approval-given1-over_s": (
        "each begins a process; two of them are in the day"
    ),
    f"{_AGENTS}::test_a_permission_prompt_is_allowed_with_what_people_let_through[over_stdio": (
        "each begins a process; two of them are in the day"
    ),
    f"{_AGENTS}::test_an_empty_summary_is_refused_in_words[over_stdio": (
        "each begins a process; two of them are in the day"
    ),
    f"{_AGENTS}::test_while_people_decide_the_agent_is_told_of_progress[over_stdio": (
        "each begins a process; two of them are in the day"
    ),
    "tests/web/test_model_server.py::test_two_hundred_turns": "the recorded conversations keep it in the day",
    "tests/features/mcp/test_document.py": (
        "a process for each command of a page; tests/web/test_mcp_logins.py has them in one"
    ),
    "tests/channels/slack/test_setup.py::test_a_slack_that_is_down_holds_up_no_start[sqlite-how2": (
        "the library tries again by the clock; two other faults are in the day"
    ),
    "tests/cli/test_commands.py::test_doctor_lists_own_tools": (
        "two processes; the day has its other faults in one"
    ),
    "tests/cli/test_commands.py::test_doctor_starts_each_mcp_server": (
        "a process for each fault; tests/tools/mcp has them in the day"
    ),
    "tests/cli/test_demo.py::test_run_without_a_model": "two processes for one line",
    "tests/cli/test_demo.py::test_the_demo_with_a_team_opens": "a process for one address",
    "tests/clients/test_edges.py::test_the_hook_blocks_whatever_the_server_answers": (
        "a process for each answer; the client it calls hears them all in the day"
    ),
    "tests/clients/test_examples.py::test_the_graph_deploys": "the adapter itself has its tests in the day",
    "tests/conversations/test_makers.py::test_no_request_of_thirty_turns_is_refused[anthropic": (
        "three others stay in the day"
    ),
    "tests/tools/test_reading.py::test_what_has_no_end_is_bounded_and_told[parts": (
        "takes all its time; eight others stay in the day"
    ),
    "tests/tools/test_reading.py::test_what_has_no_end_is_bounded_and_told[a million": (
        "takes all its time; eight others stay in the day"
    ),
    "tests/web/test_starting.py::test_a_press_that_waits_too_long": (
        "waits ten seconds by the clock; tests/store has it with one"
    ),
    "tests/conversations/test_makers.py::test_no_request_of_thirty_turns_is_refused[openai": (
        "three others stay in the day"
    ),
    "tests/cli/test_commands.py::test_doctor_alongside_a_running_nod": (
        "a process of its own; what it tells is tested in one in the day"
    ),
    "tests/cli/test_commands.py::test_doctor_asks_a_running_nod": (
        "a process of its own; what it tells is tested in one in the day"
    ),
    "tests/cli/test_demo.py::test_a_stop_says_which_approved_change": (
        "a process; tests/cli/test_ending.py has an end by signal in the day"
    ),
    "tests/cli/test_demo.py::test_a_wrong_setting_of_a_real_process": (
        "a process of its own; what it tells is tested in one in the day"
    ),
    "tests/web/console/test_tabs.py::test_twelve_tabs_show": (
        "three tabs are in the day, with a lock and without"
    ),
    "tests/web/console/test_team.py::test_a_plan_is_rejected": "tests/team has it; an approval is in the day",
    "tests/web/console/test_team.py::test_a_plan_is_sent_back": (
        "tests/team has it; an approval is in the day"
    ),
    f"{_AGENTS}::test_an_agent_that_leaves_withdraws_what_it_waits_for[over_stdio": (
        "each begins a process; two of them are in the day"
    ),
    f"{_AGENTS}::test_over_stdio_with_a_wrong_token": ("each begins a process; two of them are in the day"),
    "tests/features/requests/test_document.py::test_its_configurations_connect_an_agent": (
        "a process for each configuration"
    ),
    "tests/web/test_tracing.py::test_without_an_endpoint_the_library_is_not_loaded": (
        "two processes that load everything"
    ),
    **dict.fromkeys(
        (
            f"{_AUDIT}/test_chain.py::test_every_cell_of_every_table_that_carries_truth_is_watched[postgres",
            f"{_AUDIT}/test_chain.py::test_every_row_that_is_deleted_or_slipped_in_is_seen[postgres",
            f"{_AUDIT}/test_chain.py::test_what_was_once_changed_unseen_is_named[postgres",
            f"{_AUDIT}/test_chain.py::test_what_is_removed_together_is_seen[postgres",
            f"{_AUDIT}/test_audit.py::test_a_row_changed_removed_or_slipped_in_is_named[postgres",
        ),
        "rows are hashed and verified alike on both; SQLite is in the day",
    ),
    "tests/store/test_proposals.py::test_a_move_that_is_not_in_the_table_is_refused[postgres": (
        "refused before a statement is made; SQLite is in the day"
    ),
    f"{_ADOPTION}::test_several_processes_that_start_at_the_same_time_adopt_it_once[schema_0004.sql": (
        "three processes; PostgreSQL, which several processes share, is in the day"
    ),
    **dict.fromkeys(
        (
            f"{_MCP}/{each}[legacy"
            for each in (
                "test_servers.py::test_a_server_killed_in_a_write_leaves_the_outcome_unknown_and_comes_back",
                "test_servers.py::test_a_tool_that_comes_while_the_server_runs_is_picked_up",
                "test_questions.py::test_while_a_person_is_asked_the_calls_time_is_stopped",
                "test_asked_people.py::test_a_person_fills_in_what_a_server_asks_and_the_waiting_call_continues_with_it",
            )
        ),
        "a process that speaks the older protocol; its start, a call and a question of it are in the day",
    ),
    "tests/conversations/test_makers.py::test_no_request_of_thirty_turns_is_refused[mistral": (
        "two others stay in the day"
    ),
    "tests/cli/test_ending.py::test_a_log_that_no_one_reads_stops_nothing_and_a_signal_ends_in_order[1]": (
        "a process; the signal that service managers send is in the day"
    ),
    **dict.fromkeys(
        (
            f"{_CONSOLE}/{each}[dark"
            for each in (
                "test_connections.py::test_axe_finds_nothing_on_the_way_to_a_connection_and_back",
                "test_agents.py::test_axe_finds_nothing_on_the_page_and_its_forms",
                "test_notifications.py::test_the_part_about_devices_is_open_to_everyone",
            )
        ),
        "light is in the day",
    ),
    **dict.fromkeys(
        (
            f"{_CONSOLE}/test_proxies.py::{each}"
            for each in (
                "test_a_stream_that_a_proxy_answered_is_opened_again[basic auth",
                "test_a_stream_that_a_proxy_answered_is_opened_again[forbidden",
                "test_a_message_that_a_proxy_kept_is_sent_again_by_a_press[redirect",
                "test_a_message_that_a_proxy_kept_is_sent_again_by_a_press[sign-in page",
                "test_a_message_that_a_proxy_kept_is_sent_again_by_a_press[too large",
            )
        ),
        "two other answers are in the day",
    ),
    f"{_CONSOLE}/test_inbox.py::test_no_label_is_broken_in_a_word_and_an_empty_value_says_so[1024": (
        "the narrower one is in the day"
    ),
    **dict.fromkeys(
        (
            f"{_TWO_CHANNELS}::test_{each}[telegram"
            for each in (
                "a_connection_made_by_command_takes_the_turns_up_again_that_waited_for_it",
                "a_grant_of_one_holds_for_their_own_account_alone",
                "a_read_where_both_are_asks_its_owner_in_private",
                "a_schedule_reads_and_changes_as_its_owner_who_is_asked",
                "a_scope_is_asked_for_at_the_first_write_that_lacks_it",
                "a_teammate_reads_and_changes_as_who_asked_the_lead",
                "a_wrong_number_typed_so_ends_it_and_other_messages_go_to_the_agent",
                "an_edit_by_the_other_asks_the_owner_as_it_stands",
                "the_tokens_of_both_are_renewed_and_stand_nowhere",
            )
        ),
        "connections are the same in each channel; Slack's are in the day, and how Telegram connects",
    ),
    "tests/tools/mcp/test_public_servers.py": "servers of other people; ours are in the day",
}
"""How node IDs begin → why these are for the night."""
_BEGINNINGS = tuple(NIGHT)


FEWER = {
    "tests/tools/test_reading.py::test_a_file_is_read": (9, "each file is read by a process of its own"),
}
"""How node IDs begin → of how many cases one is for the day, drawn by its name, and why not all."""


def thin(values: Iterable[Any], step: int = 3) -> list[Any]:
    """Return parameters of one kind: every ``step``-th for the day, the rest for the night."""
    return [
        value if place % step == 0 else pytest.param(value, marks=MORE) for place, value in enumerate(values)
    ]


def is_for_the_night(item: pytest.Item) -> bool:
    return _is_listed(item.nodeid) or _is_twin(item) or _is_of_another_channel(item)


def is_file_left_out(path: PurePath) -> bool:
    """Tell a file none of whose tests are of the day."""
    return path.as_posix() in {*NIGHT, *LINT}


def _is_listed(node_id: str) -> bool:
    drawn = (each for beginning, (each, _) in FEWER.items() if node_id.startswith(beginning))
    return node_id.startswith(_BEGINNINGS) or any(zlib.crc32(node_id.encode()) % each for each in drawn)


def _is_twin(item: pytest.Item) -> bool:
    """Tell a second case, on PostgreSQL: by day in the store alone, whose statements all others use."""
    call = getattr(item, "callspec", None)
    on_postgres = call is not None and call.params.get("database_url") == "postgres"
    return on_postgres and not item.nodeid.startswith("tests/store/")


def _is_of_another_channel(item: pytest.Item) -> bool:
    """Tell a contract's test that this one of two channels does not take by day: each takes a quarter.

    Slack has them all, and each channel has tests of what differs there.
    """
    path = item.nodeid.partition("::")[0]
    function = getattr(item, "function", None)
    if path not in _TAKE_TURNS or function is None or not function.__module__.startswith("bot.testing."):
        return False
    return zlib.crc32(function.__name__.encode()) % 4 != _TAKE_TURNS.index(path)
