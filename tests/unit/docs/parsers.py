"""Check a documented command against the parser of the program that it names, without running it."""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import importlib
import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import typer.main
from _pytest.config import get_config
from typer import BadParameter

from loopwright.cli import app
from tests.conftest import pytest_addoption
from tests.unit.docs.documents import ROOT


class WrongCommand(Exception):
    """The program would refuse the command."""


def check(line: str, *, is_whole: bool = True) -> None:
    """Parse a command.

    Args:
        is_whole: Whether required arguments must be there.

    Raises:
        WrongCommand: The program would refuse it, or no such program is known.
    """
    words = shlex.split(line, comments=True)
    if ">" in words:  # a file of the shell
        words = words[: words.index(">")]
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words.pop(0)
    if not words:  # a comment, or settings of the shell
        return
    program, *arguments = words
    if program in ("python", ".venv/bin/python") and arguments[:1] == ["-m"]:
        _module(arguments[1], arguments[2:], is_whole)
    elif program == ".venv/bin/python" and arguments[:1] == ["-c"]:
        _code(arguments[1])
    elif program in PROGRAMS:
        PROGRAMS[program](arguments, is_whole)
    else:
        raise WrongCommand(f"no parser is known for {program!r}")


def _parse(parser: argparse.ArgumentParser, arguments: list[str], is_whole: bool) -> None:
    if not is_whole:
        for action in parser._actions:
            action.required = False
            action.nargs = "?" if not action.option_strings and action.nargs is None else action.nargs
        for group in parser._mutually_exclusive_groups:
            group.required = False
    with contextlib.redirect_stderr(io.StringIO()) as message, contextlib.redirect_stdout(io.StringIO()):
        try:
            parser.parse_args(arguments)
        except SystemExit as end:
            if end.code:
                raise WrongCommand(message.getvalue().splitlines()[-1]) from None


def _parser_of(module: str) -> Callable[[list[str], bool], None]:
    return lambda arguments, is_whole: _parse(importlib.import_module(module).parser(), arguments, is_whole)


def _module(name: str, arguments: list[str], is_whole: bool) -> None:
    """``python -m NAME``: a module without a parser takes no arguments."""
    try:
        spec = importlib.util.find_spec(name)
        is_package = spec is not None and spec.submodule_search_locations is not None
        spec = importlib.util.find_spec(f"{name}.__main__") if is_package else spec
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise WrongCommand(f"there is no module {name} to run")
    if name == "benchmarks":
        _benchmark(arguments, is_whole)
    elif "def parser(" in Path(spec.origin).read_text():
        _parser_of(spec.name)(arguments, is_whole)
    elif arguments:
        raise WrongCommand(f"{name} takes no arguments")


def _benchmark(arguments: list[str], is_whole: bool) -> None:
    """``python -m benchmarks [NAME]``: reports are written without what the benchmark requires."""
    known = importlib.import_module("benchmarks.__main__")
    if arguments[:1] and arguments[0] in known.PACKAGES:
        is_report = arguments[1:] in (["--pack"], ["--report"])
        _parse(known.parser(arguments), arguments[1:], is_whole and not is_report)
    else:
        _parse(known.parser(), arguments, is_whole and bool(arguments))


def _code(text: str) -> None:
    """``python -c TEXT``: what it imports, and the attributes of that which it names, exist."""
    imported: dict[str, ModuleType] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            try:
                imported |= {name: importlib.import_module(f"{node.module}.{name}") for name in names}
            except ImportError as error:
                raise WrongCommand(str(error)) from None
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = imported.get(node.value.id)
            if module is not None and not hasattr(module, node.attr):
                raise WrongCommand(f"{module.__name__} has no {node.attr}")


def _script(name: str) -> Callable[[list[str], bool], None]:
    """A program of scripts/, which is no package."""

    def check_arguments(arguments: list[str], is_whole: bool) -> None:
        _parse(_parser_of_script(name), arguments, is_whole)

    return check_arguments


def _parser_of_script(name: str) -> argparse.ArgumentParser:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parser: argparse.ArgumentParser = module.parser()
    return parser


def _loopwright(arguments: list[str], is_whole: bool) -> None:
    def walk(command: Any, name: str, arguments: list[str], parent: Any) -> None:
        context = command.make_context(name, list(arguments), parent=parent)
        if hasattr(command, "resolve_command"):
            name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
            walk(command, name, arguments, context)

    with contextlib.redirect_stdout(io.StringIO()):
        try:
            walk(typer.main.get_command(app), "loopwright", arguments, None)
        except typer.Exit:  # --help or --version
            pass
        except Exception as error:
            # Typer exports only one of its usage errors, whose base they share.
            if not isinstance(error, BadParameter.__bases__):
                raise
            if is_whole or type(error).__name__ not in ("MissingParameter", "NoArgsIsHelpError"):
                raise WrongCommand(str(error)) from None


