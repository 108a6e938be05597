package heliostat.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.apache.spark.SparkConf;

/**
 * The settings {@code spark.heliostat.*} that every mode has.
 *
 * @param controller where the daemon's API is
 * @param token its bearer token, or null
 * @param mode what is done beside watching
 * @param timeoutMs the longest time that a request takes
 * @param patienceMs how long tasks wait for the racks that they were given
 * @param report the file to which a line of JSON is written for each shuffle and job, or null
 */
record Settings(String controller, String token, Mode mode, long timeoutMs, long patienceMs, Path report) {
    /** What is done beside watching. */
    enum Mode {
        /** Nothing. */
        OFF,
        /** Shuffles are declared, with the racks in which Spark placed their tasks. */
        DECLARE,
        /** The controller says in which racks tasks run. */
        PLACE
    }

    /** @throws IllegalArgumentException naming the setting that makes no sense, and what is allowed */
    static Settings of(SparkConf conf) {
        String controller = conf.get("spark.heliostat.controller", "http://127.0.0.1:7447");
        String mode = conf.get("spark.heliostat.mode", "place");
        long timeout = conf.getTimeAsMs("spark.heliostat.timeout", "500ms");
        if (timeout < 1) throw new IllegalArgumentException("spark.heliostat.timeout=" + timeout + "ms: at least 1ms");
        long patience = conf.getTimeAsMs("spark.heliostat.patience", "10s");
        String report = conf.get("spark.heliostat.report", "");
        String tokenFile = conf.get("spark.heliostat.tokenFile", "");
        try {
            String token = tokenFile.isEmpty() ? null : Files.readString(Path.of(tokenFile)).strip();
            Path file = report.isEmpty() ? null : Path.of(report);
            return new Settings(controller, token, mode(mode), timeout, patience, file);
        } catch (IOException e) {
            throw new IllegalArgumentException("spark.heliostat.tokenFile=" + tokenFile + ": " + e, e);
        }
    }

    /** @throws IllegalArgumentException if there is no mode of that name */
    static Mode mode(String name) {
        for (Mode m : Mode.values()) {
            if (m.name().toLowerCase(Locale.ROOT).equals(name)) return m;
        }
        throw new IllegalArgumentException("spark.heliostat.mode=" + name + ": it must be off, declare or place");
    }
}
