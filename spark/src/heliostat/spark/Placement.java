package heliostat.spark;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * In which rack each task of a stage shall start. If none has started for as long as the patience, any may start in any rack:
 * a rack whose executors are lost or busy never stops a job.
 */
final class Placement {
    private final int[] racks;
    private final long patienceMs;
    private long lastMs;

    /**
     * @param racks by task: its rack
     * @param patienceMs the longest wait, in milliseconds
     * @param nowMs the time from which it counts
     */
    Placement(int[] racks, long patienceMs, long nowMs) {
        this.racks = racks;
        this.patienceMs = patienceMs;
        lastMs = nowMs;
    }

    /** So many tasks for each rack (rack to number), the first ones for the first rack: as good as any where all read the same. */
    static int[] inOrder(Map<Integer, Integer> tasks) {
        var byRack = new TreeMap<>(tasks).entrySet().stream();
        return byRack.flatMapToInt(e -> IntStream.generate(e::getKey).limit(e.getValue())).toArray();
    }

    /**
     * A task that may start in this rack now, of those that wait; its own tasks first.
     *
     * @return its number, or -1
     */
    int start(int rack, IntPredicate waits, long nowMs) {
        int found = IntStream.range(0, racks.length).filter(t -> racks[t] == rack && waits.test(t)).findFirst().orElse(-1);
        if (found < 0 && nowMs - lastMs >= patienceMs) {
            found = IntStream.range(0, racks.length).filter(waits).findFirst().orElse(-1);
        }
        if (found >= 0) lastMs = nowMs;
        return found;
    }
}
