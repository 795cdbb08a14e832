"""Bodies about the questions that people asked the agent on a proposal."""

from typing import Annotated

from pydantic import Field

from bot.web.schemas import DoneBody, OrNull, View


class QuestionView(View):
    """A question that a person asked the agent about a proposal."""

    asker: Annotated[str, Field(validation_alias="name")]
    question: Annotated[str, Field(validation_alias="text")]
    answer: Annotated[str | None, OrNull] = Field(description="null until there is one")


class AskedQuestions(DoneBody):
    questions: list[QuestionView]
