package tidemark;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.AWSServiceIOException;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;

/**
 * Commits to a table on S3 by a put that the store itself refuses where the file is there.
 *
 * <p>So of several writers, whoever they are, exactly one makes each version. A put whose answer
 * was lost is decided by what the store has afterwards: every commit contains a random id, so a
 * file with the same bytes is this one. Where that can't be read either, the error says so.
 */
public final class ConditionalLogStore extends HadoopFileSystemLogStore {
    /** How the text of the error begins where a commit may or may not have been made. */
    public static final String UNKNOWN = "TIDEMARK_COMMIT_UNKNOWN";

    /** How it begins where the store would lose commits. */
    public static final String UNSAFE = "TIDEMARK_UNSAFE_STORE";

    private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";
    /** Without looking whether there is a directory of that name. */
    private static final String AT_ONCE = "fs.s3a.create.performance";

    private static final int ATTEMPTS = 3;
    private static final byte[] PROBE =
            "A store is written to only if it refuses to replace this file.\n"
                    .getBytes(StandardCharsets.UTF_8);
    /** Stores that have refused to replace a file. */
    private static final Set<String> PROVEN = ConcurrentHashMap.newKeySet();

    /** What Delta makes it by. */
    public ConditionalLogStore(Configuration conf) {
        super(conf);
    }

    /** A commit that may or may not have been made, because the store could not be asked. */
    public static final class CommitUnknownException extends IOException {
        CommitUnknownException(Path file, IOException cause) {
            super(UNKNOWN + ": it is unknown whether " + file + " was committed: " + cause, cause);
        }
    }

    @Override
    public void write(Path path, Iterator<String> lines, Boolean overwrite, Configuration conf)
            throws IOException {
        FileSystem store = path.getFileSystem(conf);
        if (overwrite) {
            put(store, path, AT_ONCE, join(lines));
            return;
        }
        Fence.check(path);
        prove(store, path);
        commit(store, path, join(lines));
        Fence.note(path);
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return false;
    }

    private static void commit(FileSystem store, Path path, byte[] content) throws IOException {
        IOException failure = null;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            try {
                put(store, path, IF_ABSENT, content);
                return;
            } catch (IOException error) {
                failure = error;
            }
            // The client may have repeated a put that had succeeded, so a refusal proves nothing.
            byte[] there = readBack(store, path, content.length, failure);
            if (there != null && Arrays.equals(there, content)) {
                return;
            }
            if (there != null) {
                throw new FileAlreadyExistsException(path.toString());
            }
            if (failure instanceof AccessDeniedException
                    || failure instanceof FileNotFoundException) {
                throw failure;
            }
        }
        // A put that has not arrived yet may still do so.
        throw new CommitUnknownException(path, failure);
    }

    /** The bytes of a file, or one more than so many; null where there is none. */
    private static byte[] readBack(FileSystem store, Path path, int length, IOException failure)
            throws CommitUnknownException {
        // A thread that is interrupted, as by a cancelled job, has to learn it all the same.
        boolean interrupted = Thread.interrupted();
        try (FSDataInputStream there = store.open(path)) {
            return there.readNBytes(length + 1);
        } catch (FileNotFoundException absent) {
            return null;
        } catch (IOException unreachable) {
            failure.addSuppressed(unreachable);
            throw new CommitUnknownException(path, failure);
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static void prove(FileSystem store, Path path) throws IOException {
        String name = store.getUri().toString();
        if (PROVEN.contains(name)) {
            return;
        }
        Path probe = new Path(path.getParent(), "_conditional_create");
        boolean canRefuse = store.hasPathCapability(path, IF_ABSENT);
        // The first attempt makes the file where there is none.
        for (int attempt = 0; canRefuse && attempt < ATTEMPTS; attempt++) {
            if (isRefused(store, probe)) {
                PROVEN.add(name);
                return;
            }
        }
        throw new IOException(
                UNSAFE + ": " + name + " does not refuse to replace a file, so commits could be"
                        + " lost; use a store that has conditional writes (If-None-Match)");
    }

    private static boolean isRefused(FileSystem store, Path probe) throws IOException {
        try {
            put(store, probe, IF_ABSENT, PROBE);
            return false;
        } catch (RemoteFileChangedException refused) {
            return true;
        } catch (AWSServiceIOException error) {
            // Another process is trying the same, or the store knows no conditions.
            if (error.statusCode() == 409 || error.statusCode() == 501) {
                return false;
            }
            throw error;
        }
    }

    private static void put(FileSystem store, Path path, String how, byte[] content)
            throws IOException {
        FSDataOutputStreamBuilder<?, ?> file = store.createFile(path);
        file.must(how, true);
        FSDataOutputStream stream = file.build();
        try {
            stream.write(content);
        } catch (IOException | RuntimeException error) {
            // A stream of s3a that is closed uploads what there is, even after an error.
            stream.abort();
            throw error;
        }
        stream.close();
    }

    private static byte[] join(Iterator<String> lines) {
        ByteArrayOutputStream joined = new ByteArrayOutputStream();
        while (lines.hasNext()) {
            joined.writeBytes(lines.next().getBytes(StandardCharsets.UTF_8));
            joined.write('\n');
        }
        return joined.toByteArray();
    }
}
