"""Commands and logins whose secret stands at a place of its own, without a name."""

import re
from collections.abc import Callable

from .sql import Outline, outline_of
from .values import is_harmless

_ARGUMENT = (
    r"(?P<value>'[^']{1,500}|\"[^\"]{1,500}|(?:[^\s'\"\\]|\\(?!\\{0,63}[\"']))*"
    r"(?:[^\s'\"\\,;]|\\(?!\\{0,63}[\"'])))"
)
_LINE = r"\b[^\n|;&]{0,300}?\s"
_ITEM = r"\b[^\n|;&]{0,300}?[\s'\"]"
# Programs whose `-p` is a password
_LOGIN_PROGRAMS = (
    *("docker login", "podman login", "az login", "oc login", "nerdctl login", "buildah login"),
    *("skopeo login", "registry login", "airflow users create", "mongo", "mongosh", "mongodump"),
    *("mongorestore", "beeline", "cqlsh", "influx", "twine", "cypher-shell", "psexec", "usermod"),
)
_ORACLE_USER = r"\s+(?:-\w+\s+)?['\"]?[A-Za-z]\w{0,60}/"
# Programs, and what stands between them and a password.
_OPTIONS = (
    (_LOGIN_PROGRAMS, rf"{_LINE}-p\s+"),
    (("mysql", "mariadb"), rf"[\w-]{{0,20}}(?:{_ITEM}-p(?=[^\s'\"])|{_LINE}-p(?=['\"]))"),
    (("sqlcmd", "bcp", "isql", "osql"), rf"{_LINE}-P\s?"),
    (("zip", "unzip"), rf"{_LINE}-P\s+"),
    (("redis-cli",), rf"{_LINE}-a\s+"),
    (("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami"), rf"{_LINE}-w\s+"),
    (("sshpass",), r"\s+-p\s?"),
    (("7z", "rar", "unrar"), rf"{_LINE}-p"),
    (("vault login",), r"\s+(?:-no-print\s+)?(?:token=)?(?!-)"),
    (("openssl",), rf"{_LINE}(?:-k\s+|-pass(?:in|out)?\s+pass:)"),
    (("ssh-keygen",), rf"{_LINE}-N\s+"),
    (("schtasks",), rf"{_LINE}/rp\s+"),
    (("net use",), r"\s+(?:\w:\s+)?\\\S+\s+(?:/user:\S+\s+)?(?![/*])"),
    # Without an option behind it, only what looks like a password is one.
    (("net user",), r"\s+[\w.$\\-]+\s+(?![/*])(?=\S+\s+/|(?=\S*\d)\S*[A-Za-z]\S{5})"),
    (("mc alias set",), r"\s+\S+\s+\S+\s+\S+\s+(?!-)"),
    (("ConvertTo-SecureString",), r"\s+(?:-String\s+)?(?=['\"])"),
    (("sqlplus",), rf"{_ORACLE_USER}(?=[^\s/@])"),
    # `expdp data/x` may be a path.
    (("impdp", "expdp", "sqlldr"), rf"{_ORACLE_USER}(?=[^\s/@]{{1,200}}(?:@|['\"]?\s+\w+=))"),
    (("lftp",), rf"{_LINE}-u\s+[^\s,]{{1,200}},"),
    (("htpasswd",), r"\s+-(?:\w*n\w*\s+|\w*b\w*\s+(?:-\w+\s+)?\S+\s+)\S+\s+(?!-)"),
    (
        ("databricks secrets", "az keyvault secret", "hadoop credential", "aws ssm put-parameter"),
        rf"{_LINE}--?(?:string-)?value[\s=]+",
    ),
    (
        ("curl", "etcdctl"),
        rf"{_LINE}(?:-[A-Za-z]{{0,8}}[uU]|--(?:proxy-)?user)(?:\s*=)?\s*"
        + r"['\"]?(?!\d+:\d+(?!\S))[^\s:'\"]+:",
    ),
    (
        ("curl ",),
        r"[^\n|;&]{0,300}?(?<=\s)(?:-[A-Za-z]{0,8}b|--cookie)[\s=]+(?=['\"]?[\w.-]{1,100}=)",
    ),
    (("--auth", "http -a", "https -a"), r"[\s=]+['\"]?[^\s:'\"]+:"),  # of HTTPie
)
PROGRAMS = (*(program for programs, _ in _OPTIONS for program in programs), "sudo")
_COMMANDS = [
    (
        programs,
        re.compile(rf"(?P<head>(?<![\w.])(?<!jdbc:)(?:{'|'.join(programs)}){rest}){_ARGUMENT}"),
    )
    for programs, rest in _OPTIONS
]
_NETRC = re.compile(
    r"(?P<head>\b(?:machine\s{1,20}\S{1,300}|default)\s{1,20}login\s{1,20}\S{1,300}\s{1,20}"
    r"(?:account\s{1,20}\S{1,300}\s{1,20})?password\s{1,20})" + _ARGUMENT
)
# echo x | docker login --password-stdin
_PIPED = re.compile(
    rf"(?P<head>\b(?:echo|printf)\s+(?:-n\s+)?){_ARGUMENT}"
    r"(?=['\"]?\s*\|[^\n|]{0,200}(?:\s--(?:password-stdin|stdin|passphrase-fd)|"
    r"\b(?:kinit|chpasswd|gcloud\s+secrets)\b|"
    r"\bsudo(?:\s+-\w+(?:\s+\w+)?){0,3}?\s+-\w{0,8}S\b))"
)
# host:port:database:user:password of PostgreSQL's file of passwords
_PGPASS = re.compile(
    r"(?P<head>(?<![\w.])[\w.*-]{1,300}:(?:\d{2,5}|\*):[\w*-]{1,100}:[\w.@*-]{1,100}:)"
    r"(?P<value>[^\s:'\"]{1,500})"
)
# user:password@host:port and user:password@tcp(host)
_LOGIN = re.compile(
    r"(?P<head>(?<![\w/.@:+-])[A-Za-z][\w.-]{0,60}:)(?!//)(?P<value>[^\s:@'\"<>]{4,200})"
    r"(?=@(?!sha\d)[\w.-]{1,200}(?::\d|\())"
)
_ORACLE_LOGIN = re.compile(
    r"(?P<head>(?<![\w/.@:+-])[A-Za-z][\w$#]{0,60}/)(?P<value>[^\s@'\"<>|]{1,200})"
    r"(?P<host>@(?://)?[\w.-]{1,200})(?P<port>:\d{2,5}\b)?"
)
_ORACLE_COMMAND = re.compile(
    r"\b(?:sqlplus|connect(?:ed|ing|ion)?|conn|sqlldr|rman|imp(?:dp)?|exp(?:dp)?|userid|log[io]n|"
    r"tnsping|jdbc:oracle)\b",
    re.IGNORECASE,
)
_GENERATED = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[^.=/]{10,}")
_VERSION = re.compile(r"@(?:v?\d|sha256|latest|main|master)|@[A-Z0-9-]+\.[A-Z0-9.-]+\Z")


