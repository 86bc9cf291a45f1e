"""The SQL text of expressions whose class is known.

The names of functions, the signs of operators.

Most classes are called as their function is (`Upper`, `RegrSlope`); `NAMES` holds those that are
not, as Spark's own registry of functions has them. Where several names mean one class, the most
usual was chosen.
"""

from __future__ import annotations

import re

OPERATORS = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%",
    "IntegralDivide": "DIV", "And": "AND", "Or": "OR", "EqualTo": "=", "EqualNullSafe": "<=>",
    "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "ShiftLeft": "<<", "ShiftRight": ">>",
    "ShiftRightUnsigned": ">>>", "DateAddInterval": "+", "TimestampAddInterval": "+",
    "DateAddYMInterval": "+", "TimestampAddYMInterval": "+", "TimeAdd": "+", "SubtractDates": "-",
    "SubtractTimestamps": "-", "MultiplyYMInterval": "*", "MultiplyDTInterval": "*",
    "DatetimeSub": "-", "DivideYMInterval": "/", "DivideDTInterval": "/",
}  # fmt: skip

PREFIXES = {"UnaryMinus": "-", "UnaryPositive": "+", "Not": "NOT ", "BitwiseNot": "~"}
SUFFIXES = {"IsNull": "IS NULL", "IsNotNull": "IS NOT NULL"}
NULLS = {"First", "Last", "AnyValue", "NthValue", "Lag", "Lead"}  # that may ignore nulls
PATTERNS = {"Like": "LIKE", "ILike": "ILIKE", "RLike": "RLIKE"}

NAMES = {
    "ArrayAggregate": "aggregate", "ArrayExists": "exists", "ArrayFilter": "filter",
    "ArrayForAll": "forall", "ArrayTransform": "transform",
    "HyperLogLogPlusPlus": "approx_count_distinct", "ApproximatePercentile": "approx_percentile",
    "CreateArray": "array", "Average": "avg", "BitAndAgg": "bit_and", "BitwiseCount": "bit_count",
    "BitwiseGet": "bit_get", "BitOrAgg": "bit_or", "BitXorAgg": "bit_xor", "BRound": "bround",
    "StringTrimBoth": "btrim", "CovPopulation": "covar_pop", "CovSample": "covar_samp",
    "CurrentTimeZone": "current_timezone", "DateFormatClass": "date_format",
    "TruncTimestamp": "date_trunc", "DayOfMonth": "day", "DayName": "dayname",
    "DayOfWeek": "dayofweek", "DayOfYear": "dayofyear", "ToDegrees": "degrees", "EulerNumber": "e",
    "CsvToStructs": "from_csv", "JsonToStructs": "from_json", "FromUnixTime": "from_unixtime",
    "XmlToStructs": "from_xml", "Murmur3Hash": "hash", "InitCap": "initcap", "StringInstr": "instr",
    "IsNaN": "isnan", "CallMethodViaReflection": "reflect",
    "LengthOfJsonArray": "json_array_length", "ListAgg": "listagg", "Log": "ln",
    "LocalTimestamp": "localtimestamp", "StringLocate": "locate", "Logarithm": "log",
    "StringLPad": "lpad", "StringRPad": "rpad", "StringTrimLeft": "ltrim",
    "Luhncheck": "luhn_check", "CreateMap": "map", "MonthName": "monthname",
    "CreateNamedStruct": "named_struct", "NaNvl": "nanvl", "NTile": "ntile", "NullIf": "nullif",
    "ToRadians": "radians", "RegExpCount": "regexp_count", "RegExpExtract": "regexp_extract",
    "RegExpExtractAll": "regexp_extract_all", "RegExpInStr": "regexp_instr",
    "RegExpReplace": "regexp_replace", "RegExpSubStr": "regexp_substr", "RegrAvgX": "regr_avgx",
    "RegrAvgY": "regr_avgy", "StringRepeat": "repeat", "StringReplace": "replace",
    "StringTrimRight": "rtrim", "SoundEx": "soundex", "StringSpace": "space",
    "StringSplit": "split", "StringToMap": "str_to_map", "MicrosToTimestamp": "timestamp_micros",
    "MillisToTimestamp": "timestamp_millis", "SecondsToTimestamp": "timestamp_seconds",
    "ToCharacter": "to_char", "StructsToCsv": "to_csv", "ParseToDate": "to_date",
    "StructsToJson": "to_json", "ParseToTimestamp": "to_timestamp", "StructsToXml": "to_xml",
    "StringTranslate": "translate", "StringTrim": "trim", "TruncDate": "trunc", "TypeOf": "typeof",
    "UnBase64": "unbase64", "VariancePop": "var_pop", "VarianceSamp": "var_samp",
    "WeekDay": "weekday", "WeekOfYear": "weekofyear", "TimeWindow": "window", "XPathList": "xpath",
    "XxHash64": "xxhash64", "StddevSamp": "stddev", "StartsWith": "startswith",
    "EndsWith": "endswith", "MapFromArrays": "map_from_arrays", "PosExplode": "posexplode",
    "UnixTimestamp": "unix_timestamp", "ToUnixTimestamp": "to_unix_timestamp",
    "GetTimestamp": "to_timestamp", "Chr": "char", "Size": "size",
    "PercentileCont": "percentile_cont", "PercentileDisc": "percentile_disc",
    "Substring": "substring", "Length": "length", "CurrentDatabase": "current_database",
    "Sha1": "sha1", "ZeroIfNull": "zeroifnull", "NullIfZero": "nullifzero",
}  # fmt: skip

