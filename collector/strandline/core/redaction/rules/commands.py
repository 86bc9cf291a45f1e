"""Commands and logins whose secret stands at a place of its own, without a name."""

import re

_FLAGS = re.IGNORECASE | re.ASCII
_CURL_LOGIN = re.compile(
    r"(?P<head>(?<!\S)(?:-u|--(?:proxy-)?user)(?:\s*=)?\s*['\"]?(?!\d+:\d+(?!\S))[^\s:'\"]+:)"
    r"(?P<value>(?:[^\s'\"\\]|\\(?!\\{0,63}[\"']))+)",
    _FLAGS,
)


# One of these is in each text that `hide_logins` or a function of ClickHouse changes.
COMMANDS = (
    *("curl", "mysql", "mariadb", "sqlcmd", "bcp", "isql", "redis", "ldap", "sshpass", "beeline"),
    *("mongo", "login", "cqlsh", "influx", "htpasswd", "@", "://", "postgresql", "remote", "azure"),
    *("lftp", "zip -p", "7z", "keygen", "openssl"),
)
_ARGUMENT = r"(?P<value>'[^']{1,500}|\"[^\"]{1,500}|[^\s'\",;]{1,500})"
# A command, and the option of its password.
_PASSWORD_OPTION = re.compile(
    r"(?P<head>"
    r"(?<=\s)-(?:(?:src|dest)?storepass|keypass)\s+|(?<=\s)-pass(?:in|out)?\s+pass:|"
    r"\b(?:sshpass\s+-p\s?|"
    r"(?:mysql|mariadb)[\w-]{0,20}\b[^\n|;&]{0,300}?\s-p(?=\S)|"
    r"(?:sqlcmd|bcp|isql)\b[^\n|;&]{0,300}?\s-P\s?|"
    r"redis-cli\b[^\n|;&]{0,300}?\s-a\s+|"
    r"ldap(?:search|modify|add|whoami)\b[^\n|;&]{0,300}?\s-w\s+|"
    r"zip\b[^\n|;&]{0,100}?\s-P\s+|7z\b[^\n|;&]{0,100}?\s-p|"
    r"\bvault\s+login\s+(?:-no-print\s+)?(?:token=)?(?!-)|openssl\b[^\n|;&]{0,300}?\s-k\s+|"
    r"ssh-keygen\b[^\n|;&]{0,300}?\s-N\s+|"
    r"lftp\b[^\n|;&]{0,300}?\s-u\s+[^\s,]{1,200},|"
    r"(?:(?:docker|podman|nerdctl|buildah|skopeo|az|oc|helm\s+registry)\s+login|"
    r"beeline|mongo(?:sh|dump|restore)?|cqlsh|influx|htpasswd\s+-b)\b[^\n|;&]{0,300}?\s-p\s+)"
    r")" + _ARGUMENT
)
_NETRC = re.compile(
    r"(?P<head>\b(?:machine\s{1,20}\S{1,300}|default)\s{1,20}login\s{1,20}\S{1,300}\s{1,20}"
    r"(?:account\s{1,20}\S{1,300}\s{1,20})?password\s{1,20})" + _ARGUMENT
)
# host:port:database:user:password of PostgreSQL's file of passwords
_PGPASS = re.compile(
    r"(?P<head>(?<![\w.])[\w.*-]{1,300}:(?:\d{2,5}|\*):[\w*-]{1,100}:[\w.@*-]{1,100}:)"
    r"(?P<value>[^\s:'\"]{1,500})"
)
_ORACLE_LOGIN = re.compile(
    r"(?P<head>(?<![\w/.@:+-])[A-Za-z][\w$#]{0,60}/)(?P<value>[^\s/@'\"<>|]{1,200})"
    r"(?P<host>@(?://)?[\w.-]{1,200})(?P<port>:\d{2,5}\b)?"
)
_ORACLE_COMMAND = re.compile(
    r"\b(?:sqlplus|connect(?:ed|ing|ion)?|conn|sqlldr|rman|imp(?:dp)?|exp(?:dp)?|userid|log[io]n|"
    r"tnsping|jdbc:oracle)\b",
    re.IGNORECASE,
)
_GENERATED = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[^.=]{10,}")
_VERSION = re.compile(r"@(?:v?\d|sha256|latest|main|master)|@[A-Z0-9-]+\.[A-Z0-9.-]+\Z")


def hide_logins(text: str, gone: str) -> str:
    """Return the text without passwords of commands, netrc lines and logins of Oracle.

    >>> hide_logins("curl -u ann:hunter2 https://x; mysql -u root -phunter2 -h db", "***")
    'curl -u ann:*** https://x; mysql -u root -p*** -h db'
    >>> hide_logins("machine h login ann password hunter2, connect ann/hunter2@db", "***")
    'machine h login ann password ***, connect ann/***@db'
    """

    def hidden(login: "re.Match[str]") -> str:
        value = login["value"]
        if value.lstrip("'\"").startswith(gone):
            return login[0]
        quote = value[0] if value[0] in "'\"" else ""
        return login["head"] + quote + gone

    if "curl" in text:
        text = _CURL_LOGIN.sub(hidden, text)
    if " -" in text or "vault" in text:
        text = _PASSWORD_OPTION.sub(hidden, text)
    if "login" in text:
        text = _NETRC.sub(hidden, text)
    if "pgpass" in text.lower():
        text = _PGPASS.sub(hidden, text)
    if "@" in text and "/" in text:
        text = _ORACLE_LOGIN.sub(lambda login: _hidden_oracle_login(login, gone), text)
    return text


def _hidden_oracle_login(login: "re.Match[str]", gone: str) -> str:
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
