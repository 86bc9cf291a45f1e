"""The few ways in which the JVM's objects are asked over Py4J.

Each takes as few round trips as it can. Class references are looked up once: an unresolved path
costs a millisecond each time. Java maps come over as one JSON text instead of one call an entry.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from py4j.java_gateway import JavaClass, JVMView
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from strandline_spark.jvm.class_names import HADOOP_PATH, OBJECT_MAPPER, SCALA_CONVERTERS
from strandline_spark.jvm.probe import answers_in, probe_of
from strandline_spark.model.names import of_path, qualified

JavaObject = Any  # py4j has no types: every member is found in the JVM

# PySpark turns some of Java's exceptions (a table that is not there, a text that cannot be parsed)
# into its own.
JAVA_THREW = (Py4JJavaError, PySparkException)
JAVA_FAILED = (Py4JError, PySparkException)


_CATALOG_SETTINGS = 1000  # of several sessions


class Jvm:
    """One JVM, seen from the session whose plan is being read."""

    def __init__(self, view: JVMView, session: JavaObject = None) -> None:
        self.view: Any = view
        self._session = session
        self._settings: dict[str, str | None] = {}
        self._of_catalogs: dict[tuple[str, str], str | None] = {}
        self.session_id: str | None = None
        self.tables: OrderedDict[str, Any] = (
            OrderedDict()
        )  # what was known of a table, by its name, newest last
        self._hadoop_settings: dict[str, str | None] = {}
        self._hadoop_configuration: JavaObject = None
        self._classes: dict[str, JavaObject] = {}
        self._makers: dict[str, JavaClass] = {}
        self._methods: dict[tuple[str, str], JavaObject] = {}
        self._fields: dict[tuple[str, str], JavaObject | None] = {}
        self._parameters: dict[tuple[str, ...], JavaObject] = {}
        self.kept: dict[str, Any] = {}  # what those who ask this JVM keep for the next time

    @property
    def session(self) -> JavaObject:
        """The session whose statement is being read."""
        return self._session

    @session.setter
    def session(self, session: JavaObject) -> None:
        self._session = session
        self.session_id = None
        # they hold for one statement: the next may come after a `spark.conf.set`
        self._settings.clear()
        self._hadoop_settings.clear()
        self._hadoop_configuration = None

    @contextmanager
    def as_active(self) -> Iterator[None]:
        """Have Spark take the session for this thread's.

        Only then does it find the catalog that stands for the session's own, or the default one.
        """
        session = fetched(self.session)
        kind = class_name(session)
        before = self.static(kind, "getActiveSession")()
        self.static(kind, "setActiveSession")(session)
        try:
            yield
        finally:
            if before.isDefined():
                self.static(kind, "setActiveSession")(before.get())
            else:
                self.static(kind, "clearActiveSession")()

    def catalog(self, name: str) -> JavaObject:
        """A catalog of the session by its name."""
        with self.as_active():
            return self.session.sessionState().catalogManager().catalog(name)

    @cached_property
    def mapper(self) -> JavaObject:
        """Jackson's way to write objects as JSON."""
        return self.new(OBJECT_MAPPER)

    @cached_property
    def _loader(self) -> tuple[JavaObject, JavaObject]:
        java_class = self.view.java.lang.Class
        return java_class, self.view.java.lang.Thread.currentThread().getContextClassLoader()

    @cached_property
    def probe(self) -> JavaObject:
        """The probe that answers for this JVM's objects."""
        return probe_of(self.view._gateway_client)

    def static(self, class_name: str, method: str) -> JavaObject:
        """A static method, looked up once."""
        key = class_name, method
        if key not in self._methods:
            self._methods[key] = getattr(JavaClass(class_name, self.view._gateway_client), method)
        return self._methods[key]

    def new(self, class_name: str, *arguments: Any) -> JavaObject:
        """A new object of a class."""
        if class_name not in self._makers:
            self._makers[class_name] = JavaClass(class_name, self.view._gateway_client)
        return self._makers[class_name](*arguments)

    def class_named(self, name: str) -> JavaObject:
        """A class by its full name, through the loader that sees the session's jars."""
        if name not in self._classes:
            java_class, loader = self._loader
            self._classes[name] = java_class.forName(name, True, loader)
        return self._classes[name]

    def mapping(self, java_map: JavaObject) -> dict[str, str]:
        """A Java map of texts."""
        return dict(json.loads(self.mapper.writeValueAsString(java_map)))

    def options(self, scala_map: JavaObject) -> dict[str, str]:
        """Return a Scala map of texts.

        Its keys are in lower case, as Spark's data sources look them up.
        """
        entries = self._entries(scala_map)
        return {key.lower(): value for key, value in entries.items()}

    def _entries(self, scala_map: JavaObject) -> dict[str, str]:
        as_java = self.static(SCALA_CONVERTERS, "mapAsJavaMap")
        return {key: str(value) for key, value in self.mapping(as_java(scala_map)).items()}

    @cached_property
    def default_file_system(self) -> str:
        """The file system of a path without scheme."""
        return self.hadoop("fs.defaultFS") or "file:///"

    @property
    def hadoop_configuration(self) -> JavaObject:
        """Hadoop's configuration, of the statement's context."""
        if self._hadoop_configuration is None:
            self._hadoop_configuration = self.session.sparkContext().hadoopConfiguration()
        return self._hadoop_configuration

    def hadoop(self, key: str) -> str | None:
        """One setting of Hadoop's configuration."""
        if key not in self._hadoop_settings:
            value = self.hadoop_configuration.get(key)
            self._hadoop_settings[key] = str(value) if value is not None else None
        return self._hadoop_settings[key]

    def path(self, location: str) -> tuple[str, str]:
        """Namespace and name of a path of this application."""
        return of_path(location, self.default_file_system)

    def conf(self, key: str) -> str | None:
        """One setting of the session.

        A catalog's are those that it was made with: they never change for a session.
        """
        if self.session_id is None or not key.startswith("spark.sql.catalog."):
            return self._setting(self._settings, key, key)
        if len(self._of_catalogs) > _CATALOG_SETTINGS:
            self._of_catalogs.clear()
        return self._setting(self._of_catalogs, (self.session_id, key), key)

    def _setting(self, settings: dict[Any, str | None], place: Hashable, key: str) -> str | None:
        if place not in settings:
            settings[place] = optional_text(self._session.conf().getOption(key))
        return settings[place]

    def field(self, instance: JavaObject, name: str) -> JavaObject | None:
        """A private field, of the class or of one above it; None where there is none."""
        field_found = self._field_of(instance.getClass(), name)
        return field_found.get(instance) if field_found is not None else None

    def _field_of(self, java_class: JavaObject, name: str) -> JavaObject | None:
        key = (str(java_class.getName()), name)
        if key not in self._fields:
            self._fields[key] = self.declared(java_class, name)
        return self._fields[key]

    def declared(self, java_class: JavaObject, name: str) -> JavaObject | None:
        """A private field of a class, or of one above it, opened; None where there is none."""
        while java_class is not None:
            try:
                declared = java_class.getDeclaredField(name)
            except JAVA_THREW:
                java_class = java_class.getSuperclass()
            else:
                declared.setAccessible(True)
                return declared
        return None

    def first_lines(self, location: str, most: int) -> list[str]:
        """The first lines of a text file on any file system of Hadoop's.

        Nothing if there is no such file.
        """
        try:
            reader = self._reader(location)
        except JAVA_THREW:
            return []
        lines: list[str] = []
        try:
            while len(lines) < most and (line := reader.readLine()) is not None:
                lines.append(str(line))
        finally:
            reader.close()
        return lines

    def _reader(self, location: str) -> JavaObject:
        path, system = self._path_and_system(location)
        return self.new(
            "java.io.BufferedReader",
            self.new("java.io.InputStreamReader", system.open(path), "UTF-8"),
        )

    def is_file(self, location: str) -> bool:
        """Return whether there is a file of that name."""
        path, system = self._path_and_system(location)
        try:
            return bool(system.exists(path))
        except JAVA_THREW:
            return False

    def _path_and_system(self, location: str) -> tuple[JavaObject, JavaObject]:
        path = self.new(HADOOP_PATH, location)
        return path, path.getFileSystem(self.hadoop_configuration)

    def array(self, element_class: str, *elements: JavaObject) -> JavaObject:
        """A Java array, as reflection wants its arguments."""
        array = self.static("java.lang.reflect.Array", "newInstance")(
            self.class_named(element_class), len(elements)
        )
        put = self.static("java.lang.reflect.Array", "set")
        for index, element in enumerate(elements):
            put(array, index, element)
        return array

    def classes(self, *names: str) -> JavaObject:
        """An array of classes, as a method's parameters are named."""
        if names not in self._parameters:
            self._parameters[names] = self.array("java.lang.Class", *map(self.class_named, names))
        return self._parameters[names]

    def sequence(self, scala_seq: JavaObject) -> list[JavaObject]:
        """The elements of a Scala sequence."""
        return [scala_seq.apply(index) for index in range(scala_seq.size())]


