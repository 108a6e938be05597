package heliostat.spark;

import java.util.HashMap;
import java.util.Map;

/**
 * How many tasks of a stage each rack may still take. If no task has started for as long as the patience, any rack may take
 * one: a rack whose executors are lost or busy never stops a job.
 */
final class Quota {
    private final Map<Integer, Integer> left;
    private final long patienceMs;
    private long lastMs;

    /**
     * @param tasks tasks by rack
     * @param patienceMs the longest wait, in milliseconds
     * @param nowMs the time from which it counts
     */
    Quota(Map<Integer, Integer> tasks, long patienceMs, long nowMs) {
        left = new HashMap<>(tasks);
        this.patienceMs = patienceMs;
        lastMs = nowMs;
    }

    /** Whether a task may start in this rack. */
    boolean allows(int rack, long nowMs) {
        return left.getOrDefault(rack, 0) > 0 || nowMs - lastMs >= patienceMs;
    }

    /** A task starts in this rack. */
    void take(int rack, long nowMs) {
        lastMs = nowMs;
        if (left.getOrDefault(rack, 0) > 0) {
            left.merge(rack, -1, Integer::sum);
            return;
        }
        // It takes the place of one that was meant for the rack with the most left.
        left.entrySet().stream()
                .max(Map.Entry.comparingByValue())
                .filter(e -> e.getValue() > 0)
                .ifPresent(e -> e.setValue(e.getValue() - 1));
    }

    /** A task that had started in this rack must run again. */
    void giveBack(int rack) {
        left.merge(rack, 1, Integer::sum);
    }
}
