"""The console's modules joined into one script."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bot.web.bundle import bundle

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
STATIC = Path(__file__).parents[2] / "bot/web/static"


def write_modules(folder: Path, **modules: str) -> Path:
    """Write the modules; the path of ``main``."""
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return folder / "main.js"


def run_script(script: Path) -> list[object]:
    """Run a script; what it says, line by line."""
    done = subprocess.run([NODE, script], capture_output=True, text=True, check=True)  # noqa: S603 - own
    return [json.loads(line) for line in done.stdout.splitlines()]


@needs_node
def test_the_joined_script_does_what_the_modules_do(tmp_path: Path):
    entry = write_modules(
        tmp_path,
        main=(
            'import { add, Shape as Form, later } from "./some.js";\n'
            'import * as some from "./some.js";\n'
            'import made from "./made.js";\n'
            "const say = (said) => console.log(JSON.stringify(said));\n"
            "say([add(2), new Form().sides, some.NAME, made(), some.numbers === undefined]);\n"
            "later().then(say);\n"
        ),
        some=(
            'import { log } from "./log.js";\n'
            'log("some");\n'
            'export const NAME = "some";\n'
            "export function add(number) {\n  return number + 1;\n}\n"
            "export class Shape {\n  sides = 4;\n}\n"
            "export async function later() {\n  return 'later';\n}\n"
            "const numbers = [1];\n"
        ),
        made=(
            'import { log } from "./log.js";\nlog("made");\nvar a = () => "made";\nexport { a as default };\n'
        ),
        log="export const log = (word) => console.log(JSON.stringify(word));\n",
    )
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (joined := tmp_path / "joined.js").write_text(bundle(entry))
    assert run_script(joined) == ["some", "made", [3, 4, "some", "made", True], "later"]
    assert run_script(joined) == run_script(entry)


@pytest.mark.parametrize(
    "statement",
    ["export let changing = 1;", "export default 3;", 'import "./other.js";', 'export * from "./other.js";'],
)
def test_a_statement_that_is_not_known_is_refused(tmp_path: Path, statement: str):
    entry = write_modules(tmp_path, main=f"{statement}\n", other="")
    said = f"main.js: a statement that is not known here: {statement}"
    with pytest.raises(ValueError, match=re.escape(said)):
        bundle(entry)


def test_modules_that_import_each_other_are_refused(tmp_path: Path):
    entry = write_modules(
        tmp_path,
        main='import { b } from "./other.js";\nexport const a = 1;\n',
        other='import { a } from "./main.js";\nexport const b = 1;\n',
    )
    with pytest.raises(ValueError, match=r"main\.js: it imports itself by a detour"):
        bundle(entry)


def test_two_modules_of_one_name_are_refused(tmp_path: Path):
    (tmp_path / "more").mkdir()
    write_modules(tmp_path / "more", some="export const b = 2;\n")
    entry = write_modules(
        tmp_path,
        main='import { a } from "./some.js";\nimport { b } from "./more/some.js";\n',
        some="export const a = 1;\n",
    )
    with pytest.raises(ValueError, match=r"some\.js: another module has this name"):
        bundle(entry)


def test_the_console_is_one_script_with_each_of_its_modules_once():
    script = bundle(STATIC / "console.js")
    names = re.findall(r"^const module_\w+ = \(\(\) => \{ // (.+)$", script, re.MULTILINE)
    imported = set(
        re.findall(r'from "\./(?:.*/)?([^"/]+)";', "".join(f.read_text() for f in STATIC.glob("*.js")))
    )
    assert sorted(names) == sorted({*imported, "console.js"})
    assert names[-1] == "console.js"