def thrown(error: Exception) -> JavaObject | None:
    """Return the exception of the JVM behind one of Py4J's or PySpark's."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


class Known:
    """An object of the JVM with what is known of it, by the names of the questions.

    It is fetched when it is asked anything else.
    """

    def __init__(
        self, fetch: Callable[[], JavaObject], answers: Mapping[str, Any] | None = None
    ) -> None:
        self.answers: dict[str, Any] = dict(answers or {})
        self._fetch = fetch

    def __getattr__(self, name: str) -> Any:
        if name == "_fetched":
            self._fetched = self._fetch()
            return self._fetched
        return getattr(self._fetched, name)


def known(instance: JavaObject | None, **answers: Any) -> Any:
    """Return an object with answers that it never changes; None for none."""
    if instance is None:
        return None
    if not isinstance(instance, Known):
        return Known(lambda: instance, answers)
    instance.answers.update(answers)
    return instance


def answer(instance: JavaObject, question: str, ask_it: Callable[[JavaObject], Any]) -> Any:
    """Return an answer that an object never changes, from what is known of it if it is there."""
    if not isinstance(instance, Known):
        return ask_it(instance)
    if question not in instance.answers:
        instance.answers[question] = ask_it(instance)
    return instance.answers[question]


def known_answer(instance: JavaObject | None, question: str) -> Any:
    """Return the answer to a question if it is known already, else None."""
    return instance.answers.get(question) if isinstance(instance, Known) else None


def fetched(instance: JavaObject) -> JavaObject:
    """Return the object itself.

    Given anything else as an argument, Py4J first asks five converters about it.
    """
    return instance._fetched if isinstance(instance, Known) else instance


def ask(instance: JavaObject, *paths: str) -> list[Any]:
    """Return the answers of an object to paths of methods, in one round trip; see `probe.java`."""
    target = fetched(instance)
    return list(answers_in(probe_of(target._gateway_client).ask(target, "\n".join(paths))))


def optional(scala_option: JavaObject) -> JavaObject | None:
    """Return the value of a Scala Option."""
    return scala_option.get() if scala_option is not None and scala_option.isDefined() else None


def optional_text(scala_option: JavaObject) -> str | None:
    """Return what a Scala Option of a text holds, in one call."""
    (text,) = ask(scala_option, "")
    return str(text) if text is not None else None


def present(scala_option: JavaObject) -> JavaObject | None:
    """Return what an Option holds that is hardly ever empty: one call less than `optional`."""
    try:
        return scala_option.get()
    except JAVA_THREW:
        return None


def class_name(instance: JavaObject) -> str:
    """The full name of an object's class: every format wants to know."""
    return str(answer(instance, "class", lambda object_: ask(object_, "getClass.getName")[0]))


def dotted(identifier: JavaObject) -> str:
    """Return namespace and name of a catalog's Identifier; parts with dots are quoted."""
    return str(answer(identifier, "dotted", _dotted))


def _dotted(identifier: JavaObject) -> str:
    namespace, name = ask(identifier, "namespace", "name")
    return qualified(*namespace, name)


def simple_name(instance: JavaObject) -> str:
    """The class name without its package.

    Scala's anonymous classes have none: their full name's last part stands in.
    """
    return class_name(instance).rpartition(".")[2]


Options = Mapping[str, str]