def _pytest(arguments: list[str], is_whole: bool) -> None:
    parser = get_config()._parser
    pytest_addoption(parser)
    try:
        options, unknown = parser.parse_known_and_unknown_args(arguments)
    except Exception as error:
        raise WrongCommand(str(error)) from None
    _known(unknown, set())
    _known(options.file_or_dir, {name for name in options.file_or_dir if (ROOT / name.partition("::")[0]).exists()})


def _test(arguments: list[str], is_whole: bool) -> None:
    _pytest(_parser_of_script("run_tests").parse_known_args(arguments)[1], is_whole)


def _lock(arguments: list[str], is_whole: bool) -> None:
    """``scripts/lock`` hands its options to ``uv pip compile``."""
    _known([argument for argument in arguments if argument.startswith("-")], set(re.findall(r"--[a-z-]+", _uv_help())))


@functools.cache
def _uv_help() -> str:
    command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _npm(arguments: list[str], is_whole: bool) -> None:
    """``npm --prefix FOLDER run SCRIPT``."""
    folder = ROOT / "service" / "dashboard"
    if arguments[:1] == ["--prefix"]:
        folder, arguments = ROOT / arguments[1], arguments[2:]
    if arguments[:1] != ["run"]:
        raise WrongCommand("only `npm run` is documented")
    _known(arguments[1:], set(json.loads((folder / "package.json").read_text())["scripts"]))


def _known(words: list[str], known: set[str]) -> None:
    for word in words:
        if word not in known:
            raise WrongCommand(f"unknown: {word}")


def _board(arguments: list[str], is_whole: bool) -> None:
    """``python serve.py``, which a board has from ``deploy/rpc-device``."""
    if arguments[:1] != ["serve.py"]:
        raise WrongCommand("only `python -m` and `python serve.py` are documented")
    own = re.findall(r'add_argument\("(--[a-z]+)"', (ROOT / "deploy" / "rpc-device" / "serve.py").read_text())
    _known([argument for argument in arguments if argument.startswith("-")], set(own))


def _nothing(arguments: list[str], is_whole: bool) -> None:
    if arguments:
        raise WrongCommand(f"takes no arguments, but is given {arguments}")


def _pip(arguments: list[str], is_whole: bool) -> None:
    """``pip install``: where the package is Loopwright, its extras exist."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if arguments[:1] != ["install"]:
        raise WrongCommand("only `pip install` is documented")
    for requirement in arguments[1:]:
        if found := re.fullmatch(r"(?:loopwright|\.)\[([\w,]+)\]", requirement):
            _known(found[1].split(","), set(extras))


def _folder(arguments: list[str], is_whole: bool) -> None:
    if is_whole and len(arguments) != 1:
        raise WrongCommand("takes the folder to write to")


def _images(arguments: list[str], is_whole: bool) -> None:
    if is_whole and len([argument for argument in arguments if argument != "--push"]) != 2:
        raise WrongCommand("takes a prefix and a source")


def _anything(arguments: list[str], is_whole: bool) -> None:
    """Programs of others, which a document may name."""


PROGRAMS: dict[str, Callable[[list[str], bool], None]] = {
    "scripts/serve": _parser_of("service.settings"),
    "scripts/worker": _parser_of("workers.host.options"),
    "scripts/demo": _parser_of("service.demo"),
    "scripts/gpu-check": lambda arguments, is_whole: _module("benchmarks", ["gpu", *arguments], is_whole),
    "scripts/setup": _script("setup_checkout"),
    "scripts/test": _test,
    "scripts/lock": _lock,
    "scripts/openapi": _nothing,
    "scripts/sbom": _folder,
    "scripts/site": _nothing,
    "scripts/starter-pack": _script("make_starter_pack"),
    "scripts/release": _script("make_release"),
    "scripts/build-dist": _folder,
    "scripts/wheels": _folder,
    "scripts/build-images": _images,
    "scripts/audit": _nothing,
    "scripts/screenshots": _nothing,
    "loopwright": _loopwright,
    ".venv/bin/loopwright": _loopwright,
    "loopwright-service": _parser_of("service.__main__"),
    "python": _board,
    ".venv/bin/pytest": _pytest,
    ".venv/bin/mkdocs": _anything,
    ".venv/bin/ray": _anything,
    "python3": _anything,
    ".": _anything,
    "pip": _pip,
    ".venv/bin/pip": _pip,
    "npm": _npm,
    "curl": _anything,
    "grep": _anything,
    "docker": _anything,
    "kubectl": _anything,
    "createdb": _anything,
    "createuser": _anything,
    "pg_dump": _anything,
    "promtool": _anything,
    "pg_restore": _anything,
    "export": _anything,
    "git": _anything,
    ".venv/bin/pre-commit": _anything,
    "ray": _anything,
    "xz": _anything,
}
