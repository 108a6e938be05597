package heliostat.spark;

import java.util.Map;
import java.util.TreeMap;

/** What a rack's executors can run. */
final class Slots {
    private Slots() {}

    /**
     * Tasks that each rack may be given of a stage of {@code tasks} tasks: its free slots where these suffice in all, else its
     * slots in so many waves that they do. Racks without any are left out.
     */
    static Map<Integer, Integer> offered(Map<Integer, Integer> slots, Map<Integer, Integer> busy, int tasks) {
        Map<Integer, Integer> free = new TreeMap<>();
        int all = 0;
        int slotsInAll = 0;
        for (var s : slots.entrySet()) {
            int n = Math.max(0, s.getValue() - busy.getOrDefault(s.getKey(), 0));
            if (n > 0) free.put(s.getKey(), n);
            all += n;
            slotsInAll += s.getValue();
        }
        if (all >= tasks || slotsInAll == 0) return free;
        int waves = (tasks + slotsInAll - 1) / slotsInAll;
        Map<Integer, Integer> offered = new TreeMap<>();
        slots.forEach(
                (rack, n) -> {
                    if (n > 0) offered.put(rack, n * waves);
                });
        return offered;
    }
}
