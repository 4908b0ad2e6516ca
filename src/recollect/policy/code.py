"""Detection of program code, which is not worth remembering about a person.

`looks_like_code` recognises code blocks, snippets, stack traces, diffs and shell lines, and says which. Prose that
names a technology, a file, a function or a command passes. It matches the shapes in which code is pasted, line by line;
it is not a parser.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["looks_like_code"]

# Only this much is read, half of it from the end, and this much of each line: enough to recognise code, and the time
# stays bounded whatever is pasted.
_READ = 40_000
_LINE = 300

_NAME = r"[A-Za-z_$][\w$]*"
_PATH = rf"{_NAME}(?:\.{_NAME})*"
_ARGS = r"\([^()\n]*(?:\([^()\n]*\)[^()\n]*){0,3}\)"  # one level of brackets inside
_VALUE = (  # what stands to the right of "=" in code but never in a sentence
    rf"(?:(?:await |new )?{_PATH}{_ARGS}(?:\.\w+{_ARGS})*|\[[^\]\n]*\]|\{{[^}}\n]*\}}|['\"][^'\"\n]*['\"]"
    rf"|await \w.*|new \w.*|lambda .*|None|True|False|true|false|null|-?\d[\d._]*)\s*[,;]?\s*(?:(?:#|//).*)?$"
)

_TRACES = (
    r"Traceback \(most recent call last\)",
    r'\s*File "[^"\n]{1,200}", line \d+',
    r"\s*at [\w.$<>/]{1,120}\([\w$]{1,80}\.(?:java|kt|scala|groovy)(?::\d+)?\)\s*$",
    r"\s*at (?:async )?(?:[\w.$<>\[\] ]{1,120} )?\(?(?:file:|node:|https?:|/"
    r"|[A-Z]:\\)?[\w./\\@+-]{1,200}:\d+:\d+\)?\s*$",
    r"goroutine \d+ \[[\w ,]{1,60}\]:",
    r"panic: (?:runtime error|.{1,200}\n\ngoroutine)",
    r"thread '[^'\n]{1,80}' (?:\(\d+\) )?panicked at ",
    r'Exception in thread "',
    r"(?:Caused by: )?(?:[a-z]\w*\.){2,}[A-Z]\w*(?:Exception|Error)\b(?::|\s*$)",
    r"(?:Uncaught )?(?:Type|Reference|Syntax|Range|Value|Key|Index|Attribute|Name|Import|ModuleNotFound"
    r"|Runtime"
    r"|ZeroDivision|Assertion|OS|Permission|FileNotFound|UnicodeDecode|UnicodeEncode|Recursion)Error: \S",
)
_DIFFS = (
    r"diff --git a/\S+ b/\S+",
    r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@",
    r"index [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}",
    r"--- \S[^\n]{0,200}\n\+\+\+ \S",
)

# Commands people paste. The name alone is only a word: it needs an option, a path or a second command.
_COMMANDS = (
    "sudo|apt|apt-get|yum|dnf|brew|pacman|apk|pip3?|pipx|uv|uvx|poetry|conda|npm|npx|pnpm|yarn|bun|deno"
    "|cargo|rustup"
    r"|git|gh|docker|docker-compose|podman|kubectl|helm|terraform|ansible|aws|gcloud|az|curl|wget|ssh|scp"
    r"|rsync|ls|cd"
    r"|rm|cp|mv|mkdir|chmod|chown|cat|grep|sed|awk|find|tar|unzip|export|systemctl|journalctl|psql|mysql"
    r"|redis-cli"
    r"|sqlite3|python3?|node|java|javac|mvn|gradle|make|cmake|gcc|g\+\+|clang|ruby|rails|bundle|php"
    r"|composer|dotnet"
    r"|flask|pytest|mypy|ruff|uvicorn|ffmpeg|tail|head|kill|ps|df|du|ping|dig|openssl|echo|source|xargs"
    r"|tmux|go"
)
_WORDS = r"(?: [\w.@/:=~^\[\]<>+-]+)"  # plain arguments
_SHELL = (
    r"(?:[\w.-]{1,40}@[\w.-]{1,40}:[^\s$#]{0,80})?\$ [a-z./~][\w./~-]*(?: .*)?$",
    r"[\w.-]{1,40}@[\w.-]{1,40}:[^\s$#]{0,80}[$#] ?\S",
    r"PS [A-Z]:\\[^>\n]{0,120}> ?\S",
    r"#!/[\w/]+",
    rf"sudo (?:apt|apt-get|systemctl|service|dnf|yum|pacman|rm|cp|mv|chmod|chown|docker|snap|make|nano"
    rf"|vim|su|-\w+){_WORDS}*$",
    rf"(?:apt|apt-get|yum|dnf|brew|apk) (?:-\S+ )*(?:install|update|upgrade|remove|add){_WORDS}*$",
    rf"(?:pip3?|pipx|uv|poetry|conda) (?:pip )?(?:install|add|uninstall|sync|run|freeze){_WORDS}*$",
    rf"(?:npm|pnpm|yarn|bun) (?:install|i|add|run|ci|start|test|init|publish){_WORDS}{{0,4}}$",
    rf"npx [\w@/-]+{_WORDS}{{0,4}}$",
    rf"(?:cargo|dotnet|mvn|gradle|terraform) (?:build|run|test|install|init|apply|plan|clean|package"
    rf"|new){_WORDS}{{0,3}}$",
    r"go (?:build|run|test|install|get|mod) [\w./@-]*[./]\S*$",
    rf"git (?:clone|checkout|commit|push|pull|merge|add|stash|reset|log|status|diff|branch|fetch|init"
    rf"|remote|switch|rebase)"
    rf"{_WORDS}{{0,2}}$",
    rf"(?:docker|podman)(?: |-)(?:compose )?(?:run|build|pull|push|exec|ps|stop|up|down"
    rf"|logs){_WORDS}{{0,3}}$",
    rf"kubectl (?:get|apply|delete|describe|logs|exec|rollout){_WORDS}{{1,4}}$",
    r"(?:cd|ls|rm|mkdir|cat|source|chmod|cp|mv|tail|vim|nano) (?:[^\s.]+ ){0,3}(?:~"
    r"|\.{0,2}/)[\w./~*-]*(?: \S+)?$",
    rf"(?:python3?|node|ruby|php|java|bash|sh|deno) (?:-\w+ )*[\w./-]+\.(?:py|m?js|ts|rb|php|jar"
    rf"|sh){_WORDS}*$",
    r"ssh (?:-\S+ )*[\w.-]+@[\w.-]+",
    r"export [A-Z_][A-Z0-9_]*=",
    rf"(?:{_COMMANDS}) (?:[^\n]* )?(?:--?[A-Za-z][\w-]*|&&|\|\|?|>>?|2>&1)(?:[ =]|$)",
)

_PYTHON = (
    rf"(?:async )?def {_NAME}\s?\(",
    rf"class {_NAME}(?:\([\w., =\[\]]*\))?:\s*(?:$|pass|#)",
    rf"import {_PATH} as {_NAME}\s*(?:$|;|#)",
    rf"import {_PATH}(?:, ?{_PATH})+\s*$",
    r"import (?:os|sys|re|json|numpy|pandas|math|time|random|asyncio|typing|logging|datetime"
    r"|requests)\s*(?:$|;)",
    rf"from \.*{_PATH} import (?:\(|\*|{_NAME}(?: as {_NAME})?(?:, ?{_NAME}(?: as {_NAME})?)*\s*(?:$|;|#))",
    r"(?:if|elif|while|for|with|try|except|else|finally|match|case)\b[^?!\n]*:\s*\n[ \t]+\S",
    rf"if __name__ ?==|for {_NAME}(?:, ?{_NAME})* in {_PATH}{_ARGS}:",
    rf"@{_PATH}(?:{_ARGS})?\s*\n\s*(?:async |export )?(?:def|class|public|private|function|@)",
    r"(?:print|console\.\w+|System\.out\.print\w*|fmt\.Print\w*|println!|printf|require)\s?\(.*\)[;:]?\s*$",
    r"with open\(.*\)",
)
_SCRIPT = (  # JavaScript and TypeScript
    rf"(?:export )?(?:const|let|var) (?:{_NAME}|[\[{{][\w$, :]+[\]}}])\s?(?::[^=\n]{{1,60}})?="
    rf" ?(?:[^=\n]*;\s*$|{_VALUE})",
    rf"(?:export )?(?:default )?(?:async )?function\*?\s?(?:{_NAME})?\s?\(",
    r"import ['\"][^'\"\n]+['\"];?\s*$|import [\w{}*, $]+ from ['\"]",
    r"export (?:default \w|(?:const|class|function|interface|type) \w+ ?[=({<])",
    rf"interface {_NAME}(?:<\w+>)?(?: extends [\w, ]+)? ?\{{|type {_NAME}(?:<\w+>)? = [^;\n]*;",
    rf"{_NAME}(?:\.{_NAME})+\(.*\)\s*(?:;|\{{|=>)",
)
_BRACES = (  # C, C++, Java, C#, Go, Rust, PHP, Kotlin
    r'#\s?(?:include\s*[<"]|define [A-Z_]+\b|ifdef |ifndef |pragma \w+)',
    r"(?:for|while|if|switch|catch)\s?\([^\n]*(?:;|==|!=|<=|>=| [<>] |&&|\|\||=)[^\n]*\)\s*(?:[{;\w]|$)",
    r"(?:for|while|if|switch|catch)\s?\([^\n]*\)\s*\{",
    r"(?:public|private|protected|internal)(?: (?:static|final|abstract|async|override|class|void"
    r"|readonly|virtual"
    r"|interface|enum))* [\w<>\[\], ]+[({;=]\s*(?:$|[\w\"'}{)\[])",
    rf"(?:int|long|short|float|double|char|bool|boolean|void|string|String|auto|size_t|unsigned"
    rf"|u?int\d+_t)(?:\[\])?"
    rf"[ *&]+{_NAME}(?:\[\w*\])?\s?(?:= ?{_VALUE}|=[^=\n]*;\s*$|;\s*$|\([^()\n]*\)\s?[{{;])",
    r"package [\w.]+;?\s*\n|using (?:namespace )?[\w.:]+;|use [\w:]+(?:::\{[^}\n]*\}|::\w+|::\*);",
    rf"func (?:\(\w+ \*?\w+\) )?{_NAME}\(|(?:pub(?:\(crate\))? )?(?:async )?fn {_NAME}(?:<[^>\n]*>)?\(",
    rf"impl(?:<\w+>)? \w+[^\n]*\{{|let mut {_NAME}|{_NAME}(?:, {_NAME})? := \S|fun {_NAME}\(.*\).*[{{=]",
    rf"(?:struct|enum|trait|namespace|union|class) {_NAME}(?:<\w+>)?(?: (?:extends|implements|:)"
    rf" [\w, <>.]+)* ?\{{",
    r"<\?php|\$\w+(?:->\w+)* ?= ?\S.*;",
    rf"return\s+(?:{_NAME}|[^;\n]*[-+*/=()\[\]{{}}'\"<>&|.][^;\n]*);\s*$|return;\s*$",
    rf"throw new \w+\(|{_NAME}(?:\+\+|--);",
    rf"{_PATH}(?:\[[^\]\n]*\])* ?[-+*/|&^]?= ?[^=\n][^\n]*;\s*(?://.*)?$",
)
_ASSIGNED = (rf"{_PATH}(?:\[[^\]\n]*\])*(?:: ?[\w\[\], |]+)? ?[-+*/]?= ?(?!-?\d){_VALUE}",)
_TABLE = r"[\w.`\"]+"
_SQL = (
    r"(?:SELECT|select)\s+(?:DISTINCT\s+|distinct\s+)?(?:\*|[\w.`\"()*]+(?:\s*,\s*[\w.`\"()*]+)*)"
    rf"\s+(?:FROM|from)\s+{_TABLE}\s*(?:;|$|,|(?i:where|join|left|inner|order|group|limit)\b)",
    rf"(?i:insert into) {_TABLE}\s*\(",
    rf"(?i:insert into) {_TABLE} (?i:values)\s*\(",
    rf"(?i:update) {_TABLE} (?i:set) \w+ ?=",
    rf"(?i:delete from) {_TABLE}(?:;| (?i:where) \w+ ?[=<>])|DELETE FROM \w+",
    rf"(?i:create|alter|drop) (?i:table|index|view|database|unique index) (?i:if (?:not )?exists )?{_TABLE}"
    r"\s*(?:\(|;|(?i:on|add|cascade) )|(?:CREATE|ALTER|DROP) (?:TABLE|INDEX|VIEW) \w",
)
_TAGS = (
    "div|span|p|a|html|head|body|script|style|ul|ol|li|table|tr|td|th|img|input|button|form|h[1-6]|br"
    "|link|meta|svg|nav"
    "|section|template"
)
_MARKUP = (
    rf"</?(?:{_TAGS})(?:\s[^<>\n]*)?/?>",
    r"<!DOCTYPE|<\?xml",
    r"<\w[\w.:-]*(?:\s+[\w:@.-]+=(?:\{[^}\n]*\}|\"[^\"\n]*\"|'[^'\n]*'))+\s*/?>",
    r"[.#]?[\w-]+(?:[ ,>:.#]+[\w-]+){0,4} ?\{ ?[\w-]+: ?[^{};\n]+;",
)
_CONFIG = (
    r"[{\[]\s*(?:\"[\w$.@/ -]+\"\s*:|\{\s*\"[\w$.@/ -]+\"\s*:)",
    r"\[[\w.\"-]+\]\s*\n[\w.-]+ ?= ?\S",
    r"FROM [\w./-]+(?::[\w.-]+|@sha256:\w+)(?: AS \w+)?\s*\n",
)
_INLINE = (  # in the middle of a line, where sentences never have them
    r"\bfor ?\(\s*(?:int |let |var |auto |const |size_t )\w+ ?(?:[=:]|of |in )",
    r"=>\s*\{|\)\s*\{\s*(?:return\b|$)|;\s*\}|\}\s*(?:else|catch|finally)\s*[{(]",
    r"\bfunction\s?\w*\([\w, ]*\)\s*\{",
    r"\bif ?\([^()\n]{1,80}(?:==|!=|&&|\|\|)[^()\n]{1,80}\)\s*[{\w]",
    rf"\b(?:const|let|var) \w+ = (?:await |new )?(?:{_PATH}\(|['\"\[{{])",
    r"\bdef \w+\([\w, =*:\[\]]*\)(?: -> [\w\[\], |]+)?:",
    r"\bSELECT (?:\*|\w+(?:, ?\w+){0,9}) FROM \w+ (?:WHERE|ORDER BY|LIMIT|JOIN)\b|\bSELECT \* FROM \w+",
    r"\bpublic static void main\b|\w\(\);\s*\w+[.(]",
    r"<(div|span|script|button|table|ul)\b[^<>\n]{0,120}>[^\n]{0,200}</\1>",
)

# Sentences without any of these are prose: most are, and need no further checks.
_SUSPECT = re.compile(r"[`{}=<>$;\\@|~\"#\n]|:\d|\w\(|(?:^| )--?[A-Za-z]")
_OPENING = frozenset(_COMMANDS.replace("?", "").replace("\\", "").split("|")) | {"pip", "python", "npx"}
_OPENING |= {
    "pip3",
    "python3",
    "import",
    "from",
    "vim",
    "nano",
    "bash",
    "sh",
    "with",
    "for",
    "panic:",
    "CREATE",
}
_OPENING |= {"ALTER", "DROP", "DELETE", "SELECT", "select", "Caused"}

_DENSE = re.compile(r"[({=<}]|SELECT")
_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~)", re.M)
_ENTRY = re.compile(r"[ \t]*(?:- )?[A-Za-z_][\w.-]*:(?: [^\n]*)?$")
_NESTED = re.compile(r"(?: {2,}|\t)(?:- )?(?:[A-Za-z_][\w.-]*:(?: ?$| \S+$)|- \S+$)")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,}=\S*$")


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Compile the patterns at first use: otherwise importing this would be slow."""

    def opening(*shapes: str, indent: str = r"[ \t]*") -> re.Pattern[str]:
        return re.compile(rf"{indent}(?:{'|'.join(f'(?:{shape})' for shape in shapes)})", re.M)

    code = opening(*_PYTHON, *_SCRIPT, *_BRACES, *_ASSIGNED, *_SQL, *_MARKUP, *_CONFIG)
    inline = re.compile("|".join(f"(?:{shape})" for shape in _INLINE), re.M)
    return opening(*_TRACES), opening(*_DIFFS, indent=""), opening(*_SHELL), code, inline


