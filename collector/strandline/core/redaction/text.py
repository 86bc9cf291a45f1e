"""Secrets in any text: in its addresses, in SQL and its options, in code, shells, connections, and JSON inside of texts.

By allow-list where the form says what may stand there: of an address scheme, host, port and path stay, of SQL's options
those on a list of harmless names. Elsewhere by the names of what they are given to. Redacting twice is redacting once.
"""

import re

GONE = "[redacted]"
PASSES = 5  # what one of them leaves may be read otherwise by the next: two quoted texts side by side are one

# Containers, not users: abfss://container@account.dfs.core.windows.net/path
_CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs", "viewfs")
_PARAMETERS = r"[?;](?:[^\s'\"`\\{]++|\{[^{}'\"\\]*+\}|\{)*+"
_ADDRESS = re.compile(
    rf"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.:-]{{0,60}}://)(?P<rest>[^\s'\"`<>\\?;]++(?:{_PARAMETERS})?|{_PARAMETERS})"
)
# A login whose password has characters that would end an address; a port has none.
_ODD_LOGIN = re.compile(r"(?<=://)[^\s/@:'\"<>]{1,200}+:(?!\d++(?![^\s/,;?#'\"]))[^\s/@\"]*+@")
_JDBC_OPAQUE = re.compile(r"(?P<head>jdbc:[\w:.-]+?:)(?!//)(?P<rest>[^\s'\"`<>]+)")
# Where `?` is a glob's, unless a name and `=` follow it.
_FILE_SCHEMES = frozenset(
    re.findall(
        r"\w+", "abfs abfss adl alluxio cos cosn dbfs file gcs gs hdfs maprfs obs ofs oss s3 s3a s3n viewfs wasb wasbs"
    )
)
_SEPARATOR = re.compile(r"[?;]")
_FILE_PARAMETERS = re.compile(r";|\?(?=[\w.-]+=)")
_HARMLESS_PARAMETER = re.compile(r"(?:databasename|database|currentschema|schema)=", re.IGNORECASE)
_PARAMETERS_STAY = ("jdbc:", "sqlserver://", "mssql://")  # of two databases of one server, which namespaces tell apart

# A count of tokens tells nothing. What stands before a word is looked at after it: few places have the word.
_COUNTING = "".join(
    f"(?<!{word}tokens)(?<!{word}[._-]tokens)"
    for word in ("max", "min", "num", "prompt", "completion", "total", "input", "output", "cached")
)
_NO_TOKEN = r"iz|[._-]?(?:count|limit|usage|type)"
_TOKEN_WORD = rf"token(?:(?!s|{_NO_TOKEN})|s{_COUNTING}(?!{_NO_TOKEN}))"
_PASS_WORD = r"pass(?<![a-z]pass)(?![a-z])|(?-i:Pass(?<=[a-z]Pass)(?![A-Za-z]))"
SECRET_NAME = re.compile(
    rf"passw|passphrase|passcode|{_PASS_WORD}|pwd|secret|{_TOKEN_WORD}|credential|cookie|"
    r"(?:access|api|private|account|shared|encryption|master|ssh)[._-]?key|"
    r"auth(?!or(?!iz)|enticationtype)|signature|jaas|keytab|\bsas\b",
    re.IGNORECASE | re.ASCII,
)
_HARMLESS_OPTION = re.compile(
    r"path|format|header|delimiter|sep|inferschema|mergeschema|provider|dbtable|driver|topic|subscribe|compression|"
    r"partition\w*|numpartitions|url|uri|location|multiline|mode|encoding|dateformat|timestampformat|"
    r"kafka\.bootstrap\.servers|format-version|write\.[\w.-]+|read\.[\w.-]+|commit\.[\w.-]+|delta\.[\w.-]+|"
    r"versionasof|timestampasof|snapshot-id|startingoffsets|endingoffsets|connector|bucket|primary-key|changelog-producer|bucketed_by|sorted_by|bucket_count",
    re.IGNORECASE,
)

