"""Detection of secrets in a text.

`find_secrets` knows keys and tokens by their shape, passwords by the words around them, card numbers and bank accounts
by their check digits. `mask` removes them. A text that merely mentions passwords, tokens or keys passes. It keeps
nothing, and never puts what it found into an error, a log or a `repr`. It cannot recognise a secret that looks like an
ordinary word in an ordinary sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

__all__ = ["Secret", "find_secrets", "mask"]


@dataclass(frozen=True, slots=True)
class Secret:
    """The position and kind of a secret in a text, without the secret itself."""

    kind: str
    start: int
    end: int


# What services issue, each with a piece of text without which the shape cannot occur. The first group, if there is one,
# is the secret.
_SHAPES = (
    ("API key", "sk-", r"\bsk-(?=[\w-]{0,80}\d)[A-Za-z0-9_-]{20,}"),
    ("API key", "_live_", r"\b(?:sk|rk|pk)_live_[A-Za-z0-9]{16,}"),
    ("API key", "_test_", r"\b(?:sk|rk)_test_[A-Za-z0-9]{16,}"),
    ("API key", "whsec_", r"\bwhsec_[A-Za-z0-9+/=]{20,}"),
    ("API key", "aiza", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("API key", "ya29.", r"\bya29\.[\w-]{20,}"),
    ("API key", "gocspx-", r"\bGOCSPX-[\w-]{20,}"),
    ("API key", "akia", r"\bAKIA(?![A-Z0-9]*EXAMPLE\b)[A-Z0-9]{16}\b"),
    ("API key", "asia", r"\bASIA(?![A-Z0-9]*EXAMPLE\b)[A-Z0-9]{16}\b"),
    ("API key", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    ("API key", "sg.", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    ("API key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("API key", "xai-", r"\bxai-[A-Za-z0-9]{40,}"),
    ("API key", "pplx-", r"\bpplx-[A-Za-z0-9]{40,}"),
    ("API key", "r8_", r"\br8_[A-Za-z0-9]{30,}"),
    ("API key", "lin_api_", r"\blin_api_[A-Za-z0-9]{30,}"),
    ("API key", "key-", r"\bkey-[0-9a-f]{32}\b|\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("API key", "key=", r"(?i:accountkey|sharedaccesskey)=([A-Za-z0-9+/]{40,}={0,2})"),
    ("token", "gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    ("token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{18,}"),
    ("token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("token", "xapp-", r"\bxapp-\d-[A-Za-z0-9-]{20,}"),
    ("token", "hooks.slack", r"\bhooks\.slack\.com/services/(T\w{6,}/B\w{6,}/\w{16,})"),
    ("token", ":aa", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ("token", "eyj", r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
    ("token", "npm_", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("token", "pypi-", r"\bpypi-[A-Za-z0-9_-]{30,}"),
    ("token", "dop_v1_", r"\bdop_v1_[0-9a-f]{40,}"),
    ("token", "shpat_", r"\bshpat_[0-9a-f]{32}"),
    ("token", "dapi", r"\bdapi[0-9a-f]{32}\b"),
    ("token", "ntn_", r"\bntn_[A-Za-z0-9]{40,}"),
    ("token", "hv", r"\bhv[bsr]\.[A-Za-z0-9_-]{20,}"),
    ("token", "bearer", r"\b(?i:bearer)\s+(?=[\w+/.~=-]{0,60}\d)([A-Za-z0-9+/._~=-]{16,})"),
    (
        "password",
        "basic",
        r"\b(?i:basic)\s+([A-Za-z0-9+/]{8,}={1,2})(?![\w=])"
        r"|(?i:authorization):\s*(?i:basic)\s+([A-Za-z0-9+/=]{8,})",
    ),
)
_PASSWORDS = ("pass", "pwd", "kennwort", "contrase", "senha", "haslo", "wachtwoord", "losenord", "sifre")
_PASSWORDS_ELSEWHERE = (
    "парол",
    "hasło",
    "lösenord",
    "şifre",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "암호",
    "كلمة",
    "סיסמ",
    "κωδικ",
    "पासवर्ड",
)
_CODES = ("pin", "cvv", "cvc", "otp", "code", "-password")
_CODES_ELSEWHERE = ("пін", "пин")
_PHRASES = ("phrase", "seed", "mnemonic")
_CREDENTIALS = ("key", "token", "secret", "credential")
_CREDENTIALS_ELSEWHERE = ("ключ", "токен")

_CALLED = (
    r"passwords?|passwd|passcode|pass ?phrase|pwd|passwort|kennwort|mot de passe|contrase(?:ñ|n)a|senha"
    r"|has(?:ł|l)o"
    r"|wachtwoord|l(?:ö|o)senord|(?:ş|s)ifre|парол(?:ь|ем|ю|я)|密码|密碼|パスワード|비밀번호|암호|كلمة"
    r" المرور|كلمة السر"
    r"|סיסמה|κωδικ(?:ό|ο)ς|पासवर्ड"
)
_FOR = (
    r"(?:\s+(?:for|to|of|on|at|für|fur|zum|pour|du|de la|para|del|do|da|per|для|від|от|к|на"
    r"|до)\s+[^\n:=,.;]{1,40}?)?"
)
_LINK = (
    r"(?P<strong>\s*[:=：]\s*)|\s+(?:is|was|ist|lautet|est|es|é|è|to|jest|är|olan|це|это|є|[—–-])\s+"
    r"(?:now |still |currently )?|\s*(?:は|是|는|은)\s*"
)


@lru_cache(maxsize=64)
def _compile_pattern(shape: str) -> re.Pattern[str]:
    return re.compile(shape)


@lru_cache(maxsize=1)
def _password_pattern() -> re.Pattern[str]:
    """Match a word for a password and what follows it."""
    return re.compile(
        rf"(?:(?<!\w)|(?<=[\u3040-\u9fff\uac00-\ud7af]))(?:{_CALLED})(?![a-zа-яіїєё-])"
        rf"(?:{_FOR}(?:{_LINK})|(?P<none>\s+))"
        r"(?P<value>\"[^\"\n]{1,100}\"|'[^'\n]{1,100}'|«[^»\n]{1,100}»|“[^”\n]{1,100}”|`[^`\n]{1,100}`"
        r"|[^\s,;]{3,128})",
        re.I,
    )


@lru_cache(maxsize=1)
def _apart_pattern() -> re.Pattern[str]:
    """Match a password at the end of a line, a few words after the word for it, after a login, or joined to it.

    "пароль от сервера …", "login admin / pass …", "服务器密码…"
    """
    words = r"(?:\s+[^\W\d_][^\s\d,;:=_.]{0,30})"
    return re.compile(
        rf"(?:(?<!\w)(?:{_CALLED})(?![a-zа-яіїєё-]){words}{{1,4}}?\s+(?P<apart>[^\s,;]{{8,64}})"
        r"|(?<!\w)(?:log[io]n|user(?:name)?|e-?mail|лог[іи]н)\b\s*[:=]?\s*\S{1,60}\s*[/|,;&]?\s*(?:and\s+)?"
        r"(?:pass|pw|пароль)\s*[:=/]?\s+(?P<login>[^\s,;]{6,64})"
        r"|(?:密码|密碼|パスワード|비밀번호|암호)(?P<joined>[!-~]{6,64}))(?=[.,;)]?[ \t]*(?:$|[\n]))",
        re.I | re.M,
    )


_LESS_CERTAIN = frozenset({"variable", "named", "tool", "packed", "piped"})


@lru_cache(maxsize=1)
def _command_pattern() -> re.Pattern[str]:
    """Match what command lines give as a password: to a client's option, or in a variable such as PGPASSWORD.

    What is in quotes belongs to it as a whole; without quotes it ends at a space or at what ends a command.
    """
    rest = r"\b[^\n|;&]{0,200}?\s"
    bare = r"(?:\\.|[^\s'\"`|;&)\\]){4,128}"
    value = rf"(?:'[^'\n]{{4,128}}'|\"[^\"\n]{{4,128}}\"|{bare})"
    return re.compile(
        rf"\b(?:mysql\w*|mariadb[\w-]*)(?:{rest}|\s)-p(?P<mysql>(?!ort\b){value})"
        rf"|\bredis-cli{rest}-a\s+(?P<redis>{value})|\bredis-cli\s+-a\s+(?P<redis_first>{value})"
        rf"|\b(?:docker|podman|nerdctl|buildah|skopeo|registry|oc|az)\s+login{rest}-p\s+(?P<login>{value})"
        rf"|\b(?:sshpass|mongo\w*)(?:{rest}|\s)-p\s*(?P<client>{value})"
        rf"|\bcurl{rest}(?:-u|--user)[\s=]+(?:'[^\s:']{{1,60}}:(?P<curl_quoted>[^'\n]{{4,128}})'"
        rf"|\"[^\s:\"]{{1,60}}:(?P<curl_double>[^\"\n]{{4,128}})\"|[^\s:'\"]{{1,60}}:(?P<curl>{bare}))"
        rf"|\b(?:\w*zip|ldap\w+|openssl){rest}-[PwkK]\s+(?P<tool>{value})|\b7z\w*{rest}-p(?P<packed>{value})"
        rf"|\s--pass(?:word|phrase|wd)?[\s=]+(?P<named>{value})|\bsmbclient{rest}-U\s+\S{{1,60}}%(?P<share>{value})"
        rf"|\bsqlplus\s+[^\s/]{{1,60}}/(?P<oracle>[^\s@]{{4,128}})@|\bhtpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+(?P<web>{value})"
        rf"|\becho\s+(?P<piped>{value})\s*\|\s*sudo\s+-S|\bnet use{rest}/user:\S{{1,60}}\s+(?P<mounted>{value})"
        rf"|(?<![A-Za-z$\{{])[A-Z][A-Z0-9_]{{0,40}}(?:PASSWORD|PASSWD|PASSPHRASE|_PWD|_PASS)=(?P<variable>{value})"
    )


@lru_cache(maxsize=1)
def _bare_token_pattern() -> re.Pattern[str]:
    """Match a long value that directly follows the name of a credential: "twilio auth token 9f86…"."""
    return re.compile(
        r"(?<![A-Za-z])(?:(?:api|access|auth|bot|secret|session|refresh|client|service)[_ -]?(?:key|token|secret)"
        r"|token)\s+[\"'`]?(?P<value>[A-Za-z0-9_-]{24,200})(?![\w/.:-])",
        re.I,
    )


@lru_cache(maxsize=1)
def _code_pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?<!\w)(?:pin(?:[ -]?(?:code|number|nummer))?|п[іи]н(?:-?код)?|code pin|código pin|cv[vc]2?"
        r"|(?:one-time|verification|security|2fa|otp|sms)[ -](?:code|password|pin)|otp)"
        rf"(?:{_FOR}(?:\s*[:=—–-]\s*|\s+(?:is|was|ist|est|es|é|è|to|це|это|є)\s+)(?=\d{{3}})"
        rf"|{_FOR}\s+(?=\d{{4}})|\s+(?=\d{{3}}))(?P<value>\d{{3,8}})(?![\w%]|[.,:/-]\d)"
        r"(?!\s+(?:times|years|days|people|minutes|hours|boards?|characters|digits|цифр))",
        re.I,
    )


@lru_cache(maxsize=1)
def _phrase_pattern() -> re.Pattern[str]:
    """Match twelve words or more that open a wallet, and passphrases of several words."""
    return re.compile(
        r"\b(?:(?:seed|recovery|mnemonic|secret|backup)(?: recovery)?[ -]phrase|mnemonic"
        r"|seed)\b[^\n:=]{0,30}?"
        r"(?:\s*[:=]\s*|\s+is\s+)"
        r"(?P<seed>(?:\d{1,2}[.)] ?)?[a-z]{3,8}(?:[ ,]+(?:\d{1,2}[.)] ?)?[a-z]{3,8}){11,23})"
        r"|\bpass ?phrase\b[^\n:=.(){}/]{0,30}?(?:\s*[:=]\s*|\s+is\s+)(?P<pass>[^\s,.;]+(?: [^\s,.;]+){2,9})",
        re.I,
    )


@lru_cache(maxsize=1)
def _assignment_pattern() -> re.Pattern[str]:
    """Match a name for a credential with a value that no sentence would contain."""
    return re.compile(
        r"(?<![A-Za-z])(?:api[_ -]?key|access[_ -]?key(?:[_ -]?id)?|secret[_ -]?(?:access[_ -]?)?key"
        r"|private[_ -]?key|client[_ -]?secret|auth[_ -]?token|access[_ -]?token|refresh[_ -]?token"
        r"|bot[_ -]?token"
        r"|session[_ -]?token|encryption[_ -]?key|credentials?|secret|token|key|ключ|токен)"
        r"[\"'`]?\s*(?:[:=]|\bis\b|\bwas\b|\bце\b|\bэто\b|—"
        r"|-)\s*[\"'`]?(?P<value>[A-Za-z0-9_+/=.~!@#$%^&*-]{8,400})",
        re.I,
    )


_DIGITS = r"\d\d"
_NUMBER = r"(?<![\w.+/-])\d(?:[ -]?\d){12,18}(?![\w-])(?!\.\d)"
_IBAN = r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"
_KEY_BLOCK = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_AWS_SECRET = r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/])"
_URL_PASSWORD = r"://([^\s/:@]{0,100}:(?P<value>[^\s/]{1,200}))@(?=[\w.\[<{$-])"
_REFERENCE = r"\$\w|\$?[{<]|%\(|\w+(?:\.\w+)*[(\[]|(?:os|env|config|settings|self|process|secrets|vars)\."
_NAME_PART = r"(?:[A-Z]?[a-z]{2,15}|[A-Z]{2,15})+\d{0,4}|[a-zA-Z]|v?\d{1,8}"
_NUMBERED = (
    r"(?i)\b(?:order|invoice|tracking|parcel|shipment|ticket|ref(?:erence)?|case|isbn|imei"
    r"|замовлення|заказ)\b"
)


def _set(table: str) -> frozenset[str]:
    return frozenset(table.split())


# Words that follow "password is" when it is not given.
_ABOUT = _set("""weak strong long short safe secure insecure expired wrong correct incorrect old new same
different forgotten required optional reset changed encrypted hashed stored saved hidden known unknown
needed important mandatory missing empty blank none null true false the that this not too very in on at kept
never always set lost leaked stolen shared simple complex easy hard unique good bad fine okay invalid valid
due about what why how where who something private secret protected disabled enabled gone also only still
used reused written see ask his her my their our your from with for and but manager managers reset resets
policy recovery field prompt given unset nonexistent present absent change use enter type login unlock
n/a tbd redacted removed sicher falsch vergessen gespeichert geändert
abgelaufen schwach stark nicht zu sehr correcto seguro oublié faible fort trop pas perdu changé olvidada
débil segura perdida segura esquecida fraca забутий складний простий слабкий надійний забыт сложный простой
слабый надежный не у в дуже очень зберігає хранит słabe silne zapomniane niet zwak sterk""")
# Any of these after "passphrase is" makes it a sentence.
_TALK = _set("""the a an in is are was be can by to for and or with of my your too not now no stored long kept same as
on it if when using used only must should will has have required empty possible""")
# Values that stand where documentation leaves out the real one.
_PLACEHOLDERS = _set("""pass password passwd pw pwd secret token key xxx xxxx yourpassword mypassword changeme changeit
example""")
_POSSESSIVES = _set("your my the some new old a user db root admin change me here")
# Before "key": a key of data or of a keyboard, or one that is meant to be public.
_OTHER_KEYS = _set("""primary foreign partition sort cache config configuration setting registry dictionary dict map
hash json yaml toml redis object index composite shard routing lookup flag metric shortcut arrow public gpg pgp gnupg
host unique natural surrogate cluster clustering idempotency grouping translation""")
_TOOLS = ("1password", "sha", "bcrypt", "argon", "pbkdf", "scrypt", "md5", "oauth", "2fa", "base64")
_EDGES = "\"'«»“”`([{<"
_TAIL = ".,;:)]}>\"'»”`"


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets in a text, in order and without overlaps."""
    found = _detect_all(text)
    if len(found) < 2:
        return found
    found.sort(key=lambda secret: (secret.start, -secret.end))
    apart: list[Secret] = []
    for secret in found:
        if not apart or secret.start >= apart[-1].end:
            apart.append(secret)
        elif secret.end > apart[-1].end:  # they overlap: one removal covers both
            apart[-1] = Secret(apart[-1].kind, apart[-1].start, secret.end)
    return apart


