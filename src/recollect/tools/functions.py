"""Tools as plain functions with typed signatures, for frameworks that take functions."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from recollect.tools.tool import Tool

if TYPE_CHECKING:
    from recollect.tools.suite import Suite


def function_of(suite: Suite, tool: Tool) -> Callable[..., str]:
    """Return a function that calls a tool of a suite, with the tool's name and types."""
    shown = [parameter for parameter in tool.parameters if not (parameter.arg.user and suite.fixed_user)]
    takes = inspect.signature(tool.run).parameters

    def function(*args: Any, **kwargs: Any) -> str:
        named = dict(zip(signature.parameters, args, strict=False))
        certain = len(named) == len(args) and not named.keys() & kwargs.keys()
        return suite.call(tool.name, defaults | named | kwargs if certain else args).text

    hints = {name: _plain_type(hint) for name, hint in get_type_hints(tool.run).items()}
    # required parameters first, as a signature requires
    ordered = sorted(shown, key=lambda parameter: not parameter.required)
    defaults = {parameter.name: parameter.default for parameter in shown if parameter.arg.required}
    signature = inspect.Signature(
        [
            takes[parameter.name].replace(
                kind=inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=hints[parameter.name]
            )
            for parameter in ordered
        ],
        return_annotation=str,
    )
    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = tool.description
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: hints[parameter.name] for parameter in ordered} | {"return": str}
    return function


def _plain_type(hint: Any) -> Any:
    """Return a type that frameworks understand: choices become strings."""
    if get_origin(hint) is Literal:
        return str
    if get_origin(hint) in (Union, UnionType):
        return functools.reduce(operator.or_, [_plain_type(option) for option in get_args(hint)])
    return hint
