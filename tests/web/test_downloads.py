"""Texts of tools as files to save."""

from bot.domain.files import File
from bot.web.answers import make_download


async def test_a_saved_file_cannot_speak_to_a_terminal_or_turn_its_lines():
    answer = await make_download(File("result.txt", "a\x1b[2Jb\u202ec\td\r\ne\n"))
    assert bytes(answer.body).decode() == "a\\u001b[2Jb\\u202ec\td\ne\n"