def mask(text: str) -> str:
    """Return the text with each secret replaced by its kind: "[password removed]"."""
    parts: list[str] = []
    at = 0
    for secret in find_secrets(text):
        parts += (text[at : secret.start], f"[{secret.kind} removed]")
        at = secret.end
    return "".join((*parts, text[at:])) if parts else text


def _detect_all(text: str) -> list[Secret]:
    """Run every detector, each after a plain search for what it needs: most texts pass them all at once."""
    lower = text.lower()
    found: list[Secret] = []
    if _compile_pattern(_DIGITS).search(text):
        found += _cards(text)
        found += _accounts(text)
    for kind, hint, shape in _SHAPES:
        if hint in lower:
            for match in _compile_pattern(shape).finditer(text):
                found.append(Secret(kind, *match.span(match.lastindex or 0)))
    if "://" in lower:
        found += _url_passwords(text)
    if " -" in text or "=" in text or "sqlplus" in lower:
        found += _command_passwords(text)
    foreign = not text.isascii()
    if "-----begin" in lower:
        found += _key_blocks(text)
    if "akia" in lower or "aws" in lower:
        for match in _compile_pattern(_AWS_SECRET).finditer(text):
            if _is_random(match[0]) and "EXAMPLE" not in match[0]:
                found.append(Secret("API key", *match.span()))
    if _contains_any(lower, _CODES) or (foreign and _contains_any(lower, _CODES_ELSEWHERE)):
        found += [Secret("PIN", *match.span("value")) for match in _code_pattern().finditer(text)]
    if _contains_any(lower, _PHRASES):
        found += _phrases(text)
    if _contains_any(lower, _PASSWORDS) or (foreign and _contains_any(lower, _PASSWORDS_ELSEWHERE)):
        for match in _password_pattern().finditer(text):
            if span := _password(text, match):
                found.append(Secret("password", *span))
        found += _passwords_apart(text)
    if _contains_any(lower, _CREDENTIALS) or (foreign and _contains_any(lower, _CREDENTIALS_ELSEWHERE)):
        found += _credentials(text)
    return found