_COMPARED = (
    "(left, right) -> (IF(((left IS NULL) AND (right IS NULL)), 0, (IF((left IS NULL), 1, "
    "(IF((right IS NULL), -1, (IF((left < right), -1, (IF((left > right), 1, 0))))))))))"
)

# Arguments that Spark fills in at the end when they are not given; not shown.
DEFAULTS = {
    "Mask": ("'X'", "'x'", "'n'", "NULL"), "Round": ("0",), "BRound": ("0",),
    "StringSplit": ("-1",), "RegExpReplace": ("1",), "RegExpExtract": ("1",),
    "RegExpExtractAll": ("1",), "StringLocate": ("1",), "Lag": ("1", "NULL"), "Lead": ("1", "NULL"),
    "StringLPad": ("' '",), "StringRPad": ("' '",), "Substring": ("2147483647",),
    "ApproximatePercentile": ("10000",), "RegExpInStr": ("0",), "Sentences": ("''", "''"),
    "UnixTimestamp": ("'yyyy-MM-dd HH:mm:ss'",), "ToUnixTimestamp": ("'yyyy-MM-dd HH:mm:ss'",),
    "StringToMap": ("','", "':'"), "RegExpSubStr": (), "SortArray": ("TRUE",), "Overlay": ("-1",),
    "MonthsBetween": ("TRUE",), "MakeInterval": (*["0"] * 6, "0.000000"),
    "ArrayAggregate": ("id -> id",), "AesEncrypt": ("'GCM'", "'DEFAULT'", "''", "''"),
    "AesDecrypt": ("'GCM'", "'DEFAULT'", "''"), "TryAesDecrypt": ("'GCM'", "'DEFAULT'", "''"),
    "Percentile": ("1",), "ApproxTopK": ("5", "10000"), "ArraySort": (_COMPARED,),
}  # fmt: skip

# What comes out of these no longer shows the data that went in.
MASKING = {
    "Md5", "Sha1", "Sha2", "Murmur3Hash", "XxHash64", "Crc32", "HiveHash",
    "CollationAwareMurmur3Hash", "CollationAwareXxHash64", "Mask", "AesEncrypt", "TryAesEncrypt",
    "Count", "HyperLogLogPlusPlus", "RegrCount", "CountIf", "BitmapCount",
}  # fmt: skip

# Wrappers that Spark adds on its own account; the value is their first child's.
TRANSPARENT = {
    "Alias", "PromotePrecision", "CheckOverflow", "KnownNullable", "KnownNotNull",
    "KnownNotContainsNull", "NormalizeNaNAndZero", "TempResolvedColumn", "UpCast",
    "CheckOverflowInTableInsert", "CheckOverflowInTableWrite", "AssertNotNull",
    "KnownFloatingPointNormalized", "PreciseTimestampConversion", "ToPrettyString", "Collate",
    "CheckOverflowInSum", "TaggingExpression", "AggregateExpression", "ArrayInsertBoundary",
    "SQLScalarFunction",
}  # fmt: skip


def function_name(class_name: str) -> str:
    """The SQL name of a function's class, in upper case.

    >>> function_name("DateFormatClass"), function_name("RegrSlope"), function_name("Sha2")
    ('DATE_FORMAT', 'REGR_SLOPE', 'SHA2')
    """
    sql_name = NAMES.get(class_name)
    return (sql_name or _WORD.sub("_", class_name)).upper()


_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
