import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;

/**
 * Many files of HDFS at once, as the owner of the ticket.
 *
 * put PLAN: a line of PLAN is a local file, a tab and a path in HDFS. read ROOT: open and read each file below ROOT once, and nothing
 * else. count ROOT SINCE: print the number of files that were last written at
 * this moment (ms since 1970) or later and whose names are not hidden, and their bytes. delete ROOT.
 */
public class HdfsFiles {
    private static final int THREADS = 8;
    private static FileSystem fs;

    public static void main(String[] words) throws Exception {
        fs = FileSystem.get(new HdfsConfiguration());
        System.out.println("session " + System.currentTimeMillis());
        if (words[0].equals("put")) {
            put(Files.readAllLines(Paths.get(words[1])));
        } else if (words[0].equals("read")) {
            read(filesBelow(new Path(words[1])));
        } else if (words[0].equals("count")) {
            count(filesBelow(new Path(words[1])), Long.parseLong(words[2]));
        } else if (words[0].equals("delete")) {
            fs.delete(new Path(words[1]), true);
        } else {
            throw new IllegalArgumentException(words[0]);
        }
    }

    private interface Work {
        void on(String item) throws Exception;
    }

    private static void put(List<String> lines) throws Exception {
        Map<String, byte[]> seeds = new ConcurrentHashMap<>();
        inParallel(lines, line -> {
            String[] pair = line.split("\t");
            byte[] content = seeds.computeIfAbsent(pair[0], HdfsFiles::load);
            try (OutputStream out = fs.create(new Path(pair[1]), false)) {
                out.write(content);
            }
        });
    }

    private static byte[] load(String file) {
        try {
            return Files.readAllBytes(Paths.get(file));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void read(List<FileStatus> files) throws Exception {
        List<String> paths = new ArrayList<>();
        for (FileStatus file : files) {
            paths.add(file.getPath().toString());
        }
        inParallel(paths, path -> {
            byte[] buffer = new byte[1 << 16];
            try (InputStream in = fs.open(new Path(path))) {
                while (in.read(buffer) >= 0) {
                    continue;
                }
            }
        });
    }

    private static void count(List<FileStatus> files, long since) {
        long bytes = 0;
        int count = 0;
        for (FileStatus file : files) {
            if (file.getModificationTime() >= since) {
                bytes += file.getLen();
                count++;
            }
        }
        System.out.println("files " + count);
        System.out.println("bytes " + bytes);
    }

    private static List<FileStatus> filesBelow(Path root) throws IOException {
        List<FileStatus> found = new ArrayList<>();
        for (FileStatus status : fs.listStatus(root)) {
            String name = status.getPath().getName();
            if (name.startsWith(".") || name.startsWith("_")) {
                continue;
            }
            if (status.isDirectory()) {
                found.addAll(filesBelow(status.getPath()));
            } else {
                found.add(status);
            }
        }
        return found;
    }

    private static void inParallel(List<String> items, Work work) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        List<Future<?>> pending = new ArrayList<>();
        for (String item : items) {
            pending.add(pool.submit(() -> {
                work.on(item);
                return null;
            }));
        }
        pool.shutdown();
        for (Future<?> each : pending) {
            each.get();
        }
    }
}
