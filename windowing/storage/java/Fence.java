package tidemark;

import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/**
 * Which version of a table this process may commit next, for the log stores of this package.
 *
 * <p>A process that slept while another took over its tables must not go on with them. So it names
 * the version after the one that it has read, and every other commit ends with an error. It is not
 * the error of a lost race, because Delta would answer that one by trying the version after it.
 *
 * <p>A table is the directory of it, spelled as Spark spells it.
 */
public final class Fence {
    /** How the text of the error begins, for callers that see the text alone. */
    public static final String FENCED = "TIDEMARK_FENCED";

    private static final Pattern COMMIT = Pattern.compile("\\d{20}\\.json");
    private static final Map<String, Long> NEXT = new ConcurrentHashMap<>();
    private static final Set<String> ROOTS = ConcurrentHashMap.newKeySet();

    private Fence() {}

    /** A commit that was refused before anything was written. */
    public static final class FencedException extends IOException {
        FencedException(String text) {
            super(FENCED + ": " + text);
        }
    }

    /**
     * From now on no table in this directory can be committed to, unless its version is allowed
     * afterwards.
     */
    public static void only(String root) {
        ROOTS.add(name(root));
        forget(name(root));
    }

    /** Ends what {@link #only} and {@link #allow} have begun for this directory. */
    public static void lift(String root) {
        forget(name(root));
        ROOTS.remove(name(root));
    }

    /** This version of the table, and then those after it, can be committed by this process. */
    public static void allow(String table, long version) {
        NEXT.put(name(table), version);
    }

    /** The version of the table that this process may commit next, of one that was allowed any. */
    public static long next(String table) {
        return NEXT.get(name(table));
    }

    static void check(Path file) throws FencedException {
        if (!isCommit(file)) {
            return;
        }
        String table = table(file);
        Long next = NEXT.get(table);
        if (next == null && ROOTS.stream().noneMatch(root -> contains(root, table))) {
            return;
        }
        if (next == null) {
            throw new FencedException(
                    "nothing may be committed to " + table + " by this process");
        }
        if (next != version(file)) {
            throw new FencedException(
                    "version " + version(file) + " of " + table + " may not be committed by this"
                            + " process, which may commit version " + next + " alone");
        }
    }

    static void note(Path file) {
        if (isCommit(file)) {
            NEXT.computeIfPresent(
                    table(file), (table, next) -> next == version(file) ? next + 1 : next);
        }
    }

    private static void forget(String root) {
        NEXT.keySet().removeIf(table -> contains(root, table));
    }

    private static boolean isCommit(Path file) {
        return COMMIT.matcher(file.getName()).matches();
    }

    private static long version(Path file) {
        return Long.parseLong(file.getName().substring(0, 20));
    }

    private static String table(Path file) {
        return name(file.getParent().getParent().toString());
    }

    private static boolean contains(String root, String table) {
        return table.equals(root) || table.startsWith(root + "/");
    }

    private static String name(String directory) {
        Path path = new Path(directory);
        String scheme = path.toUri().getScheme();
        return scheme == null || scheme.equals("file") ? path.toUri().getPath() : path.toString();
    }
}
