"""The connector's Java classes, compiled on the driver by Janino, which Spark includes for its code generation.

The first session compiles them, in one to three seconds; later sessions load them from the `ClassCache` of the user.
"""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

from py4j.protocol import Py4JJavaError

from paimon_core.errors import UnsupportedError
from paimon_spark.sql.bridge.class_cache import ClassCache, cache_directory, class_key

_DELEGATES = "  /*DELEGATES*/\n"
_DEFINER = "paimon.python.ClassDefiner"
CHANGELOG = "org.apache.spark.sql.connector.catalog.Changelog"
"""An interface that Spark has since version 4.2."""
_OF_CHANGELOG = re.compile(r"  /\*CHANGELOG\*/\n.*?  /\*END\*/\n\n", re.DOTALL)
"""The methods that need this interface."""
_CHANGELOG_FILE = "PaimonChangelog.java"
RELATIONS = "org.apache.spark.sql.connector.catalog.RelationCatalog"
"""The interface of catalogs with views, since version 4.3."""
_VIEWS_FILE = "ViewedCatalog.java"
_UTIL = "org.codehaus.commons.compiler.util.resource"


def java_class(view: Any, name: str) -> Any:
    """Return a class or a package of a JVM by its full name. Cost: one call for each part of the name."""
    member = view
    for part in name.split("."):
        member = getattr(member, part)
    return member


def add_classes(view: Any, gateway: Any, loader: Any, fallback: Any, version: str) -> None:
    """Add the classes of the folder ``java`` to a class loader: from the cache, or else compiled.

    Threads of the Thrift server have context class loaders that know the class path only, so the classes belong into
    the loader of Spark itself.

    Args:
        view: the JVM, as py4j sees it.
        gateway: the gateway to the JVM.
        loader: the class loader that gets the classes, usually Spark's own.
        fallback: a `MutableURLClassLoader`, which gets them in a JVM that was started without the access to
            ``java.lang`` that Spark's launcher gives (``--add-opens``).
        version: the version of Spark, for the error.

    Raises UnsupportedError if this version of Spark lacks an interface, or if no class can be added.
    """
    sources, directory = _sources(view), cache_directory(os.environ)
    cache = None if directory is None else ClassCache(directory)
    key = class_key(sources, _runtime(view))
    archive = None if cache is None else cache.load(key)
    try:
        classes = _compiled(view, gateway, loader, sources) if archive is None else archive
        try:
            _define(view, gateway, loader, classes)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() != "InaccessibleObjectException":
                raise
            _add_jar(view, fallback, classes)
    except Py4JJavaError as error:
        raise UnsupportedError(
            f"Spark {version} does not accept a Paimon catalog: {error.java_exception.getMessage()}; "
            "use spark.read.format('paimon') and PaimonTable.forPath"
        ) from error
    if cache is not None and archive is None:
        cache.store(key, classes)


def _define(view: Any, gateway: Any, loader: Any, classes: bytes) -> None:
    """Define the classes of a jar in a loader: `ClassDefiner` through reflection, which then defines the others."""
    lang = view.java.lang
    types, arguments = gateway.new_array(lang.Class, 4), gateway.new_array(lang.Object, 4)
    for i, name in enumerate(("java.lang.String", "[B")):
        types[i] = lang.Class.forName(name)
    types[2] = types[3] = lang.Integer.TYPE
    method = lang.Class.forName("java.lang.ClassLoader").getDeclaredMethod("defineClass", types)
    method.setAccessible(True)
    with ZipFile(BytesIO(classes)) as jar:
        code = jar.read(f"{_DEFINER.replace('.', '/')}.class")
    arguments[0], arguments[1], arguments[2], arguments[3] = _DEFINER, code, 0, len(code)
    method.invoke(loader, arguments)
    java_class(view, _DEFINER).define(loader, classes)


