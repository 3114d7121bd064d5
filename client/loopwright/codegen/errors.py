"""Errors of `loopwright.codegen`. Each message says what the user can do. Imports no TVM."""


class LoopwrightError(Exception):
    """Base of all errors that Loopwright raises on the user's machine."""


class CodegenError(LoopwrightError):
    """Base of the errors of `loopwright.codegen`."""


class InvalidModule(CodegenError, ValueError):
    """The module or function cannot be used. Not retried."""


class InvalidTarget(CodegenError, ValueError):
    """The target is unknown to TVM, or of a kind that is not tuned. Not retried."""


class InvalidLabel(CodegenError, ValueError):
    """A label of a worker is not ``KEY=VALUE``. Not retried."""


class CodeRefused(CodegenError, RuntimeError):
    """The compiler refuses the code that was generated for a schedule. Not retried; another schedule may build."""


class UnsupportedVersion(CodegenError):
    """The installed TVM is not the one that Loopwright is made for, or Loopwright is too old for a record."""


def last_line(error: BaseException) -> str:
    """Return the last line of an error's message: TVM puts the reason behind the stack of its C++ frames."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
