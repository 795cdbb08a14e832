"""Bodies about files, by id and name."""

from bot.web.schemas import DoneBody, View


class FileView(View):
    id: str
    name: str


class Files(DoneBody):
    files: list[FileView]