# Every pattern below reads a text once, whatever is in it: nothing that was read is given back or read from its middle.
# A quoted text that does not end goes on to the end.
_QUOTED = r"(?:'(?:[^'\\]++|\\[\s\S]|'')*+(?:'|\\?\Z)|\"(?:[^\"\\]++|\\[\s\S])*+(?:\"|\\?\Z))"
_IS = r"(?:\s*+(?:=>?|:)\s*+|\s++)"
_SQL_OPTIONS = re.compile(
    r"(?:\bOPTIONS|(?<![\w.])(?:(?:TBL)?+PROPERTIES|WITH|CREDENTIALS|ENCRYPTION))\s*+=?\s*+\((?!\s*+SELECT\b)",
    re.IGNORECASE | re.ASCII,
)
_SQL_NESTING = re.compile(rf"{_QUOTED}|[()]")
_SQL_ARRAY = r"(?i:ARRAY)\s*+\[[^\]]*+\]"
_SQL_OPTION = re.compile(
    rf"({_QUOTED}|`[^`]++`|[\w.-]++)(?:({_IS})({_SQL_ARRAY}|(?:[neuxNEUX]&?+)?+{_QUOTED}|[^\s,'\"=()]++))?+", re.ASCII
)

# What a text tells by its name: `name = 'value'` of SQL and code, `name=value` of shells and connections, `name: value`.
# One branch for each letter that may begin one: half of the time goes into looking for these.
_TEXT_SECRETS, _GIVEN_SECRETS = (
    rf"P(?:ASSW(?:OR)?D|ASSPHRASE|WD|RIVATE[._-]?KEY)|S(?:ECRET|(?:HARED|SH)[._-]?KEY)|{_TOKEN_WORD}|"
    rf"A(?:UTHORIZATION|(?:CCESS|PI|CCOUNT)[._-]?KEY)|CREDENTIAL|(?:ENCRYPTION|MASTER)[._-]?KEY{more}"
    for more in ("", rf"|{_PASS_WORD}|SIGNATURE")  # these say something else but before `=`
)
_TELLING = re.compile(rf"{_GIVEN_SECRETS}|IDENTIFIED|COOKIE", re.IGNORECASE | re.ASCII)
_IDENTIFIED = r"\bIDENTIFIED\s++(?:WITH\s++\S++\s++)?+BY"
# A JSON's quotes in a JSON's string in a JSON's string have one backslash, one level deeper three, then seven.
_ESCAPED = "|".join(
    rf'(?:(?P<open{n}>\\{{{n}}}")(?:[^\\"]++|\\{{{n + 1},}}+"?+|\\{{1,{n}}}+(?!["\\]))*+(?P<close{n}>\\{{{n}}}")?+)'
    for n in (1, 3, 7)
)
_TRIPLE = "|".join(  # '''a' is SQL's as well
    (
        r"\"{3}(?:[^\"]++|\"(?!\"\"))*+(?:\"{3}|\Z)|'{3}(?:[^']++|'(?!''))*+'{3}",
        *(rf'(?:\\{{{n}}}"){{3}}(?:[^\\"]++|(?!(?:\\{{{n}}}"){{3}})[\\"])*+(?:\\{{{n}}}"){{3}}' for n in (1, 3, 7)),
    )
)
_OPENING = re.compile(r"(?:\\*['\"]){3}")
_TEXT = (
    rf"(?:(?P<triple>{_TRIPLE})|(?P<quoted>{_QUOTED})|{_ESCAPED}|"
    r"(?P<dollars>\$(?P<tag>\w{0,60}+)\$)(?:[^$]++|(?!\$(?P=tag)\$)\$)*+(?:\$(?P=tag)\$)?+)"
)
_PREFIX = r"(?:PASSWORD\s*+\(\s*+)?+(?:[NEXBRF]|U&)?+"  # MySQL's function; N'..' of SQL Server, E'..' of PostgreSQL
_SQL_SECRET = re.compile(
    rf"(?P<head>(?:(?<![\w.-])(?=[\w.-]*?(?:{_GIVEN_SECRETS}))[\w.-]++(?:(?:\\{{0,7}}+['\"`](?:\s*+\])?+)?+"
    r"(?:\s*+(?:===?+|=>?+|:=?+)\s*+|"
    r"\s*+:\s*+[\w.]++(?:\[[\w\s.,|\[\]]{0,60}+)?+(?:\s*+\|\s*+[\w.]++)?+\s*+=\s*+|"  # password: str = ".."
    r"\s++(?:AS\s++)?+\w++(?:\s*+\([\w\s,]{0,40}+\))?+\s*+:?=\s*+|"  # DECLARE @password NVARCHAR(50) = N'..'
    r"(?<=PASSWORD)\s++FOR\s++[^=;\n]{1,300}+=\s*+|(?<=CREDENTIALS)\s++AS\s++|"
    r"(?<=['\"])\s*+->\s*+)|"
    # `near token 'FROM'`, and a column's alias
    r"(?<![^\w-]TOKEN)(?<!\ATOKEN)(?<![^\w-]TOKENS)(?<!\ATOKENS)(?<!PASS)(?<!SIGNATURE)(?:\\{0,7}+['\"`])?+\s++)|"
    rf"{_IDENTIFIED}(?:\s++(?:PASSWORD|VALUES))?+['\"`]?+{_IS}){_PREFIX}){_TEXT}",
    re.IGNORECASE | re.ASCII,
)
# .option("password", "..")
_CODE_SECRET = re.compile(
    r"(?P<head>(?:(?<=option)|(?<=set)|(?<=conf)|(?<=config)|(?<=put)|(?<=property)|(?<=header)|(?<=env)|(?<=param)|"
    rf"(?<=default)|(?<=string)|(?<=get))\(\s*+(?P<quote>\\{{0,7}}+['\"])(?=[\w.-]*?(?:{_TEXT_SECRETS}))[\w.-]++(?P=quote)\s*+,"
    rf"\s*+{_PREFIX}){_TEXT}",
    re.IGNORECASE | re.ASCII,
)
# ["--password", ".."]
_LISTED_SECRET = re.compile(
    rf"(?P<head>(?<=['\"])--?(?=[\w.-]*?(?:{_TEXT_SECRETS}))[\w.-]++\\{{0,7}}+['\"]\s*+,"
    rf"\s*+{_PREFIX}(?!\\{{0,7}}+['\"]-)){_TEXT}",
    re.IGNORECASE | re.ASCII,
)
_NAMES = re.compile(r"\s*+:")  # the next name of an object in what is left of a JSON
# ["DB_PASSWORD", ".."], [("a.b.password", "..")]
_PAIRED_SECRET = re.compile(
    rf"(?P<head>[\[(]\s*+(?P<quote>\\{{0,7}}+['\"])(?=[\w.-]*?(?:{_GIVEN_SECRETS}))(?P<name>[\w.-]++)(?P=quote)"
    rf"\s*+,\s*+{_PREFIX})(?:(?P<triple>{_TRIPLE})|(?P<quoted>{_QUOTED})|{_ESCAPED})(?=\s*+[\])])",
    re.IGNORECASE | re.ASCII,
)
_INDEX = re.compile(r"[\w\])]\[?\Z")
SETTING = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[\w-]+(?:\.[\w-]+){2,}", re.ASCII)  # no column's name
# (name="DB_PASSWORD", value=".."), {"key": "password", "val": ".."}, <add key="password" value=".."/>, and YAML
_LABELLED_SECRET = re.compile(
    r"(?P<head>(?<![\w.-])(?P<named>\\{0,7}+['\"])?+(?:name|key)(?(named)(?P=named))\s*+[:=]\s*+"
    rf"(?P<quote>\\{{0,7}}+['\"])(?=[\w.-]*?(?:{_GIVEN_SECRETS}))[\w.-]++(?P=quote)[\s,;]++"
    rf"(?P<valued>\\{{0,7}}+['\"])?+val(?:ue)?+(?(valued)(?P=valued))\s*+[:=]\s*+{_PREFIX}){_TEXT}",
    re.IGNORECASE | re.ASCII,
)
_LABELLED_LINE = re.compile(
    rf"(?<![\w.-])((?:name|key):[ \t]++(?:\\{{0,7}}+['\"])?+(?=[\w.-]*?(?:{_GIVEN_SECRETS}))[\w.-]++"
    r"(?:\\{0,7}+['\"])?+[ \t]*+(?:\r?\n|(?:\\++r)?+\\++n)[ \t]*+val(?:ue)?+:[ \t]++)(?:\\{0,7}+\")?+(?!\s)(?:[^\r\n\\]|\\(?!\\{0,7}+[nr\"]))++",
    re.IGNORECASE | re.ASCII,
)
# <password>..</password>, <name>a.b.password</name><value>..</value>
_TAGGED_SECRET = re.compile(
    rf"(?P<head><(?:(?:name|key)>\s*+(?=[\w.-]*?(?:{_GIVEN_SECRETS}))[\w.-]++\s*+</(?:name|key)>(?:\s|\\++[nrt])*+<(?:value|string)|"
    rf"(?=[\w.:-]*?(?:{_GIVEN_SECRETS}))[\w.:-]++)(?:\s[^<>]*+)?+>(?:\s*+<!\[CDATA\[)?+)"
    r"(?P<value>(?<=CDATA\[)(?:[^\]<]++|\](?!\]>)|<(?!!\[CDATA\[))++|[^<]++(?=</))",
    re.IGNORECASE | re.ASCII,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<body>(?:[^-]++|-(?!----(?:BEGIN|END) ))*+)"
    r"(?P<end>-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?+"
)
_KEY_BODY = re.compile(r"\s*(?:[\r\n]|\\+[rn])|\s*[A-Za-z0-9+/=]{20}")  # where no END is: no mere mention
# The number of a JSON in a text.
_NUMBER_SECRET = re.compile(
    rf"(?P<head>(?<![\w.-])(?=[\w.-]*?(?:{_TEXT_SECRETS}))[\w.-]++(?P<quote>\\{{0,7}}+\")\s*+:\s*+)-?\d[\w.+-]*+",
    re.IGNORECASE | re.ASCII,
)
# Without quotes, in shells, connections and the like; not as a path's partition.
_BEFORE = r"(?<![^\s'\"`;,(&?\[{|\\])"
_START = r"(?=[^\s'\",;()&{}\[\]<>|=-])"
_SCHEME = r"(?:(?:Bearer|Basic|Digest|Token|ApiKey|Negotiate|SharedKey)\s++)?+"
_TOLD = rf"[\w.-]*?(?:{_TEXT_SECRETS}|SECRET[._-]?KEY)(?:S|(?<=ACCOUNT.KEY)\.[\w.-]++)?(?![\w.-])"
_UNQUOTED = re.compile(
    rf"(?P<head>{_IDENTIFIED}\s++|"
    rf"{_BEFORE}(?:(?=[\w-]*?(?:{_GIVEN_SECRETS}))(?P<name>[\w-]++)=(?!=|>|(?:[nexbrf]|u&)?+['\"]){_SCHEME}|"
    rf"(?={_TOLD})(?P<told>[\w.-]++)(?::\s++|\s++->\s++){_START}{_SCHEME}|"
    rf"(?=--?[a-z])(?=[\w-]*?(?:{_TEXT_SECRETS}))[\w-]++\s++{_START})|"
    r"(?:(?<=--conf )|(?<=-D)|(?<=['\";\[{\n])|(?<=\\n)|(?<=, )|\A)(?=[\w-]++\.)"
    rf"(?=[\w.-]*?(?:{_TEXT_SECRETS}))(?P<property>[\w.-]++)=(?![=>])|"
    rf"(?<![\w.-])(?=[\w-]++\.[\w-]++\.)(?=[\w.-]*?(?:{_TEXT_SECRETS}))[\w.-]++\s++->\s++{_START})"
    r"(?P<value>(?:[^\s'\",;()&\\]|\\(?!\\{0,7}[\"']))++)",
    re.IGNORECASE | re.ASCII,
)
_COLUMN = re.compile(r"[a-z_]\w*(?:\.[a-z_]\w*)+", re.IGNORECASE | re.ASCII)
_GENERATED = re.compile(r"\AeyJ|[^.]{40}")  # a JSON Web Token is three parts with dots between them
_PREDICATE = re.compile(r"\b(?:ON|AND|OR|WHERE|SET|WHEN|PARTITION)\s+\(?\Z", re.IGNORECASE | re.ASCII)
_STATEMENT = re.compile(r"\b(?:SET|ON|WHERE)\s", re.IGNORECASE | re.ASCII)
_CLASS = re.compile(r"(?:[a-z]\w*\.){2,}[A-Z]+[a-z]\w*", re.ASCII)  # of an exception: a.b.InvalidToken
_COMPLAINT = re.compile(
    r"(?:expected|near|valid|illegal|matched|missing|extraneous|unknown|input|at) \Z", re.IGNORECASE
)
# What a name may be followed by that is no secret: a type, or nothing.
_NO_VALUE = re.compile(
    r"(?:str|string|(?:var|nvar)?char|text|(?:big|small|tiny)?int|integer|long|double|float|decimal|numeric|bool|boolean|"
    r"bytes?|binary|date|timestamp|array|map|struct|list|dict|any|optional|none|null|true|false)\b.*",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_TOKEN_COLUMN = re.compile(r"(?:\w*[_-])?token_?(?:id|name|ur[il]|endpoint)", re.IGNORECASE | re.ASCII)
_COOKIES = re.compile(r"(\bCookie:\s*+)[^\s'\"][^\r\n'\"]*+", re.IGNORECASE | re.ASCII)
_LOGIN = re.compile(
    r"(?P<head>(?<!\S)(?:-u|--(?:proxy-)?+user)\s*+=?\s*+['\"]?+(?!\d++:\d++(?!\S))[^\s:'\"]++:)"
    r"(?P<value>(?:[^\s'\"\\]|\\(?!\\{0,7}[\"']))++)",
    re.IGNORECASE | re.ASCII,
)
# A property, and not the column that an UPDATE sets.
_SQL_SET = re.compile(r"(\bSET\s++([\w-]++(?:\.[\w-]++){2,}+)\s*+=\s*+)[^\s'\",;]++", re.IGNORECASE | re.ASCII)
_SIGNS = re.compile(r"[\s('\"=<]")
_WORDS = re.compile(
    r"\b(?:OPTIONS|\w*PROPERTIES|WITH|ENCRYPTION)\s*+=?\s*+\(|PASS|PWD|IDENTIFIED|SECRET|TOKEN|KEY|CREDENTIAL|AUTH|"
    r"SIGNATURE|JAAS|SAS|COOKIE|CURL",
    re.IGNORECASE | re.ASCII,
)


def redact_text(text: str) -> str:
    """Text whose addresses have only scheme, host, port and path, and whose SQL options only harmless values.

    >>> redact_text("jdbc:postgresql://ann:pw@db:5432/bank?password=pw")
    'jdbc:postgresql://db:5432/bank'
    >>> redact_text("s3a://KEY:SECRET@bucket/path"), redact_text("abfss://data@lake.dfs.core.windows.net/t")
    ('s3a://bucket/path', 'abfss://data@lake.dfs.core.windows.net/t')
    """
    for _ in range(PASSES):
        before, text = text, _bare_text(text)
        if text == before:
            break
    return text


def _bare_text(text: str) -> str:
    if "://" in text:
        text = _ADDRESS.sub(_bare_address, _ODD_LOGIN.sub("", text))
    if "jdbc:" in text:
        text = _JDBC_OPAQUE.sub(_bare_jdbc, text)
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(_bare_key, text)
    if _SIGNS.search(text) and _WORDS.search(text):  # names have no such signs
        text = _SQL_SET.sub(_bare_setting, _with_bare_options(text))
        text = _LOGIN.sub(_bare_unquoted, text) if "curl" in text else text
        if not _TELLING.search(text):
            return text
        for quoted in (_SQL_SECRET, _CODE_SECRET, _LABELLED_SECRET):
            text = quoted.sub(_bare_quoted, text)
        text = _LISTED_SECRET.sub(_bare_listed, text)
        text = _TAGGED_SECRET.sub(_bare_tagged, _PAIRED_SECRET.sub(_bare_pair, text))
        text = _LABELLED_LINE.sub(rf"\g<1>{GONE}", text)
        text = _NUMBER_SECRET.sub(rf"\g<head>\g<quote>{GONE}\g<quote>", text)
        text = _UNQUOTED.sub(_bare_unquoted, text)
        text = _COOKIES.sub(rf"\g<1>{GONE}", text)
    return text


def _bare_quoted(found: re.Match[str]) -> str:
    """The quotes stay as they are: around them may be JSON, or a dialect that has no others."""
    return found["head"] + _bare_text_of(found)


def _bare_listed(found: re.Match[str]) -> str:
    return found[0] if _NAMES.match(found.string, found.end()) else _bare_quoted(found)


def _bare_pair(found: re.Match[str]) -> str:
    """Two of a list may be columns as well: `df[["password", "email"]]`."""
    before = found.string[max(0, found.start() - 3) : found.start()].rstrip()
    is_setting = SETTING.fullmatch(found["name"]) is not None
    if found[0][0] == "(":
        is_pair = is_setting and before.endswith(("[", "),"))
    else:
        is_pair = not _INDEX.search(before) and (is_setting or before.endswith(("[", "],")))
    return _bare_quoted(found) if is_pair else found[0]


def _bare_tagged(found: re.Match[str]) -> str:
    return found["head"] + GONE if found["value"].strip() else found[0]


def _bare_key(found: re.Match[str]) -> str:
    return GONE if found["end"] or _KEY_BODY.match(found["body"]) else found[0]


def _bare_text_of(found: re.Match[str]) -> str:
    if found["triple"] and (opening := _OPENING.match(found["triple"])):
        return opening[0] + GONE + opening[0]
    if found["quoted"]:
        return f"{found['quoted'][0]}{GONE}{found['quoted'][0]}"
    if found.groupdict().get("dollars"):
        return f"{found['dollars']}{GONE}{found['dollars']}"
    opened, closed = next((found[f"open{n}"], found[f"close{n}"]) for n in (1, 3, 7) if found[f"open{n}"])
    return f"{opened}{GONE}{closed or ''}"


def _bare_unquoted(found: re.Match[str]) -> str:
    value = found["value"]
    if value.startswith(GONE) or _is_no_secret(found, value):
        return found[0]
    closing = "" if "[" in value or "{" in value else value[len(value.rstrip("]}>")) :]
    return found["head"] + GONE + closing


def _is_no_secret(found: re.Match[str], value: str) -> bool:
    """A column that another one is compared with, a type, or what an error message calls a token."""
    parts = found.groupdict()
    name = parts.get("name") or parts.get("told") or parts.get("property")
    if name is None:
        return False
    before = found.string[max(0, found.start() - 20) : found.start()]
    if _COLUMN.fullmatch(value) and not _GENERATED.search(value):
        alike = SECRET_NAME.search(value.rpartition(".")[2])
        if parts["property"] and name.count(".") == 1:
            return bool(alike or _STATEMENT.search(found.string, max(0, found.start() - 100), found.start()))
        return bool(alike or (not parts["property"] and not parts["told"] and _PREDICATE.search(before)))
    if parts["told"] and _CLASS.fullmatch(name):
        return True
    if parts["told"] and (_NO_VALUE.fullmatch(value) or (name.lower() == "token" and _COMPLAINT.search(before))):
        return True
    if "token" in name.lower() and value.isdigit() and (name[-1] in "sS" or _PREDICATE.search(before)):
        return True  # so many tokens, or a column
    if "token" in name and found["head"].endswith("-> ") and found.string.startswith("(", found.end()):
        return True  # a lambda's, as in transform(tokens, token -> upper(token))
    return value == name or _TOKEN_COLUMN.fullmatch(name) is not None


def _bare_address(found: re.Match[str]) -> str:
    scheme, rest = found["scheme"], found["rest"]
    rest, _, pointer = rest.partition("#")
    separator = _FILE_PARAMETERS if scheme[:-3].lower() in _FILE_SCHEMES else _SEPARATOR
    place, *more = separator.split(rest, maxsplit=1)
    parameters = re.split(r"[?;&]", more[0]) if more else []
    authority, slash, path = _without_slashed_login(place).partition("/")
    user, at, host = authority.rpartition("@")
    if at and not (scheme[:-3] in _CONTAINER_SCHEMES and ":" not in user):
        authority = host
    is_open = scheme.lower().startswith(_PARAMETERS_STAY)
    kept = "".join(f";{one}" for one in parameters if _HARMLESS_PARAMETER.match(one) and is_open)
    return scheme + authority + slash + path + kept + (f"#{pointer}" if pointer.startswith("/") else "")


def _without_slashed_login(place: str) -> str:
    """A place without a login whose password has slashes, as secret keys have: what stands before a slash is no port."""
    authority, _, path = place.partition("/")
    port = authority.rpartition(":")[2] if ":" in authority else ""
    is_place = port.isdigit() or port.endswith("]") or authority.startswith("arn:")
    is_login = port and not is_place and "@" not in authority and "@" in path
    return path.partition("@")[2] if is_login else place


def _bare_jdbc(found: re.Match[str]) -> str:
    place = re.split(r"[?;]", found["rest"])[0]
    return found["head"] + place[place.rfind("@") if "@" in place else 0 :]


def _with_bare_options(text: str) -> str:
    pieces, end = [], 0
    while found := _SQL_OPTIONS.search(text, end):
        closing = _closing(text, found.end())
        pieces += [text[end : found.end()], _SQL_OPTION.sub(_bare_option, text[found.end() : closing])]
        end = closing
    return "".join([*pieces, text[end:]])


def _closing(text: str, start: int) -> int:
    """Where the parenthesis closes that was opened before; the end, if nowhere."""
    depth = 1
    for found in _SQL_NESTING.finditer(text, start):
        depth += (found[0] == "(") - (found[0] == ")")
        if depth == 0:
            return found.start()
    return len(text)


def _bare_option(found: re.Match[str]) -> str:
    name = found[1].strip("'\"`")
    if found[3] is None:  # a value of several, if it is quoted
        return found[0] if found[1][0] not in "'\"" else f"{found[1][0]}{GONE}{found[1][0]}"
    if _HARMLESS_OPTION.fullmatch(name) and not SECRET_NAME.search(name):
        return found[0]
    quote = '"' if found[3][0] == '"' else "'"
    return f"{found[1]}{found[2]}{quote}{GONE}{quote}"


def _bare_setting(found: re.Match[str]) -> str:
    return found[1] + GONE if SECRET_NAME.search(found[2]) else found[0]
