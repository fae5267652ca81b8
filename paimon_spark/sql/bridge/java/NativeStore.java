package paimon.python;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;

/** The store of the files of a task: a local disk. HDFS: {@link HdfsNativeStore}. */
class NativeStore {
  /** Return the store of a table. Its root is a path of the operating system, or a URL on HDFS. */
  static NativeStore of(String root, Configuration configuration) throws IOException {
    return root.startsWith("hdfs:") ? new HdfsNativeStore(root, configuration) : new NativeStore(root);
  }

  /** The directory of the table, which is never created: the table may have been dropped. */
  final String root;

  NativeStore(String root) {
    this.root = root;
  }

  /** Create a directory and its missing parents below the root. */
  void createDirectory(String directory) throws IOException {
    try {
      createDirectory(Paths.get(directory), Paths.get(root));
    } catch (InvalidPathException error) {
      throw new IOException(error);  // Java lacks the characters of the path in this locale
    }
  }

  private static void createDirectory(Path directory, Path root) throws IOException {
    try {
      Files.createDirectory(directory);
    } catch (FileAlreadyExistsException exists) {
      return;
    } catch (NoSuchFileException missing) {
      Path parent = directory.getParent();
      if (parent == null || parent.equals(root)) {
        throw missing;
      }
      createDirectory(parent, root);
      createDirectory(directory, root);
    }
  }

  OutputFile newFile(String path) throws IOException {
    return new LocalOutputFile(Paths.get(path));
  }

  long size(String path) throws IOException {
    return Files.size(Paths.get(path));
  }

  void delete(String path) throws IOException {
    Files.deleteIfExists(Paths.get(path));
  }
}

/** HDFS, as the JVM is configured. */
class HdfsNativeStore extends NativeStore {
  private final FileContext files;

  HdfsNativeStore(String root, Configuration configuration) throws IOException {
    super(root);
    files = FileContext.getFileContext(URI.create(root.substring(0, authorityEnd(root))), configuration);
  }

  private static int authorityEnd(String root) {
    int slash = root.indexOf('/', "hdfs://".length());
    return slash < 0 ? root.length() : slash;
  }

  void createDirectory(String directory) throws IOException {
    if (directory.equals(root)) {
      return;
    }
    try {
      files.mkdir(path(directory), FsPermission.getDirDefault(), false);
    } catch (org.apache.hadoop.fs.FileAlreadyExistsException exists) {
      return;
    } catch (FileNotFoundException missing) {
      String parent = directory.substring(0, directory.lastIndexOf('/'));
      if (parent.length() <= root.length()) {
        throw missing;
      }
      createDirectory(parent);
      createDirectory(directory);
    }
  }

  OutputFile newFile(String path) throws IOException {
    return new HdfsFile(files, path(path));
  }

  long size(String path) throws IOException {
    return files.getFileStatus(path(path)).getLen();
  }

  void delete(String path) throws IOException {
    try {
      files.delete(path(path), false);
    } catch (FileNotFoundException missing) {
      return;
    }
  }

  private static org.apache.hadoop.fs.Path path(String path) {
    return new org.apache.hadoop.fs.Path(path);
  }
}

/** A new file on HDFS, whose directory must exist. */
class HdfsFile implements OutputFile {
  private final FileContext files;
  private final org.apache.hadoop.fs.Path path;

  HdfsFile(FileContext files, org.apache.hadoop.fs.Path path) {
    this.files = files;
    this.path = path;
  }

  public PositionOutputStream create(long blockSizeHint) throws IOException {
    return new HdfsStream(files.create(path, EnumSet.of(CreateFlag.CREATE), new Options.CreateOpts[0]));
  }

  public PositionOutputStream createOrOverwrite(long blockSizeHint) throws IOException {
    return create(blockSizeHint);
  }

  public boolean supportsBlockSize() {
    return false;
  }

  public long defaultBlockSize() {
    return -1;
  }

  public String getPath() {
    return path.toString();
  }
}

/** A stream that syncs its file before it closes it. */
class HdfsStream extends PositionOutputStream {
  private final FSDataOutputStream out;
  private boolean open = true;

  HdfsStream(FSDataOutputStream out) {
    this.out = out;
  }

  public long getPos() {
    return out.getPos();
  }

  public void write(int value) throws IOException {
    out.write(value);
  }

  public void write(byte[] data, int offset, int length) throws IOException {
    out.write(data, offset, length);
  }

  public void flush() throws IOException {
    out.flush();
  }

  public void close() throws IOException {
    if (!open) {
      return;
    }
    open = false;
    try {
      out.hsync();
    } finally {
      out.close();
    }
  }
}