def _add_jar(view: Any, loader: Any, classes: bytes) -> None:
    """Add a jar to a loader. The file, which no other process removes, is deleted when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="paimon-spark-classes-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    jar = folder / "classes.jar"
    jar.write_bytes(classes)
    loader.addURL(view.java.io.File(str(jar)).toURI().toURL())
    java_class(view, _DEFINER).keep(classes)


def _sources(view: Any) -> dict[str, str]:
    """Return the Java sources by file name, with the methods of this Spark's parser, without what this Spark lacks."""
    delegates = _delegates(view)
    files = [file for file in resources.files(__package__).joinpath("java").iterdir() if file.name.endswith(".java")]
    texts = {file.name: file.read_text().replace(_DELEGATES, delegates) for file in sorted(files, key=lambda f: f.name)}
    if not has_class(view, CHANGELOG):
        del texts[_CHANGELOG_FILE]
        texts = {name: _OF_CHANGELOG.sub("", text) for name, text in texts.items()}
    if not has_class(view, RELATIONS):
        del texts[_VIEWS_FILE]
    return texts


def has_class(view: Any, name: str) -> bool:
    """Return True if the JVM has a class of this full name."""
    try:
        view.java.lang.Class.forName(name)
    except Py4JJavaError:
        return False
    return True


def _runtime(view: Any) -> list[str]:
    """Return the builds of Spark and Java, to whose methods the compiler binds the calls in the sources."""
    spark = getattr(getattr(view.org.apache.spark, "package$"), "MODULE$")
    build = [str(spark.SPARK_VERSION()), str(spark.SPARK_REVISION()), str(spark.SPARK_BUILD_DATE())]
    return build + [str(view.java.lang.System.getProperty(f"java.vm.{name}")) for name in ("vendor", "version")]


def _compiled(view: Any, gateway: Any, loader: Any, sources: Mapping[str, str]) -> bytes:
    """Compile sources against the classes of a loader; return the classes as a jar."""
    janino, util = java_class(view, "org.codehaus.janino"), java_class(view, _UTIL)
    texts = gateway.new_array(java_class(view, f"{_UTIL}.Resource"), len(sources))
    for number, (name, text) in enumerate(sources.items()):
        texts[number] = util.StringResource(name, text)
    compiler = janino.Compiler()
    compiler.setIClassLoader(janino.ClassLoaderIClassLoader(loader))
    with tempfile.TemporaryDirectory(prefix="paimon-spark-classes-") as folder:
        compiler.setClassFileCreator(util.DirectoryResourceCreator(view.java.io.File(folder)))
        compiler.compile(texts)
        return _archive(Path(folder))


def _archive(folder: Path) -> bytes:
    """Return the files of a folder as a jar."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as jar:
        for path in sorted(folder.rglob("*.class")):
            jar.writestr(ZipInfo(path.relative_to(folder).as_posix()), path.read_bytes())
    return buffer.getvalue()


def _delegates(view: Any) -> str:
    """Return Java code for the methods of this Spark's ParserInterface that only delegate to Spark's parser."""
    texts = []
    parser = view.java.lang.Class.forName("org.apache.spark.sql.catalyst.parser.ParserInterface")
    for method in parser.getMethods():
        name, modifiers = str(method.getName()), view.java.lang.reflect.Modifier
        if "$" in name or modifiers.isStatic(method.getModifiers()) or name.startswith("parsePlan"):
            continue
        types = [str(kind.getCanonicalName()) for kind in method.getParameterTypes()]
        declared = ", ".join(f"{kind} a{i}" for i, kind in enumerate(types))
        arguments = ", ".join(f"a{i}" for i in range(len(types)))
        thrown = ", ".join(str(kind.getCanonicalName()) for kind in method.getExceptionTypes())
        result = method.getReturnType().getCanonicalName()
        throws = f" throws {thrown}" if thrown else ""
        texts.append(f"  public {result} {name}({declared}){throws} {{ return spark.{name}({arguments}); }}\n")
    return "".join(sorted(texts))  # the JVM returns the methods in any order
