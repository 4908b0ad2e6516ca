"""Routes declared by their handlers: keyword arguments are what is taken, the return type what is answered.

A handler gets the request and the arguments that were given. What it returns is answered as ``result``, unless it is a
`Response` already. The first line of its docstring is what the OpenAPI document says of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, create_model
from pydantic import Field as Constraints

from recollect.surfaces.http.messages import Request, Response, Route, Scope, respond
from recollect.surfaces.http.schema import NoArguments, StrictModel, first_line, titled

_Handler = TypeVar("_Handler", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Declared:
    """How a handler is to be reached."""

    method: str
    path: str
    scope: Scope
    more: dict[str, Any]


def route(method: str, path: str, scope: Scope, **more: Any) -> Callable[[_Handler], _Handler]:
    """Declare that a method of a `RouteGroup` handles a route; ``more`` are further fields of the `Route`."""

    def declare(handler: _Handler) -> _Handler:
        handler.__route__ = _Declared(method, path, scope, more)  # type: ignore[attr-defined]
        return handler

    return declare


class RouteGroup:
    """Routes whose handlers share something."""

    def routes(self) -> list[Route]:
        """Return the routes, in the order of their handlers."""
        handlers = [one for one in vars(type(self)).values() if hasattr(one, "__route__")]
        return [self._route(handler) for handler in handlers]

    def _route(self, handler: Callable[..., Any]) -> Route:
        declared: _Declared = handler.__route__  # type: ignore[attr-defined]
        signature = inspect.signature(handler, eval_str=True)
        name = declared.more.get("name", handler.__name__)

        def handle(request: Request) -> Response:
            answer = handler(self, request, **request.values)
            return answer if isinstance(answer, Response) else respond(answer)

        async def handle_async(request: Request) -> Response:
            answer: Response = await handler(self, request, **request.values)
            return answer

        is_async = inspect.iscoroutinefunction(handler)
        derived = {
            "name": name,
            "does": first_line(handler),
            "takes": _arguments(name, signature),
            "returns": signature.return_annotation,
            "handle": None if is_async else handle,
            "handle_async": handle_async if is_async else None,
        }
        return Route(method=declared.method, path=declared.path, scope=declared.scope, **derived | declared.more)


def _arguments(name: str, signature: inspect.Signature) -> type[BaseModel]:
    """Return the model of the keyword arguments of a handler."""
    given: dict[str, Any] = {}
    for argument in signature.parameters.values():
        if argument.kind is inspect.Parameter.KEYWORD_ONLY:
            default = argument.default
            if default is inspect.Parameter.empty:
                default = ...
            elif isinstance(default, list | dict):
                default = Constraints(default_factory=type(default))
            given[argument.name] = (argument.annotation, default)
    return create_model(f"{titled(name)}Arguments", __base__=StrictModel, **given) if given else NoArguments
