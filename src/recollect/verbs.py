"""The table of verbs. A verb is declared as a method of `Memory` with the decorator `verb`.

    @verb(scope="write", batch=True)
    def remember(self, content: FactText, *, key: Key | None = None) -> Outcome:
        \"""A fact about the person, under a key or as a sentence.\"""

Its arguments have types of `recollect.fields`, whose checks run before the body. The HTTP routes, the OpenAPI document,
the clients, `AsyncMemory` and the options of commands are derived from this table.

Each verb is a route below its user: ``POST /v1/users/42/remember`` takes the arguments of `Memory.remember` as a JSON
object. Only a verb that reads, and takes nothing that a person said, may have ``method="GET"``, because proxies log
addresses.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from recollect.checks import check_callable
from recollect.fields import Check, Field

_P = ParamSpec("_P")
_T = TypeVar("_T")

Scope = Literal["read", "write", "admin"]
Method = Literal["GET", "POST"]
NOT_SENT = frozenset({"progress"})
"""Arguments that are not sent over a connection."""
ACTING = "recollect-acting"
"""The header with the arguments of `Memory.acting` as a JSON object."""
IDEMPOTENCY = "idempotency-key"
PAGE = 500
"""The default number of items on a page."""


class Executor(Protocol):
    """A memory that runs verbs, here or over a connection."""

    def _run_verb(self, verb: Verb, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


_M = TypeVar("_M", bound=Executor)


@dataclass(frozen=True)
class Argument:
    """One argument of a verb, from its signature and its field."""

    name: str
    field: Field | None
    type: Any
    """Its Python type, without the field and without None."""
    default: Any
    kind: Any
    is_optional: bool
    """True if None is allowed."""

    @property
    def is_required(self) -> bool:
        """True if it has no default."""
        return self.default is inspect.Parameter.empty and self.kind is not inspect.Parameter.VAR_POSITIONAL

    @property
    def is_variadic(self) -> bool:
        """True if any number of values may be given."""
        return bool(self.kind is inspect.Parameter.VAR_POSITIONAL)

    @property
    def is_positional(self) -> bool:
        """True if it may be given without its name."""
        return self.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


@dataclass(frozen=True)
class Verb:
    """A verb of `Memory`. Its signature is inspected on first use."""

    name: str
    function: Callable[..., Any]
    """The implementation, without the checks."""
    scope: Scope
    method: Method = "POST"
    paged: bool = False
    """True if its result is a list that is returned in pages."""
    batch: bool = False
    """True if it can be part of a batch over HTTP."""
    erases: bool = False
    """True if it erases, so that no earlier response may be kept."""
    elsewhere: str = ""
    """How it is called over HTTP, if it has no route of its own name."""

    @property
    def writes(self) -> bool:
        """True if it changes something."""
        return self.scope != "read"

    @property
    def does(self) -> str:
        """Its description in one sentence."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """Its arguments by name, without the memory itself."""
        hints = get_type_hints(self.function, include_extras=True)
        found = list(inspect.signature(self.function).parameters.values())[1:]
        return {parameter.name: _argument(parameter, hints[parameter.name]) for parameter in found}

    @cached_property
    def parameters(self) -> dict[str, Argument]:
        """The arguments that are sent over a connection."""
        return {name: one for name, one in self.arguments.items() if name not in NOT_SENT}

    @cached_property
    def returns(self) -> Any:
        """The type of its result."""
        return get_type_hints(self.function)["return"]

    @cached_property
    def _checks(self) -> tuple[tuple[tuple[str, Check | None], ...], dict[str, Check]]:
        named = {name: _check_of(one) for name, one in self.arguments.items()}
        positional = tuple((name, named[name]) for name, one in self.arguments.items() if one.is_positional)
        return positional, {name: check for name, check in named.items() if check is not None}

    def checked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in their normal form; those given by name are replaced in place.

        Python reports a wrong number of arguments or an unknown name.
        """
        positional, named = self._checks
        for name in kwargs:
            if (check := named.get(name)) is not None:
                kwargs[name] = check(name, kwargs[name])
        if not args:
            return args
        if self._variadic:
            positional = (*positional, *positional[-1:] * (len(args) - len(positional)))
        found = [
            value if check is None else check(name, value)
            for (name, check), value in zip(positional, args, strict=False)
        ]
        return (*found, *args[len(found) :])

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, without those that are not sent over a connection."""
        given = inspect.signature(self.function).bind(None, *args, **kwargs).arguments
        return {name: value for name, value in list(given.items())[1:] if name not in NOT_SENT}

    def call(self, memory: Any, arguments: Mapping[str, Any]) -> Any:
        """Run the verb with arguments by name."""
        if self._variadic:
            return getattr(memory, self.name)(*arguments.get(self._variadic, ()))
        return getattr(memory, self.name)(**arguments)

    @cached_property
    def _variadic(self) -> str:
        return next((name for name, one in self.arguments.items() if one.is_variadic), "")


VERBS: dict[str, Verb] = {}
"""The verbs with a route of their own name. Importing `recollect.memory.memory` fills the table."""
ELSEWHERE: dict[str, Verb] = {}
"""The verbs that are called in another way."""


def verb(
    *,
    scope: Scope,
    method: Method = "POST",
    paged: bool = False,
    batch: bool = False,
    erases: bool = False,
    elsewhere: str = "",
) -> Callable[[Callable[Concatenate[_M, _P], _T]], Callable[Concatenate[_M, _P], _T]]:
    """Declare a method as a verb: add it to the table, and check its arguments before it runs."""

    def declare(function: Callable[Concatenate[_M, _P], _T]) -> Callable[Concatenate[_M, _P], _T]:
        name = function.__name__
        declared = Verb(name, function, scope, method, paged, batch, erases, elsewhere)
        (ELSEWHERE if elsewhere else VERBS)[name] = declared

        def run(self: _M, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
            return cast(_T, self._run_verb(declared, args, kwargs))

        return functools.update_wrapper(run, function)

    return declare


def _argument(parameter: inspect.Parameter, hint: Any) -> Argument:
    inner = hint
    is_optional = get_origin(hint) in (Union, types.UnionType) and types.NoneType in get_args(hint)
    if is_optional:
        rest = tuple(one for one in get_args(hint) if one is not types.NoneType)
        inner = rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007
    field = None
    if get_origin(inner) is Annotated:
        inner, *metadata = get_args(inner)
        field = next((one for one in metadata if isinstance(one, Field)), None)
    return Argument(parameter.name, field, inner, parameter.default, parameter.kind, is_optional)


def _check_of(argument: Argument) -> Check | None:
    if argument.name in NOT_SENT:
        return check_callable
    if argument.field is None:
        return None
    check = argument.field.check
    if not argument.is_optional:
        return check
    return lambda name, value: None if value is None else check(name, value)
