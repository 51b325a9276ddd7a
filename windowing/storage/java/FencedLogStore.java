package tidemark;

import io.delta.storage.HDFSLogStore;
import java.io.IOException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Commits to a table on HDFS as Delta does, where the fence allows it. */
public final class FencedLogStore extends HDFSLogStore {
    /** What Delta makes it by. */
    public FencedLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    public void write(Path path, Iterator<String> lines, Boolean overwrite, Configuration conf)
            throws IOException {
        Fence.check(path);
        super.write(path, lines, overwrite, conf);
        Fence.note(path);
    }
}
