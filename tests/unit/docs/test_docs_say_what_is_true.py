"""Commands, settings, links and paths of the documents exist."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from service.settings import Settings, parser
from tests.unit.docs import documents
from tests.unit.docs.documents import COMMUNITY, DOCUMENTS, ROOT
from tests.unit.docs.parsers import WrongCommand, check

SETTINGS = ROOT / "docs" / "settings.md"


@pytest.mark.parametrize("document", [*DOCUMENTS, *COMMUNITY], ids=lambda path: str(path.relative_to(ROOT)))
def test_documented_commands_are_accepted_by_their_programs(document: Path) -> None:
    refused = {}
    for command in documents.commands(document):
        try:
            check(command.line, is_whole=command.is_whole)
        except WrongCommand as error:
            refused[command.line] = str(error)
    assert refused == {}


@pytest.mark.parametrize(
    "line",
    [
        "scripts/serve --guests",
        "scripts/setup --all",
        "scripts/test tests/unti",
        "scripts/test --no-such-option",
        "scripts/lock --renew",
        "scripts/openapi --force",
        "scripts/release",
        "scripts/build-dist",
        "scripts/build-images here",
        "loopwright job submit mm.py --guests",
        "loopwright job sumbit mm.py",
        "loopwright record import",
        ".venv/bin/python -m benchmarks serach",
        ".venv/bin/python -m benchmarks search --unpack",
        ".venv/bin/python -m benchmarks regression",
        ".venv/bin/python -m examples.mm_relu --quick",
        "npm --prefix service/dashboard run tests",
        "make test",
        "python serve.py --ports 9090",
        ".venv/bin/python -c 'from db import migration'",
    ],
)
def test_a_wrong_command_is_found(line: str) -> None:
    with pytest.raises(WrongCommand):
        check(line)


def test_a_command_in_a_sentence_may_lack_its_arguments() -> None:
    check("loopwright record import", is_whole=False)
    check(".venv/bin/python -m benchmarks regression", is_whole=False)
    with pytest.raises(WrongCommand):
        check("loopwright record imports", is_whole=False)


def test_commands_are_collected_from_blocks_and_sentences(tmp_path: Path) -> None:
    document = tmp_path / "some.md"
    document.write_text(
        "Run `scripts/serve\n--port 1`, not `scripts`.\n\n"
        "```console\n$ scripts/demo --exit  # shows\nprinted\n```\n\n"
        "```sh\nscripts/test \\\n  --all\n```\n\n"
        "```python\nx\n```\n"
    )
    assert [(command.line, command.is_whole) for command in documents.commands(document)] == [
        ("scripts/demo --exit  # shows", True),
        ("scripts/test    --all", True),
        ("scripts/serve --port 1", False),
    ]


def test_the_documents_have_commands_of_every_kind() -> None:
    commands = [command.line for document in DOCUMENTS for command in documents.commands(document)]
    programs = {re.sub(r"^python", ".venv/bin/python", line).split()[0] for line in commands}
    assert programs >= {"scripts/serve", "scripts/demo", "scripts/test", "loopwright", ".venv/bin/python", "npm"}


@pytest.mark.parametrize("document", [*DOCUMENTS, *COMMUNITY], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_paths_of_a_document_exist(document: Path) -> None:
    for target in documents.links(document):
        name, _, anchor = unquote(target).partition("#")
        file = (document.parent / name).resolve() if name else document
        assert file.exists(), target
        assert not anchor or anchor in documents.anchors(file), target
    for path in documents.paths(document):
        assert (ROOT / path).exists() or path.startswith("benchmarks/results/"), path


def known_settings() -> set[str]:
    """Names of all settings: the service's, the client's, and those of docker-compose.yml."""
    readers = [ROOT / "client/loopwright/session/config.py", ROOT / "docker-compose.yml"]
    names = {name for reader in readers for name in re.findall(r"LOOPWRIGHT_[A-Z_]+", reader.read_text())}
    return names | {f"LOOPWRIGHT_{field.upper()}" for field in Settings.model_fields}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_settings_that_a_document_names_exist(document: Path) -> None:
    assert set(re.findall(r"LOOPWRIGHT_[A-Z_]+", document.read_text())) <= known_settings()


def test_the_table_of_settings_has_each_of_the_service_with_its_option_and_default() -> None:
    options = {action.dest: action.option_strings[0] for action in parser()._actions}
    rows = {
        name.strip("`"): (option.strip("`"), default)
        for name, option, default, _ in documents.table(SETTINGS, "setting")
    }
    fields = Settings.model_fields
    assert rows.keys() == {f"LOOPWRIGHT_{field.upper()}" for field in fields}
    for field, info in fields.items():
        option, default = rows[f"LOOPWRIGHT_{field.upper()}"]
        assert option == options.get(field, "")
        if info.default is not None:
            shown = str(info.default).replace(str(Path.home()), "~")
            assert default == f"`{shown.lower() if isinstance(info.default, bool) else shown}`"