def hide_in_commands(text: str, outline: Outline, gone: str) -> str:
    """Return the text without passwords of commands, netrc lines and logins of Oracle.

    >>> from .sql import outline_of
    >>> text = "curl -u ann:hunter2 https://x; mysql -u root -phunter2 -h db"
    >>> hide_in_commands(text, outline_of(text), "***")
    'curl -u ann:*** https://x; mysql -u root -p*** -h db'
    >>> text = "machine h login ann password hunter2, connect ann/hunter2@db"
    >>> hide_in_commands(text, outline_of(text), "***")
    'machine h login ann password ***, connect ann/***@db'
    """

    def hidden(login: re.Match[str]) -> str:
        value = login["value"]
        if value.lstrip("'\"").startswith(gone) or is_harmless(value):
            return login[0]
        quote = value[0] if value[0] in "'\"" else ""
        return login["head"] + quote + gone

    for programs, pattern in _COMMANDS:
        if any(program in text for program in programs):
            text, outline = _sub_outside_parts(pattern, hidden, text, outline)
    if "|" in text:
        text = _PIPED.sub(hidden, text)
    if "login" in text:
        text = _NETRC.sub(hidden, text)
    if "pgpass" in outline.text:
        text = _PGPASS.sub(hidden, text)
    if "@" in text:
        text = _LOGIN.sub(hidden, text)
    if "@" in text and "/" in text:
        text = _ORACLE_LOGIN.sub(lambda login: _hidden_oracle_login(login, gone), text)
    return text


def _sub_outside_parts(
    pattern: re.Pattern[str], hidden: Callable[[re.Match[str]], str], text: str, outline: Outline
) -> tuple[str, Outline]:
    """Replace the matches that begin outside of the literals and comments of SQL.

    Literals and comments were redacted before, each by itself. Return the text and its outline.
    """
    parts = outline.parts
    pieces: list[str] = []
    end = at = number = 0
    while command := pattern.search(text, at):
        start = command.start()
        while number < len(parts) and parts[number].end <= start:
            number += 1
        if number < len(parts) and parts[number].start <= start:
            at = parts[number].end
            continue
        pieces += [text[end:start], hidden(command)]
        end = at = command.end()
    changed = "".join([*pieces, text[end:]])
    if changed == text:
        return text, outline
    return changed, outline_of(changed, is_part=outline.is_part)


def _hidden_oracle_login(login: re.Match[str], gone: str) -> str:
    """Hide `user/password@host` after a command of Oracle, with a port, or if it was generated.

    Packages (`actions/checkout@v4`) and Kerberos' principals (`hive/host@REALM.COM`) look alike.
    """
    if login["value"].startswith(gone) or _VERSION.match(login["host"]):
        return login[0]
    before = login.string[max(0, login.start() - 40) : login.start()]
    is_login = (
        login["port"] is not None
        or _ORACLE_COMMAND.search(before) is not None
        or _GENERATED.fullmatch(login["value"]) is not None
    )
    if not is_login:
        return login[0]
    return login["head"] + gone + login["host"] + (login["port"] or "")
