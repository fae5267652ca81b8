"""The connector's Java classes, compiled on the driver by Janino, which Spark includes for its code generation.

The first session compiles them, in one to three seconds; later sessions load them from the `ClassCache` of the user.
"""

import atexit
import os
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
_UTIL = "org.codehaus.commons.compiler.util.resource"


def java_class(view: Any, name: str) -> Any:
    """Return a class or a package of a JVM by its full name. Cost: one call for each part of the name."""
    member = view
    for part in name.split("."):
        member = getattr(member, part)
    return member


def add_classes(view: Any, gateway: Any, loader: Any, version: str) -> None:
    """Add the classes of the folder ``java`` to a class loader: from the cache, or else compiled.

    The loader gets a copy of the cached classes, which no other process removes while the session runs.

    Args:
        view: the JVM, as py4j sees it.
        gateway: the gateway to the JVM.
        loader: the class loader that gets the classes.
        version: the version of Spark, for the error.

    Raises UnsupportedError if this version of Spark lacks an interface, or if no class can be added to the loader.
    """
    folder = Path(tempfile.mkdtemp(prefix="paimon-spark-classes-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sources, directory = _sources(view), cache_directory(os.environ)
    cache = None if directory is None else ClassCache(directory)
    key = class_key(sources, _runtime(view))
    archive = None if cache is None else cache.load(key)
    try:
        if archive is not None:
            jar = folder / "classes.jar"
            jar.write_bytes(archive)
            loader.addURL(view.java.io.File(str(jar)).toURI().toURL())
            return
        _compile(view, gateway, loader, sources, folder)
        loader.addURL(view.java.io.File(str(folder)).toURI().toURL())
    except Py4JJavaError as error:
        raise UnsupportedError(
            f"Spark {version} does not accept a Paimon catalog: {error.java_exception.getMessage()}; "
            "use spark.read.format('paimon') and PaimonTable.forPath"
        ) from error
    if cache is not None:
        cache.store(key, _archive(folder))


def _sources(view: Any) -> dict[str, str]:
    """Return the Java sources by file name, with the methods of this Spark's parser."""
    delegates = _delegates(view)
    files = [file for file in resources.files(__package__).joinpath("java").iterdir() if file.name.endswith(".java")]
    return {file.name: file.read_text().replace(_DELEGATES, delegates) for file in sorted(files, key=lambda f: f.name)}


def _runtime(view: Any) -> list[str]:
    """Return the builds of Spark and Java, to whose methods the compiler binds the calls in the sources."""
    spark = getattr(getattr(view.org.apache.spark, "package$"), "MODULE$")
    build = [str(spark.SPARK_VERSION()), str(spark.SPARK_REVISION()), str(spark.SPARK_BUILD_DATE())]
    return build + [str(view.java.lang.System.getProperty(f"java.vm.{name}")) for name in ("vendor", "version")]


def _compile(view: Any, gateway: Any, loader: Any, sources: Mapping[str, str], folder: Path) -> None:
    """Compile sources against the classes of a loader, and write the classes to a folder."""
    janino, util = java_class(view, "org.codehaus.janino"), java_class(view, _UTIL)
    texts = gateway.new_array(java_class(view, f"{_UTIL}.Resource"), len(sources))
    for number, (name, text) in enumerate(sources.items()):
        texts[number] = util.StringResource(name, text)
    compiler = janino.Compiler()
    compiler.setIClassLoader(janino.ClassLoaderIClassLoader(loader))
    compiler.setClassFileCreator(util.DirectoryResourceCreator(view.java.io.File(str(folder))))
    compiler.compile(texts)


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
