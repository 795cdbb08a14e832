"""The schema of this release: every table there is.

The one module of the kernel that imports features and Slack: a migration has to know all tables, also of what
is switched off.
"""

from sqlmodel import SQLModel

import bot.channels.slack.rows
import bot.features.attention.tables
import bot.features.connections.tables
import bot.features.insights.tables
import bot.features.issues.tables
import bot.features.memory.tables
import bot.features.mutes.tables
import bot.features.opinion.tables
import bot.features.paging.tables
import bot.features.people.tables
import bot.features.push.tables
import bot.features.schedules.tables
import bot.store.events
import bot.store.mcp
import bot.store.notices
import bot.store.outputs
import bot.store.processes
import bot.store.state
import bot.store.tables.agents
import bot.store.tables.audit
import bot.store.tables.conversations
import bot.store.tables.people
import bot.store.tables.proposals
import bot.store.tables.rules
import bot.store.trials  # noqa: F401 - each registers its tables

SCHEMA = SQLModel.metadata
