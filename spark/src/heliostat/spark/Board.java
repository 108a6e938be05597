package heliostat.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What the controller is told of the application's jobs, for those who watch the network: a query of Spark SQL is one, and so is
 * each other job of Spark. All times are milliseconds since 1970.
 */
final class Board {
    /** The most jobs that are told, and stages of which their job is known: the newest. */
    private static final int MOST = 1000;
    /** The longest name that is taken. */
    private static final int MAX_NAME = 80;

    private static final class Job {
        final int id;
        final String name;
        final long arrivalMs;
        long tasks;
        long tasksFinished;
        long running;
        Long startedMs;
        Long finishedMs;

        Job(int id, String name, long arrivalMs) {
            this.id = id;
            this.name = name;
            this.arrivalMs = arrivalMs;
        }
    }

    private final long run;
    private final String application;
    private final String policy;
    private final Map<String, Job> jobs = latest();
    private final Map<Integer, Job> byStage = latest();
    private int next;
    private boolean changed;
    private long slots;

    /** @param run tells this application from others */
    Board(long run, String application, String policy) {
        this.run = run;
        this.application = application.substring(0, Math.min(application.length(), MAX_NAME));
        this.policy = policy;
    }

    private static <K, V> Map<K, V> latest() {
        return new LinkedHashMap<>() {
            private static final long serialVersionUID = 1;

            @Override
            protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
                return size() > MOST;
            }
        };
    }

    /** What a job of Spark is called: by its query, if it has one. */
    static String name(int job, String query) {
        return query == null ? "job-" + job : "query-" + query;
    }

    /** A job of Spark starts, with these stages. */
    synchronized void starts(String name, Iterable<Integer> stages, long ms) {
        Job job = jobs.computeIfAbsent(name, n -> new Job(next++, n, ms));
        for (int stage : stages) byStage.put(stage, job);
        changed = true;
    }

    /** A job or query has ended. */
    synchronized void ends(String name, long ms) {
        Job job = jobs.get(name);
        if (job == null) return;
        job.finishedMs = ms;
        changed = true;
    }

    /** A stage has so many tasks to run. */
    synchronized void stage(int stage, int tasks) {
        Job job = byStage.get(stage);
        if (job != null) job.tasks += tasks;
    }

    /** A task of a stage has got a slot. */
    synchronized void taskStarts(int stage, long ms) {
        Job job = byStage.get(stage);
        if (job == null) return;
        job.running++;
        if (job.startedMs == null) job.startedMs = ms;
        changed = true;
    }

    /** A task of a stage has given its slot back. */
    synchronized void taskEnds(int stage, boolean succeeded) {
        Job job = byStage.get(stage);
        if (job == null) return;
        job.running = Math.max(0, job.running - 1);
        // A copy of a slow task may succeed, too.
        if (succeeded) job.tasksFinished = Math.min(job.tasks, job.tasksFinished + 1);
        changed = true;
    }

    /** What is to be told; null if nothing has changed since the last call. When executors have gone, there are as many slots as before. */
    synchronized Map<String, Object> report(long nowMs, long slotsNow) {
        if (!changed) return null;
        changed = false;
        if (slotsNow > 0) slots = slotsNow;
        List<Object> all = new ArrayList<>();
        for (Job j : jobs.values()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("id", j.id);
            one.put("name", j.name);
            one.put("queue", 0);
            one.put("tasks", j.tasks);
            one.put("tasks_finished", j.tasksFinished);
            // Which tasks wait for their shuffle is not known before they have ended.
            one.put("computing", j.running);
            one.put("waiting", 0);
            one.put("arrival_ns", ns(j.arrivalMs));
            one.put("started_ns", ns(j.startedMs));
            one.put("finished_ns", ns(j.finishedMs));
            all.add(one);
        }
        return Map.of("run", run, "now_ns", ns(nowMs), "workload", application, "policy", policy, "slots", slots, "jobs", all);
    }

    private static Long ns(Long ms) {
        return ms == null ? null : ms * 1_000_000;
    }
}