def _contains_any(lower: str, hints: tuple[str, ...]) -> bool:
    for hint in hints:  # noqa: SIM110 - a generator would cost as much as the search
        if hint in lower:
            return True
    return False


def _phrases(text: str) -> Iterator[Secret]:
    for match in _phrase_pattern().finditer(text):
        if match["seed"]:
            yield Secret("seed phrase", *match.span("seed"))
        elif _TALK.isdisjoint(match["pass"].lower().split()):
            yield Secret("password", *match.span("pass"))


def _credentials(text: str) -> Iterator[Secret]:
    for match in _assignment_pattern().finditer(text):
        start = match.start("value")
        value = match["value"].rstrip(_TAIL)
        if _is_random(value) and not _is_setting(text, match, value):
            yield Secret("API key" if "key" in match[0].lower() else "token", start, start + len(value))
    for match in _bare_token_pattern().finditer(text):
        value = match["value"]
        if sum(c.isdigit() for c in value) >= 4 and _is_random(value) and not _is_setting(text, match, value):
            yield Secret("token", *match.span("value"))


def _passwords_apart(text: str) -> Iterator[Secret]:
    for match in _apart_pattern().finditer(text):
        kind = match.lastgroup or "apart"
        value = match[kind].rstrip(_TAIL)
        likely = _is_unpronounceable(value) if kind == "apart" else _is_mixed(value) and any(map(str.isdigit, value))
        if not likely or _is_placeholder(value):
            continue
        yield Secret("password", match.start(kind), match.start(kind) + len(value))


