"""The schema of this release: every table there is, also those of Slack, MCP, issues and long output."""

from sqlmodel import SQLModel

import bot.store.events
import bot.store.issues
import bot.store.mcp
import bot.store.notices
import bot.store.outputs
import bot.store.processes
import bot.store.slack
import bot.store.tables.conversations
import bot.store.tables.people
import bot.store.tables.proposals
import bot.store.tables.record
import bot.store.tables.rules
import bot.store.tables.schedules
import bot.store.trials  # noqa: F401 - each registers its tables

SCHEMA = SQLModel.metadata