def _opens_as_prose(text: str) -> bool:
    first = text.split(None, 1)
    return not first or first[0] not in _OPENING


def looks_like_code(text: str) -> str | None:
    """Return None for prose, otherwise what the text is, in everyday words: "a stack trace"."""
    if _SUSPECT.search(text) is None and _opens_as_prose(text):
        return None
    if ("```" in text or "~~~" in text) and _FENCE.search(text):
        return "a fenced code block"
    if len(text) > _READ:
        text = text[: _READ // 2] + "\n" + text[-_READ // 2 :]
    lines = [line[:_LINE] for line in text.split("\n")]
    text = "\n".join(lines)
    trace, diff, shell, code, inline = _patterns()
    found: str | None = None
    at = keyed = nested = variables = full = 0
    for line in lines:
        if line and not line.isspace():
            full += 1
            # Matched at the line's place in the whole text: some shapes include the line below.
            if trace.match(text, at):
                return "a stack trace"
            if line[0] in "d@i-" and diff.match(text, at):
                return "a diff"
            if found is None:
                if shell.match(text, at):
                    found = "a shell command"
                elif code.match(text, at) or (_DENSE.search(line) and inline.search(line)):
                    found = "program code"
            keyed += _ENTRY.match(line) is not None
            nested += _NESTED.match(line) is not None
            variables += _VARIABLE.match(line) is not None
        at += len(line) + 1
    if found is None and (variables >= 2 or (keyed >= 2 and nested >= 1 and keyed + nested >= 0.7 * full)):
        found = "program code"
    return found
