"""AgentDojo's functions as tools of a team's own: the front door that ``docs/tools.md`` describes."""

import inspect
from collections.abc import Sequence
from typing import Any

from agentdojo.functions_runtime import Function, FunctionCall, FunctionsRuntime, TaskEnvironment

from bot.errors import ToolError
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset
from tests.agentdojo.annotations import ANNOTATIONS, Annotation, Kind


class Place:
    """What the tools look at and change: the environment of the task at hand, and what ran in it.

    ``runs`` are those that ran, each with its idempotency key: empty for what only read.
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        self.runtime = FunctionsRuntime(functions)
        self.environment = TaskEnvironment()
        self.runs: list[tuple[FunctionCall, str]] = []
        self.made = tuple(self._tool(each) for each in functions)

    def begin(self, environment: TaskEnvironment) -> None:
        self.environment, self.runs = environment, []

    def run(self, name: str, arguments: dict[str, Any], key: str) -> Any:
        self.runs.append((FunctionCall(function=name, args=arguments), key))
        answer, error = self.runtime.run_function(self.environment, name, arguments)
        if error:
            raise ToolError(error)
        return answer

    def tools(self) -> FixedToolset:
        return FixedToolset("agentdojo", self.made)

    def _tool(self, function: Function) -> Tool:
        declared = ANNOTATIONS.get(function.name, Annotation(Kind.CHANGES))
        fields = function.parameters.model_fields

        async def run(context: CallContext, **given: Any) -> Any:
            return self.run(function.name, given, context.idempotency_key)

        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty
                if each.is_required()
                else each.get_default(call_default_factory=True),
            )
            for name, each in fields.items()
        ]
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY)
        told = "\n".join(
            f"    {name}: {' '.join((each.description or name).split())}" for name, each in fields.items()
        )
        run.__name__ = function.name
        run.__doc__ = f"{' '.join(function.description.split())}\n\nArgs:\n{told}\n"
        run.__annotations__ = {name: each.annotation for name, each in fields.items()} | {
            "context": CallContext
        }
        run.__signature__ = inspect.Signature([*parameters, context])  # type: ignore[attr-defined]
        return tool(
            writes=declared.kind in (Kind.CHANGES, Kind.LOSES),
            destructive=declared.kind is Kind.LOSES,
            key=declared.key or None,
            open_world=declared.kind is not Kind.READS,
        )(run)