def _is_unpronounceable(value: str) -> bool:
    """Return True for letters and digits that are no name of a thing: with a symbol, in two cases, or many digits."""
    digits = sum(c.isdigit() for c in value)
    if len(value) < 8 or digits < 2 or not any(c.isalpha() for c in value) or any(c in "_/:\\.-@" for c in value):
        return False
    mixed_case = any(c.islower() for c in value) and any(c.isupper() for c in value[1:])
    return mixed_case or digits >= 5 or any(c in "!#$%^&*+=" for c in value)


def _command_passwords(text: str) -> Iterator[Secret]:
    for match in _command_pattern().finditer(text):
        kind = match.lastgroup or ""
        value = match[kind].strip("\"'")
        if len(value) < 4 or _is_placeholder(value) or value.startswith("-") or value.endswith(" removed]"):
            continue
        if kind in _LESS_CERTAIN and not _is_mixed(value):
            continue
        yield Secret("password", *match.span(kind))


def _url_passwords(text: str) -> Iterator[Secret]:
    for match in _compile_pattern(_URL_PASSWORD).finditer(text):
        if not _is_placeholder(match["value"]):
            yield Secret("password", *match.span(1))


def _is_placeholder(value: str) -> bool:
    """Return True for what documentation writes instead of a secret: a variable, a call, ``<password>``, ``***``."""
    bare = value.strip("<>[]{}$%*._-").lower()
    if bare in _PLACEHOLDERS or not bare or _compile_pattern(_REFERENCE).match(value):
        return True
    parts = set(re.split(r"[_-]", bare))
    return bool(parts & _PLACEHOLDERS) and parts <= _PLACEHOLDERS | _POSSESSIVES


