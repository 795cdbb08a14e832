"""Memory: facts that people have Nod remember, and that the model is told in later conversations.

`MEMORY` names the feature's parts. The model can only propose a fact (`tools.py`): a person approves its
card.
"""

from bot.approvals.commands.subcommands import CommandSet
from bot.domain.hooks import Hooks
from bot.features.feature import Feature, FeatureParts
from bot.features.memory import routes, rows, sweep
from bot.features.memory.commands import MemoryCommands
from bot.features.memory.prompt_section import MemorySection
from bot.features.memory.tools import make_memory_toolset
from bot.jobs.scheduler import Sweep


def _make_hooks(parts: FeatureParts) -> Hooks:
    section = MemorySection(parts.database, parts.policies)
    return Hooks(add_to_prompt=(section.write,), move_chat=(rows.move_facts,))


MEMORY = Feature(
    name="memory",
    api=(routes.router,),
    tags={"memory": "What Nod remembers: list, edit, export and forget it."},
    make_toolsets=lambda parts: (make_memory_toolset(parts.database, parts.policies, parts.clock),),
    make_commands=lambda _, parts: CommandSet(nod=MemoryCommands(parts).subcommands),
    make_sweeps=lambda parts: (Sweep("delete_facts", sweep.SECONDS, sweep.MemorySweep(parts.database).run),),
    make_hooks=_make_hooks,
)
