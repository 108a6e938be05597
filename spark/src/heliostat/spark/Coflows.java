package heliostat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the controller is told and asked about shuffles. Only {@link #place} and the first {@link #rackOf} wait for an answer;
 * the rest is done by a thread of its own, in order.
 */
final class Coflows {
    /** Time from the end of a shuffle until the ToRs' counters of its last bytes have been read, in milliseconds. */
    private static final long SETTLE_MS = 400;
    /** Time between two reports of jobs, in milliseconds. */
    private static final long SHOW_MS = 250;
    /** How long what is still to be told may take when an application ends, in seconds. */
    private static final long END_S = 3;
    /** The most numbers of bytes by rack and task that the controller takes. */
    private static final int MAX_READS = 20_000;
    /** The most shuffles that a coflow's name has. */
    private static final int MOST_NAMED = 3;
    /** The longest name that a coflow may have. */
    private static final int MAX_NAME = 64;

    private static final Logger LOG = LoggerFactory.getLogger(Coflows.class);

    /** An attempt of a stage that reads a shuffle. */
    static final class Reading {
        final String name;
        final int stage;
        final int attempt;
        final Shuffle shuffle;
        private final List<Integer> ids;
        private final long startedMs = System.currentTimeMillis();
        /** By task of the stage: the rack in which it runs. */
        private final Map<Integer, Integer> ranIn = new HashMap<>();

        private boolean declared;
        private Map<Integer, Integer> placed = Map.of();
        private String why;
        private Long coflow;
        private JsonNode before;
        private long remoteBytes;

        /** @param ids Spark's numbers of the shuffles that it reads */
        Reading(String application, int stage, int attempt, List<Integer> ids, Shuffle shuffle) {
            String read = ids.stream().limit(MOST_NAMED).map(String::valueOf).collect(Collectors.joining("+"));
            String begin = "stage " + stage + (attempt > 0 ? "." + attempt : "") + " shuffle " + read;
            if (ids.size() > MOST_NAMED) begin += "..";
            this.ids = ids;
            // What differs comes first, since charts cut long names.
            name = begin + " of " + application.substring(0, Math.min(application.length(), MAX_NAME - begin.length() - 4));
            this.stage = stage;
            this.attempt = attempt;
            this.shuffle = shuffle;
        }
    }

    private final Settings settings;
    private final Controller controller;
    private final BufferedWriter report;
    private final ScheduledExecutorService later =
            Executors.newSingleThreadScheduledExecutor(
                    work -> {
                        Thread t = new Thread(work, "heliostat");
                        t.setDaemon(true);
                        return t;
                    });
    private volatile Map<String, Integer> racks;
    private volatile int rackCount;
    private boolean silent;
    private volatile Supplier<Map<String, Object>> shown;

    /** @throws IllegalArgumentException if the controller's address makes no sense, or the report cannot be written */
    Coflows(Settings settings) {
        this.settings = settings;
        controller = new Controller(settings.controller(), settings.token(), settings.timeoutMs(), Clock::ms);
        try {
            report =
                    settings.report() == null
                            ? null
                            : Files.newBufferedWriter(settings.report(), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new IllegalArgumentException("spark.heliostat.report=" + settings.report() + ": " + e, e);
        }
    }

    /** The rack of a host; -1 if the controller knows none of that name, or has not answered yet. */
    int rackOf(String host) {
        Map<String, Integer> known = racks;
        return known == null ? -1 : known.getOrDefault(host, -1);
    }

    /** Racks of the network, for which the controller is asked once; 0 if it does not answer. */
    int rackCount() {
        if (racks == null) {
            JsonNode topology = ask("GET", "/api/v1/topology", null);
            if (topology == null) return 0;
            Map<String, Integer> byHost = new HashMap<>();
            topology.get("hosts").forEach(h -> byHost.put(h.get("name").asText(), h.get("rack").asInt()));
            rackCount = topology.get("racks").size();
            racks = byHost;
        }
        return rackCount;
    }

    /** Tells the controller of jobs now and then, and at the end: what {@code jobs} gives, unless that is null. */
    void show(Supplier<Map<String, Object>> jobs) {
        shown = jobs;
        later.scheduleWithFixedDelay(this::showJobs, SHOW_MS, SHOW_MS, TimeUnit.MILLISECONDS);
    }

    private void showJobs() {
        try {
            Map<String, Object> report = shown == null ? null : shown.get();
            if (report != null) ask("PUT", "/api/v1/jobs", report);
        } catch (RuntimeException e) {
            LOG.warn("jobs are not shown: {}", String.valueOf(e));
        }
    }

    /** A stage is about to read. */
    void begins(Reading r) {
        later(() -> r.before = ask("GET", "/api/v1/demand", null));
    }

    /**
     * Asks in which racks the tasks of a stage shall run, and declares its coflow.
     *
     * @return by task: its rack; empty if Spark is to decide
     */
    int[] place(Reading r, Map<Integer, Integer> offered) {
        int tasks = r.shuffle.tasks();
        if (offered.values().stream().mapToInt(Integer::intValue).sum() < tasks) {
            r.why = "too few slots";
            return new int[0];
        }
        Map<String, Object> place = new LinkedHashMap<>();
        place.put("maps", maps(r.shuffle));
        place.put("tasks", tasks);
        place.put("slots", list(offered, "free"));
        JsonNode proposed = ask("POST", "/api/v1/coflows", Map.of("name", r.name, "place", place));
        if (proposed == null) {
            r.why = "the controller did not answer";
            return new int[0];
        }
        Map<Integer, Integer> racks = new TreeMap<>();
        proposed.at("/proposal/chosen/racks").forEach(x -> racks.put(x.get("rack").asInt(), x.get("tasks").asInt()));
        r.placed = racks;
        JsonNode byTask = proposed.at("/proposal/tasks");
        r.declared = true;
        long id = proposed.get("id").asLong();
        // Where all stays in one rack there is nothing to declare.
        if (proposed.get("pairs").isEmpty()) {
            later(() -> ask("DELETE", "/api/v1/coflows/" + id, null));
        } else if (ask("POST", "/api/v1/coflows/" + id + "/confirm", Map.of()) != null) {
            r.coflow = id;
        }
        if (!byTask.isArray()) return Placement.inOrder(racks);
        return StreamSupport.stream(byTask.spliterator(), false).mapToInt(JsonNode::asInt).toArray();
    }

    /** Map output by rack, with what each task reads of it unless that is too much to tell. */
    static List<Object> maps(Shuffle shuffle) {
        var rows = shuffle.maps();
        boolean all = (long) rows.size() * shuffle.tasks() <= MAX_READS;
        List<Object> maps = new ArrayList<>();
        rows.forEach(
                (rack, row) -> {
                    long bytes = Arrays.stream(row).sum();
                    maps.add(all ? Map.of("rack", rack, "bytes", bytes, "by_task", row) : Map.of("rack", rack, "bytes", bytes));
                });
        return maps;
    }

    /**
     * Tasks of a stage start: by task, the host. The first time the shuffle is declared; tasks that have not started are taken to
     * be spread like {@code slots} (rack to number).
     */
    void starts(Reading r, Map<Integer, String> hosts, Map<Integer, Integer> slots) {
        later(
                () -> {
                    hosts.forEach((task, host) -> r.ranIn.put(task, rackOf(host)));
                    if (r.declared || settings.mode() == Settings.Mode.OFF) return;
                    r.declared = true;
                    List<Object> pairs = new ArrayList<>();
                    r.shuffle
                            .pairs(r.ranIn, slots)
                            .forEach((p, bytes) -> pairs.add(Map.of("from", p.from(), "to", p.to(), "bytes", bytes)));
                    if (pairs.isEmpty()) return;
                    JsonNode made = ask("POST", "/api/v1/coflows", Map.of("name", r.name, "pairs", pairs));
                    if (made != null) r.coflow = made.get("id").asLong();
                });
    }

    /** A task of the stage has read so many bytes from other hosts. */
    void read(Reading r, long bytes) {
        later(() -> r.remoteBytes += bytes);
    }

    /** A stage has read all. */
    void ends(Reading r) {
        long tookMs = System.currentTimeMillis() - r.startedMs;
        later(
                () -> {
                    if (r.coflow != null) ask("POST", "/api/v1/coflows/" + r.coflow + "/finish", null);
                    if (report == null) return;
                    later.schedule(() -> write(line(r, tookMs)), SETTLE_MS, TimeUnit.MILLISECONDS);
                });
    }

    /** A job has ended. */
    void jobEnded(int job, long startedMs, long endedMs, boolean succeeded) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("job", job);
        line.put("started_ms", startedMs);
        line.put("ended_ms", endedMs);
        line.put("succeeded", succeeded);
        later(() -> write(line));
    }

    private Map<String, Object> line(Reading r, long tookMs) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("stage", r.stage);
        line.put("attempt", r.attempt);
        line.put("name", r.name);
        line.put("shuffles", r.ids);
        line.put("tasks", r.shuffle.tasks());
        line.put("started_ms", r.startedMs);
        line.put("took_ms", tookMs);
        line.put("shuffle_bytes", r.shuffle.bytes());
        line.put("remote_read_bytes", r.remoteBytes);
        line.put("placed", list(r.placed, "tasks"));
        if (r.why != null) line.put("not_placed", r.why);
        Map<Integer, Integer> ran = new TreeMap<>();
        r.ranIn.values().forEach(rack -> ran.merge(rack, 1, Integer::sum));
        line.put("ran", list(ran, "tasks"));
        JsonNode after = ask("GET", "/api/v1/demand", null);
        if (r.before != null && after != null) {
            long sent = 0;
            List<Object> pairs = new ArrayList<>();
            for (int i = 0; i < rackCount; i++) {
                for (int j = 0; j < rackCount; j++) {
                    long bytes = since(r.before, after, "sent_bytes", i, j);
                    sent += bytes;
                    if (bytes > 0) pairs.add(Map.of("from", i, "to", j, "bytes", bytes));
                }
            }
            long ocs = 0;
            for (int i = 0; i < rackCount; i++) {
                for (int j = 0; j < rackCount; j++) ocs += since(r.before, after, "over_ocs_bytes", i, j);
            }
            line.put("sent_bytes", sent);
            line.put("over_ocs_bytes", ocs);
            line.put("pairs", pairs);
        }
        JsonNode coflow = r.coflow == null ? null : ask("GET", "/api/v1/coflows/" + r.coflow, null);
        if (coflow != null) line.put("coflow", coflow);
        return line;
    }

    private static long since(JsonNode before, JsonNode after, String key, int i, int j) {
        return after.get(key).get(i).get(j).asLong() - before.get(key).get(i).get(j).asLong();
    }

    private static List<Object> list(Map<Integer, ? extends Number> byRack, String what) {
        List<Object> list = new ArrayList<>();
        byRack.forEach((rack, n) -> list.add(Map.of("rack", rack, what, n)));
        return list;
    }

    /** The answer to a request; null if there is none. That the controller does not answer is said once. */
    private JsonNode ask(String method, String path, Object body) {
        try {
            JsonNode answer = controller.call(method, path, body);
            said(null);
            return answer == null ? Controller.JSON.createObjectNode() : answer;
        } catch (Controller.Refused e) {
            LOG.warn("the controller refused {}", e.getMessage());
        } catch (IOException e) {
            said(e.getMessage());
        }
        return null;
    }

    private synchronized void said(String why) {
        if (why != null && !silent) {
            LOG.warn("no answer from the controller: {}; until it answers, Spark places tasks, and shuffles are not declared", why);
        } else if (why == null && silent) {
            LOG.warn("the controller answers again");
        }
        silent = why != null;
    }

    private void later(Runnable work) {
        try {
            later.execute(
                    () -> {
                        try {
                            work.run();
                        } catch (RuntimeException e) {
                            LOG.warn("a shuffle is not followed any more: {}", String.valueOf(e));
                        }
                    });
        } catch (RejectedExecutionException e) {
            LOG.debug("the application has ended");
        }
    }

    private void write(Map<String, Object> line) {
        if (report == null) return;
        try {
            report.write(Controller.JSON.writeValueAsString(line) + "\n");
            report.flush();
        } catch (IOException e) {
            LOG.warn("spark.heliostat.report={}: {}", settings.report(), e.getMessage());
        }
    }

    /** Ends, once all is told and written, or soon. */
    void close() {
        later(this::showJobs);
        later.shutdown();
        try {
            if (!later.awaitTermination(END_S, TimeUnit.SECONDS)) later.shutdownNow();
            if (report != null) report.close();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            LOG.warn("spark.heliostat.report={}: {}", settings.report(), e.getMessage());
        }
    }
}
