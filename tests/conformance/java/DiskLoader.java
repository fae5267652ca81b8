import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.FileIOLoader;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.options.Options;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;

/** Loads a local disk: {@code link}, or one that is held by the files of a directory. */
public class DiskLoader implements FileIOLoader {
    final String disk;

    DiskLoader(String disk) {
        this.disk = disk;
    }

    /** The context of a catalog whose local files are on such a disk; {@code null}: on the engine's own. */
    static CatalogContext context(Options options, String disk) {
        return disk == null
                ? CatalogContext.create(options)
                : CatalogContext.create(options, new DiskLoader(disk), null);
    }

    @Override
    public String getScheme() {
        return "file";
    }

    @Override
    public FileIO load(Path path) {
        return disk.equals("link") ? new LinkingFileIO() : new HoldingFileIO(disk);
    }

    /**
     * A local disk whose rename fails if the target exists, also if another process has just created it. The engine's own
     * looks for the target and then renames over it, so it replaces a snapshot that is created in between.
     */
    static class LinkingFileIO extends LocalFileIO {
        @Override
        public boolean rename(Path src, Path dst) throws IOException {
            java.nio.file.Path from = toFile(src).toPath(), to = toFile(dst).toPath();
            if (Files.isDirectory(from)) return super.rename(src, dst);
            Files.createDirectories(to.getParent());
            try {
                Files.createLink(to, from);
            } catch (FileAlreadyExistsException taken) {
                return false;
            }
            Files.delete(from);
            return true;
        }
    }

    /**
     * A local disk whose rename looks for the target and then renames over it, as the engine's own, but may stop in
     * between: if the directory {@code holds} has a file of the target's name, that file is renamed to {@code NAME.held},
     * and the rename goes on when somebody has deleted it.
     */
    static class HoldingFileIO extends LocalFileIO {
        final java.nio.file.Path holds;

        HoldingFileIO(String holds) {
            this.holds = Paths.get(holds);
        }

        @Override
        public boolean rename(Path src, Path dst) throws IOException {
            java.nio.file.Path asked = holds.resolve(dst.getName()), held = holds.resolve(dst.getName() + ".held");
            if (!Files.exists(asked)) return super.rename(src, dst);
            java.nio.file.Path from = toFile(src).toPath(), to = toFile(dst).toPath();
            if (Files.exists(to)) return false;
            Files.move(asked, held);
            try {
                while (Files.exists(held)) Thread.sleep(10);
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
            Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
            return true;
        }
    }
}