def _is_setting(text: str, match: re.Match[str], value: str) -> bool:
    """Return True if the words talk about a setting or another name, not about a credential.

    "The config key is server.max_connections=100", "the primary key is order_item_2024".
    """
    name, equals, assigned = value.partition("=")
    if equals and assigned.strip("=") and re.fullmatch(r"[A-Za-z_][A-Za-z_.-]*\d?", name):
        return not _is_random(assigned)
    if _is_placeholder(value) or "%20" in value:
        return True
    parts = re.split(r"[_./#=-]+", value)
    if len(parts) > 1 and all(_compile_pattern(_NAME_PART).fullmatch(part) for part in parts if part):
        return True
    before = text[max(0, match.start() - 30) : match.start()].lower().split()
    return match[0].lower().startswith("key") and bool(before) and before[-1].lstrip("\"'`(") in _OTHER_KEYS


def _accounts(text: str) -> Iterator[Secret]:
    for match in _compile_pattern(_IBAN).finditer(text):
        if _is_iban(match[0].replace(" ", "")):
            yield Secret("bank account", *match.span())


def _key_blocks(text: str) -> Iterator[Secret]:
    at = 0
    while begin := _compile_pattern(_KEY_BLOCK).search(text, at):
        end = _compile_pattern(_KEY_END).search(text, begin.end())
        # A block that was cut off still reveals the key.
        at = end.end() if end else len(text)
        yield Secret("private key", begin.start(), at)


