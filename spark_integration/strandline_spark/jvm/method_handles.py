"""Questions for the JVM that take one round trip however many objects they concern.

The JDK's method handles are joined, inside the JVM, into a function of one object. It is a path of
methods, a row of answers, a choice by class, or a walk over a collection. No class of ours is
loaded there, and nothing is compiled. Joining costs tens of milliseconds, once; a function that
gathers keeps a list of its own, so only one thread may call it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass

from strandline_spark.jvm.class_names import OBJECT_MAPPER, SCALA_FUNCTION
from strandline_spark.jvm.client import JavaObject, Jvm

Handle = Any  # a java.lang.invoke.MethodHandle from one object to one

_OF_ANY = {"getClass", "toString", "hashCode"}  # methods that interfaces have, and do not list
_FUNCTION = "java.util.function.Function"
_OBJECT, _ROW = "java.lang.Object", "[Ljava.lang.Object;"
UNKNOWN = "\0unknown"  # the answer to a question that could not be asked


class Handles:
    """Joins handles for one JVM.

    A class or method that this Spark has not is an error at joining time.
    """

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._join = _Statics(jvm, "java.lang.invoke.MethodHandles")
        self._type = _Statics(jvm, "java.lang.invoke.MethodType")
        self._face = _Statics(jvm, "java.lang.invoke.MethodHandleProxies")
        self._lookup = self._join("publicLookup")
        self._unreflect = self._lookup.unreflect
        self._types = [self._type("genericMethodType", count) for count in range(3)]
        self._step = lru_cache(maxsize=None)(self._reflected)

    def path(self, class_name: str, path: str) -> Handle:
        """`first.second`: methods without arguments, one after the other.

        `name:some/Class` says what the method gives where its own type is too wide.
        """
        handle = None
        for step in path.split("."):
            name, _, narrower = step.partition(":")
            taken, class_name = self._method(class_name, name)
            handle = taken if handle is None else self.then(handle, taken)
            class_name = narrower.replace("/", ".") or class_name
        return handle

    def answer(self, class_name: str, question: str) -> Handle:
        """A path, and where its end goes.

        `path|some.Class.method(kind)` to a static method, unless it is nothing;
        `path?some.Class` to the question whether it is one. `UNKNOWN` where any of it fails.
        """
        path, name, kind = question.partition("?")
        path, has_method, method = path.partition("|")
        handle = self.path(class_name, path)
        if name:
            owner = self._jvm.class_named(kind)
            handle = self.then(handle, self.given_to(owner, "java.lang.Class", "isInstance"))
        if has_method:
            handle = self.then(handle, self._static(method))
        return self.or_unknown(handle)

    def or_unknown(self, handle: Handle) -> Handle:
        """The handle's answer, or `UNKNOWN` where it fails."""
        unknown = self._join("constant", self._jvm.class_named(_OBJECT), UNKNOWN)
        handler = self._join("dropArguments", unknown, 0, self._kinds("java.lang.Throwable"))
        return self._join(
            "catchException", handle, self._jvm.class_named("java.lang.Throwable"), handler
        )

    def called(self, class_name: str, method: str, kind: str, argument: JavaObject) -> Handle:
        """A method whose one argument, of that kind, is always this."""
        handle = self._unreflect(
            self._jvm.class_named(class_name).getMethod(method, self._kinds(kind))
        )
        return self._join(
            "insertArguments", handle.asType(self._types[2]), 1, self._jvm.array(_OBJECT, argument)
        )

    def given_to(self, target: JavaObject, class_name: str, method: str) -> Handle:
        """A method of this object, which is given what the handle takes."""
        handle = self._unreflect(
            self._jvm.class_named(class_name).getMethod(method, self._kinds(_OBJECT))
        )
        return handle.bindTo(target).asType(self._types[1])

    def construct(self, class_name: str, kind: str) -> Handle:
        """A new object of a class, made of what the handle takes."""
        maker = self._jvm.class_named(class_name).getConstructor(self._kinds(kind))
        return self._lookup.unreflectConstructor(maker).asType(self._types[1])

    def asking(
        self, target: JavaObject, class_name: str, method: str, *arguments: tuple[JavaObject, Any]
    ) -> Handle:
        """Return a method of this object whose arguments are always these.

        Each has its class, whatever the handle takes.
        """
        kinds = self._jvm.array("java.lang.Class", *(kind for kind, _ in arguments))
        handle = self._unreflect(self._jvm.class_named(class_name).getMethod(method, kinds)).bindTo(
            target
        )
        values = self._jvm.array(_OBJECT, *(value for _, value in arguments))
        return self._ignoring(
            self._join("insertArguments", handle, 0, values).asType(self._types[0])
        )

    def always(self, value: Any) -> Handle:
        """The same answer to everything."""
        return self._ignoring(self._join("constant", self._jvm.class_named(_OBJECT), value))

    def then(self, first: Handle, second: Handle) -> Handle:
        """Return what the second makes of the first's answer."""
        return self._join("filterReturnValue", first, second)

    def if_any(self, handle: Handle) -> Handle:
        """The handle's answer; nothing to nothing."""
        present = self._jvm.class_named("java.util.Objects").getMethod(
            "nonNull", self._kinds(_OBJECT)
        )
        return self._join("guardWithTest", self._unreflect(present), handle, self.always(None))

    def both(self, first: Handle, second: Handle) -> Handle:
        """The second's answer, once the first has done its work on the same object."""
        void = self._type(
            "methodType", self._jvm.static("java.lang.Void", "TYPE"), self._jvm.class_named(_OBJECT)
        )
        return self._join("foldArguments", second, first.asType(void))

    def after(self, target: JavaObject, method: str, handle: Handle) -> Handle:
        """The handle's answer, once a method without arguments of this object was called."""
        return self.both(self._of(target, method), handle)

    def unless(self, test: Handle, handle: Handle) -> Handle:
        """The handle's answer, or nothing where the test's answer is true."""
        boolean = self._jvm.static("java.lang.Boolean", "TYPE")
        condition = test.asType(self._type("methodType", boolean, self._jvm.class_named(_OBJECT)))
        return self._join("guardWithTest", condition, self.always(None), handle)

    def row(self, handles: Sequence[Handle]) -> Handle:
        """The answers of all of them, as an array."""
        row, count = self._jvm.class_named(_ROW), len(handles)
        collected = self._join("identity", row).asCollector(row, count)
        each = self._join(
            "filterArguments",
            collected,
            0,
            self._jvm.array("java.lang.invoke.MethodHandle", *handles),
        )
        wanted = self._type("methodType", row, self._jvm.class_named(_OBJECT))
        return self._join("permuteArguments", each, wanted, self._jvm.zeros(count)).asType(
            self._types[1]
        )

    def by_class(self, choices: Mapping[str, Handle], otherwise: Handle) -> Handle:
        """The handle of the object's own class."""
        table = JavaClass("java.util.HashMap", self._jvm.view._gateway_client)()
        functions: dict[int, JavaObject] = {}
        for class_name, handle in choices.items():
            if id(handle) not in functions:
                functions[id(handle)] = self.function(handle)
            table.put(self._jvm.class_named(class_name), functions[id(handle)])
        chosen = self.then(
            self.path(_OBJECT, "getClass"), self._looked_up(table, self.function(otherwise))
        )
        apply = self._unreflect(
            self._jvm.class_named(_FUNCTION).getMethod("apply", self._kinds(_OBJECT))
        )
        return self._join("foldArguments", apply.asType(self._types[2]), chosen)

    def gathered(self, class_name: str, handle: Handle) -> Handle:
        """Return the handle's results for the elements of a collection, option or tree.

        Anything with `foreach` will do.
        """
        collected = JavaClass("java.util.ArrayList", self._jvm.view._gateway_client)()
        visit = self.then(handle, self.given_to(collected, "java.util.ArrayList", "add"))
        face = self._face("asInterfaceInstance", self._jvm.class_named(SCALA_FUNCTION), visit)
        filled = self.both(
            self.called(class_name, "foreach", SCALA_FUNCTION, face), self._of(collected, "toArray")
        )
        return self.both(self._of(collected, "clear"), filled)

    def as_json(self, handle: Handle, mapper: JavaObject) -> Handle:
        """The answer as one text, which a mapper of Jackson's writes."""
        return self.then(handle, self.given_to(mapper, OBJECT_MAPPER, "writeValueAsString"))

    def function(self, handle: Handle) -> JavaObject:
        """A java.util.function.Function, whose `apply` can be called from here."""
        return self._face("asInterfaceInstance", self._jvm.class_named(_FUNCTION), handle)

    def task(self, handles: Sequence[Handle]) -> JavaObject:
        """A Runnable that calls each of them, whatever becomes of the others."""
        steps = self.always(None)
        for handle in reversed(handles):
            steps = self.both(self.or_unknown(handle), steps)
        nothing = self._join("insertArguments", steps, 0, self._jvm.array(_OBJECT, None))
        return self._face(
            "asInterfaceInstance", self._jvm.class_named("java.lang.Runnable"), nothing
        )

    def fed(self, handle: Handle) -> JavaObject:
        """Return a collection whose `add` gives the element to the handle and keeps nothing.

        It is of a public class of the JDK. It is a sorted set in which all are equal to its one
        element, "": who compares is the handle.
        """
        number = self._join("constant", self._jvm.static("java.lang.Integer", "TYPE"), 0)
        equal = self._join("dropArguments", number, 0, self._kinds(_OBJECT, _OBJECT))
        void = self._type(
            "methodType", self._jvm.static("java.lang.Void", "TYPE"), self._jvm.class_named(_OBJECT)
        )
        visit = self._join("dropArguments", handle.asType(void), 1, self._kinds(_OBJECT))
        compare = self._join("foldArguments", equal, visit)
        comparator = self._face(
            "asInterfaceInstance", self._jvm.class_named("java.util.Comparator"), compare
        )
        ordered = JavaClass("java.util.TreeSet", self._jvm.view._gateway_client)(comparator)
        ordered.add("")
        return ordered

    def _static(self, method: str) -> Handle:
        """`some.Class.method(kind)`, which is not asked about nothing."""
        name, _, kind = method.removesuffix(")").partition("(")
        owner, _, name = name.rpartition(".")
        handle = self._unreflect(self._jvm.class_named(owner).getMethod(name, self._kinds(kind)))
        return self.if_any(handle.asType(self._types[1]))

    def _method(self, class_name: str, name: str) -> tuple[Handle, str]:
        """A method without arguments, and the class of what it gives."""
        return self._step(_OBJECT if name in _OF_ANY else class_name, name)

    def _reflected(self, class_name: str, name: str) -> tuple[Handle, str]:
        method = self._jvm.class_named(class_name).getMethod(name, self._kinds())
        return self._unreflect(method).asType(self._types[1]), str(method.getReturnType().getName())

    def _of(self, target: JavaObject, name: str) -> Handle:
        """A method of this object, whatever the handle takes."""
        method = target.getClass().getMethod(name, self._kinds())
        return self._ignoring(self._unreflect(method).bindTo(target).asType(self._types[0]))

    def _ignoring(self, handle: Handle) -> Handle:
        return self._join("dropArguments", handle, 0, self._kinds(_OBJECT))

    def _looked_up(self, table: JavaObject, otherwise: JavaObject) -> Handle:
        method = table.getClass().getMethod("getOrDefault", self._kinds(_OBJECT, _OBJECT))
        handle = self._unreflect(method).bindTo(table)
        return self._join("insertArguments", handle, 1, self._jvm.array(_OBJECT, otherwise)).asType(
            self._types[1]
        )

    def _kinds(self, *class_names: str) -> JavaObject:
        return self._jvm.classes(*class_names)


class _Statics:
    """The static methods of a class, each looked up once."""

    def __init__(self, jvm: Jvm, class_name: str) -> None:
        self._jvm = jvm
        self._class_name = class_name

    def __call__(self, name: str, *arguments: Any) -> JavaObject:
        return self._jvm.static(self._class_name, name)(*arguments)
