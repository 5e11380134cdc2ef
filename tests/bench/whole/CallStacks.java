package bench;

import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.apache.logging.log4j.core.config.plugins.Plugin;
import org.apache.logging.log4j.core.config.plugins.PluginAttribute;
import org.apache.logging.log4j.core.config.plugins.PluginFactory;

/**
 * Writes a line for each call to HDFS's servers: the call, Hadoop's method, and the code that called it.
 *
 * Hadoop's client logs each call in the thread that makes it, so an appender sees the caller's stack.
 */
@Plugin(name = "CallStacks", category = "Core", elementType = "appender")
public final class CallStacks extends AbstractAppender {
    private static final int FRAMES = 4;
    private static final Pattern OF_OTHERS = Pattern.compile("(java|javax|jdk|sun|py4j)[.]");
    private final PrintWriter out;

    private CallStacks(String name, PrintWriter out) {
        super(name, (Filter) null, null, true, Property.EMPTY_ARRAY);
        this.out = out;
    }

    /** Each line is written at once, because Spark's driver may end without stopping its appenders. */
    @PluginFactory
    public static CallStacks create(@PluginAttribute("name") String name, @PluginAttribute("fileName") String file) throws IOException {
        return new CallStacks(name, new PrintWriter(new OutputStreamWriter(Files.newOutputStream(Paths.get(file)), StandardCharsets.UTF_8), true));
    }

    @Override
    public void append(LogEvent event) {
        String[] words = event.getMessage().getFormattedMessage().split(" ");
        if (words.length > 1 && words[0].equals("Call:")) {
            out.println(words[1] + "\t" + callers());
        }
    }

    /** The call of Hadoop's file system, then the innermost frames outside Hadoop; a thread of Hadoop's own is named. */
    private static String callers() {
        List<String> found = new ArrayList<>();
        String api = "";
        for (StackTraceElement frame : new Throwable().getStackTrace()) {
            String place = frame.getClassName();
            if (place.startsWith("org.apache.hadoop.") && !place.contains(".ipc.") && !place.contains(".retry.")) {
                if (found.isEmpty() && !place.contains("Protocol")) {
                    api = shorten(frame);
                }
            } else if (!api.isEmpty() && found.size() < FRAMES && !OF_OTHERS.matcher(place).lookingAt()) {
                // What Janino compiled has no line numbers.
                found.add(shorten(frame) + (frame.getLineNumber() > 0 ? ":" + frame.getLineNumber() : ""));
            }
        }
        String thread = found.isEmpty() ? " in thread " + Thread.currentThread().getName().replaceAll("\\S*\\d\\S*", "*") : "";
        return api + thread + "\t" + String.join(" < ", found);
    }

    private static String shorten(StackTraceElement frame) {
        String place = frame.getClassName();
        return place.substring(place.lastIndexOf('.') + 1) + "." + frame.getMethodName();
    }
}
