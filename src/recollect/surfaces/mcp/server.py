"""The MCP server: tools, resources and prompts over the memory of the connection's user.

`recollect.tools` provides the schemas and parses the arguments; the SDK only transports them.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from recollect import __version__
from recollect.app import Recollect
from recollect.errors import InvalidInputError, RecollectError
from recollect.memory.async_memory import in_thread
from recollect.memory.memory import Memory
from recollect.records import new_id
from recollect.surfaces.mcp import resources
from recollect.surfaces.mcp.authentication import McpCaller
from recollect.surfaces.mcp.prompts import INSTRUCTIONS, PROMPTS, PromptError, prompt
from recollect.surfaces.mcp.subscriptions import Subscriptions, text_digest
from recollect.tools.suite import Result, Suite
from recollect.tools.tool import Tool

LOGGER = logging.getLogger("recollect.mcp")

CALL = "recollect/call"
"""The key of the call's id in a result: `recollect history --call ID` shows what the call did."""

_MOST_SUITES = 256
_WITH_SESSIONS = frozenset(HANDSHAKE_PROTOCOL_VERSIONS)
_Context = ServerRequestContext[Any, Any]
_T = TypeVar("_T")


class MemoryServer:
    """An MCP server over the memories of an app. ``whose`` returns the caller of a request."""

    def __init__(self, app: Recollect, whose: Callable[[_Context], McpCaller]) -> None:
        self._app = app
        self._whose = whose
        self._own_session = new_id("mcp")
        self._suites: OrderedDict[tuple[McpCaller, str | None, str | None], Suite] = OrderedDict()
        self.changes = Subscriptions(self._digests)
        self.server: Server[Any] = Server(
            "recollect",
            version=__version__,
            title="Recollect",
            description="Long-term memory: what is known about one person, in a file they can read.",
            instructions=INSTRUCTIONS,
            on_list_tools=_safely(self._list_tools),
            on_call_tool=_safely(self._call_tool),
            on_list_resources=_safely(self._list_resources),
            on_list_resource_templates=_safely(self._list_templates),
            on_read_resource=_safely(self._read_resource),
            on_subscribe_resource=_safely(self._subscribe),
            on_unsubscribe_resource=_safely(self._unsubscribe),
            on_subscriptions_listen=_safely(self._listen),
            on_list_prompts=_safely(self._list_prompts),
            on_get_prompt=_safely(self._get_prompt),
        )

    # tools

    async def _list_tools(self, ctx: _Context, params: Any) -> types.ListToolsResult:
        suite = await self._suite(ctx)
        return types.ListToolsResult(tools=[tool_declaration(tool, suite) for tool in suite.tools.values()])

    async def _call_tool(self, ctx: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        suite = await self._suite(ctx)
        result = await suite.acall(params.name, params.arguments or {})
        if result.outcome == "unknown tool":
            raise MCPError(types.INVALID_PARAMS, result.text.removeprefix("Error: "))
        tool = suite.tools.get(result.tool)
        if tool is not None and tool.tier != "read_only":
            self.changes.look(suite.memory.user_id)
        return call_result(result)

    # resources

    async def _list_resources(self, ctx: _Context, params: Any) -> types.ListResourcesResult:
        found = await self._of(self._whose(ctx).user, resources.list_resources)
        return types.ListResourcesResult(resources=found)

    async def _list_templates(self, ctx: _Context, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def _read_resource(self, ctx: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            text = await self._of(self._whose(ctx).user, lambda memory: resources.read_resource(memory, params.uri))
        except resources.UnknownResourceError:
            raise MCPError(types.INVALID_PARAMS, "Unknown resource", {"uri": params.uri[:1000]}) from None
        contents = types.TextResourceContents(uri=params.uri, mime_type=resources.MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[contents])

    # changes

    async def _subscribe(self, ctx: _Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        await self.changes.subscribe(self._whose(ctx).user, self._session(ctx), ctx.session, params.uri)
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: _Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.changes.unsubscribe(self._whose(ctx).user, self._session(ctx), params.uri)
        return types.EmptyResult()

    async def _listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self.changes.listen(self._whose(ctx).user, ctx, params)

    async def _digests(self, user: str, uris: Sequence[str]) -> dict[str, str]:
        def now(memory: Memory) -> dict[str, str]:
            found = {}
            for uri in uris:
                try:
                    found[uri] = text_digest(resources.read_resource(memory, uri))
                except resources.UnknownResourceError:
                    found[uri] = ""  # may be created later
            return found

        return await self._of(user, now)

    # prompts

    async def _list_prompts(self, ctx: _Context, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=PROMPTS)

    async def _get_prompt(self, ctx: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        suite = await self._suite(ctx)
        arguments, tools = params.arguments or {}, tuple(suite.tools.values())
        try:
            text = await self._of(suite.memory.user_id, lambda memory: prompt(params.name, arguments, memory, tools))
        except PromptError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(messages=[message])

    # users and suites

    async def _of(self, user: str, what: Callable[[Memory], _T]) -> _T:
        """Run a function on a user's memory in a thread."""
        return await in_thread(user, lambda: what(self._app.user(user)))

    async def _suite(self, ctx: _Context) -> Suite:
        """Return the tools of this connection. They are kept, because a suite counts earlier calls."""
        caller = self._whose(ctx)
        session = self._session(ctx) or None
        agent = _client_name(ctx)
        key = (caller, session, agent)
        if key not in self._suites:
            make = partial(self._app.tools, session=session, agent=agent, fixed_user=True, wait=True)
            # in no user's lane: it waits for none of the user's locks
            made = await in_thread("", make, caller.user, *caller.suites)
            self._suites.setdefault(key, made)  # another request may have been faster
        suite = self._suites[key]
        self._suites.move_to_end(key)
        while len(self._suites) > _MOST_SUITES:
            self._suites.popitem(last=False)
        return suite

    def _session(self, ctx: _Context) -> str:
        """Return the conversation: the HTTP session where the protocol has sessions, otherwise this process."""
        if ctx.request is None:
            return self._own_session
        return str(ctx.request.headers.get("mcp-session-id", "")) if ctx.protocol_version in _WITH_SESSIONS else ""


def tool_declaration(tool: Tool, suite: Suite) -> types.Tool:
    """Return a tool as the MCP type."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=suite.schema(tool.name),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.tier == "read_only",
            destructive_hint=tool.tier == "destructive",
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def call_result(result: Result) -> types.CallToolResult:
    """Return the result of a call as the MCP type."""
    structured = None
    if isinstance(result.content, dict):
        structured = json.loads(result.text)  # not the content itself: the text may be truncated, and both must agree
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)],
        structured_content=structured if isinstance(structured, dict) else None,
        is_error=result.is_error,
        _meta={CALL: result.call},
    )


def _client_name(ctx: _Context) -> str | None:
    """Return the client's name, cleaned for the journal."""
    told = ctx.session.client_params
    if told is None:
        return None
    return " ".join("".join(letter if letter.isprintable() else " " for letter in told.client_info.name).split())[:100]


def _safely(handler: Callable[[_Context, Any], Awaitable[_T]]) -> Callable[[_Context, Any], Awaitable[_T]]:
    """Wrap a handler so that internal errors become one sentence and never reveal what a user said."""

    async def handle(ctx: _Context, params: Any) -> _T:
        try:
            return await handler(ctx, params)
        except MCPError:
            raise
        except InvalidInputError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        except RecollectError as error:
            LOGGER.error("%s failed: %s", ctx.method, type(error).__name__)
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        except Exception as error:
            LOGGER.error("%s failed: %s", ctx.method, type(error).__name__)
            raise MCPError(types.INTERNAL_ERROR, "internal error") from None

    return handle
