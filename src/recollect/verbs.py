"""The table of verbs. A method of `Memory` with the decorator `verb` is the declaration of one.

    @verb(scope="write", batch=True)
    def remember(self, content: FactText, *, key: Key | None = None) -> Outcome:
        \"""A fact about the person, under a key or as a sentence.\"""

The types of its arguments are those of `recollect.fields`: their checks are applied before the body runs. The HTTP
routes, the OpenAPI document, the clients, `AsyncMemory` and the options of commands follow from this table.

Each verb has a route of its name below the user it is about: ``POST /v1/users/42/remember`` takes the arguments of
`Memory.remember` as a JSON object. A verb that only reads, and takes nothing that a person said, may be declared with
``method="GET"``: proxies log addresses, not bodies.
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

from recollect.fields import Check, Field

_P = ParamSpec("_P")
_T = TypeVar("_T")

Scope = Literal["read", "write", "admin"]
Method = Literal["GET", "POST"]
NOT_SENT = frozenset({"progress"})
"""Arguments that stay with the caller."""
ACTING = "recollect-acting"
"""The header that says on whose behalf: a JSON object of what `Memory.acting` takes."""
IDEMPOTENCY = "idempotency-key"
PAGE = 500
"""How many items a page has, unless asked otherwise."""


class Executor(Protocol):
    """A memory, wherever it is: it does what a verb says, here or at the other end of a connection."""

    def _run_verb(self, verb: Verb, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


_M = TypeVar("_M", bound=Executor)


@dataclass(frozen=True)
class Argument:
    """One argument of a verb: what its signature and its field say."""

    name: str
    field: Field | None
    type: Any
    """Its Python type, without the field and without None."""
    default: Any
    kind: Any
    is_optional: bool
    """Whether None is allowed."""

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty and self.kind is not inspect.Parameter.VAR_POSITIONAL

    @property
    def is_variadic(self) -> bool:
        """Whether any number of them may be given."""
        return bool(self.kind is inspect.Parameter.VAR_POSITIONAL)

    @property
    def is_positional(self) -> bool:
        """Whether it may be given without its name."""
        return self.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


@dataclass(frozen=True)
class Verb:
    """A verb of `Memory`, as it was declared. Its signature is looked at when it is first used."""

    name: str
    function: Callable[..., Any]
    """What does it, without the checks."""
    scope: Scope
    method: Method = "POST"
    paged: bool = False
    """Its answer is a list that may be long, and comes in pages."""
    batch: bool = False
    """It can be part of a batch over HTTP."""
    erases: bool = False
    """It removes for good: no earlier answer may be kept."""
    elsewhere: str = ""
    """How it is asked over HTTP, if it has no route of its name."""

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.scope != "read"

    @property
    def does(self) -> str:
        """What it does, in a sentence."""
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
        """The type of what it returns."""
        return get_type_hints(self.function)["return"]

    @cached_property
    def _checks(self) -> tuple[tuple[tuple[str, Check | None], ...], dict[str, Check]]:
        named = {name: _check_of(one) for name, one in self.arguments.items()}
        positional = tuple((name, named[name]) for name, one in self.arguments.items() if one.is_positional)
        return positional, {name: check for name, check in named.items() if check is not None}

    def checked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in their normal form; those given by name are replaced in place.

        A wrong number of arguments or an unknown name is left for Python to complain about.
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
        """Return the arguments by name, those that stay with the caller left out."""
        given = inspect.signature(self.function).bind(None, *args, **kwargs).arguments
        return {name: value for name, value in list(given.items())[1:] if name not in NOT_SENT}

    def call(self, memory: Any, arguments: Mapping[str, Any]) -> Any:
        """Do it, with the arguments by name."""
        if self._variadic:
            return getattr(memory, self.name)(*arguments.get(self._variadic, ()))
        return getattr(memory, self.name)(**arguments)

    @cached_property
    def _variadic(self) -> str:
        return next((name for name, one in self.arguments.items() if one.is_variadic), "")


VERBS: dict[str, Verb] = {}
"""The verbs that have a route of their name. Importing `recollect.memory.memory` fills the table."""
ELSEWHERE: dict[str, Verb] = {}
"""The verbs that are asked in another way."""


def verb(
    *,
    scope: Scope,
    method: Method = "POST",
    paged: bool = False,
    batch: bool = False,
    erases: bool = False,
    elsewhere: str = "",
) -> Callable[[Callable[Concatenate[_M, _P], _T]], Callable[Concatenate[_M, _P], _T]]:
    """Declare a method as a verb: put it into the table, and check its arguments before it runs."""

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
    if argument.field is None:
        return None
    check = argument.field.check
    if not argument.is_optional:
        return check
    return lambda name, value: None if value is None else check(name, value)