def _password(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Return the position of the password that the words announce; None if they only talk about one."""
    start, end = match.span("value")
    raw = match["value"]
    quoted = raw[0] in _EDGES and len(raw) > 2 and raw[-1] in _TAIL and raw[0] not in "([{<"
    # "$PWD was unset", "--ask-password -user", "/etc/passwd is missing": a name, unless a value is assigned to it
    named = text[max(0, match.start() - 1) : match.start()] in ("$", "-", "/", ".", "@")
    named = named or match[0][:6].lower().startswith(("pwd", "passwd"))
    if named and match["none"] is not None:
        return None
    if raw.startswith("removed]") and text[match.start() - 1 : match.start()] == "[":
        return None  # `mask` was here before
    if quoted:
        inside = raw[1:-1]
        if len(inside) < 3 or inside != inside.strip() or _is_placeholder(inside):
            return None
        return (start, end) if match["none"] is None or _is_mixed(inside) else None
    value = raw.rstrip(_TAIL)
    lower = value.lower()
    if len(value) < 3 or lower in _ABOUT or lower.startswith(_TOOLS) or "//" in value[:8] or _is_placeholder(raw):
        return None
    if named and match["strong"] is None and not _is_mixed(value):
        return None
    end = start + len(value)
    rest = text[end : end + 40].split("\n", 1)[0].strip(" " + _TAIL + "!?")
    last = not rest or text[end : end + 1] in (",", ";", ".")
    if match["none"] is not None:
        return (start, end) if len(value) >= 6 and _is_mixed(value) else None
    if value.isdigit():
        # "password is 12 characters long"
        return (start, end) if last or match["strong"] else None
    if _is_mixed(value):
        return start, end
    if match["strong"] is not None:
        return (start, end) if last else None
    return (start, end) if last and len(value) >= 4 and not lower.endswith(("ed", "ing", "able")) else None


def _is_mixed(value: str) -> bool:
    """Return True for more than letters of one case, such as hunter2, which no ordinary sentence contains."""
    if any(c.isdigit() for c in value) and any(c.isalpha() or c in "!@#$%^&*_+=" for c in value):
        return True
    if any(c in "!@#$%^&*_+=" for c in value[:-1]):
        return True
    return any(a.islower() and b.isupper() for a, b in pairwise(value))


def _is_random(value: str) -> bool:
    """Return True if a value assigned to a credential can be one, rather than a word, a number or a name."""
    letters = sum(c.isalpha() for c in value)
    digits = sum(c.isdigit() for c in value)
    if len(value) < 8 or not letters or not digits:
        return False
    if len(value) < 16 and ("-" in value or "." in value or "/" in value or "_" in value):
        return False  # utf-8, v2.1.3, 2024-05-03, user_id_12
    return len(set(value)) >= 6 and digits >= 2


def _cards(text: str) -> Iterator[Secret]:
    for match in _compile_pattern(_NUMBER).finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if not _is_card(digits, re.split(r"[ -]", match[0])):
            continue
        before = text[max(0, match.start() - 30) : match.start()]
        if match[0].isdigit() and _compile_pattern(_NUMBERED).search(before):
            continue  # one order number in ten has the check digit of a card
        yield Secret("card number", *match.span())


def _is_card(digits: str, groups: list[str]) -> bool:
    size = len(digits)
    two, four = int(digits[:2]), int(digits[:4])
    plausible = (
        (digits[0] == "4" and size in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and size == 16)
        or (two in (34, 37) and size == 15)
        or ((four == 6011 or two in (65, 35)) and size == 16)
        or (two in (30, 36, 38) and size == 14)
        or (two == 62 and 16 <= size <= 19)
    )
    if not plausible or len(set(digits)) < 2:
        return False
    if len(groups) > 1 and [len(group) for group in groups] not in (
        [4, 4, 4, 4],
        [4, 6, 5],
        [4, 6, 4],
        [4, 4, 4, 4, 3],
    ):
        return False
    total = 0
    for at, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + at % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_iban(value: str) -> bool:
    if not 15 <= len(value) <= 34:
        return False
    turned = value[4:] + value[:4]
    return int("".join(str(int(c, 36)) for c in turned)) % 97 == 1
