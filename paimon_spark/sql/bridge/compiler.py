"""The connector's Java classes, compiled on the driver by Janino, which Spark includes for its code generation."""

import atexit
import shutil
import tempfile
from importlib import resources
from typing import Any

from py4j.protocol import Py4JJavaError

from paimon_core.errors import UnsupportedError

_DELEGATES = "  /*DELEGATES*/\n"
_UTIL = "org.codehaus.commons.compiler.util.resource"


def java_class(view: Any, name: str) -> Any:
    """Return a class or a package of a JVM by its full name. Cost: one call for each part of the name."""
    member = view
    for part in name.split("."):
        member = getattr(member, part)
    return member


def compile_classes(view: Any, gateway: Any, loader: Any, version: str) -> None:
    """Compile the classes of the folder ``java`` and add them to a class loader.

    Args:
        view: the JVM, as py4j sees it.
        gateway: the gateway to the JVM.
        loader: the class loader that gets the classes.
        version: the version of Spark, for the error.

    Raises UnsupportedError if this version of Spark lacks an interface, or if no class can be added to the loader.
    """
    janino, util = java_class(view, "org.codehaus.janino"), java_class(view, _UTIL)
    folder = tempfile.mkdtemp(prefix="paimon-spark-classes-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    files = [file for file in resources.files(__package__).joinpath("java").iterdir() if file.name.endswith(".java")]
    sources = gateway.new_array(java_class(view, f"{_UTIL}.Resource"), len(files))
    delegates = _delegates(view)
    for number, file in enumerate(sorted(files, key=lambda file: file.name)):
        sources[number] = util.StringResource(file.name, file.read_text().replace(_DELEGATES, delegates))
    compiler = janino.Compiler()
    compiler.setIClassLoader(janino.ClassLoaderIClassLoader(loader))
    compiler.setClassFileCreator(util.DirectoryResourceCreator(view.java.io.File(folder)))
    try:
        compiler.compile(sources)
        loader.addURL(view.java.io.File(folder).toURI().toURL())
    except Py4JJavaError as error:
        raise UnsupportedError(
            f"Spark {version} does not accept a Paimon catalog: {error.java_exception.getMessage()}; "
            "use spark.read.format('paimon') and PaimonTable.forPath"
        ) from error


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
    return "".join(texts)
