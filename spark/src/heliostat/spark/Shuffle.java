package heliostat.spark;

import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/**
 * What the tasks of a stage will read: bytes by the host that holds them and by task of the stage. Bytes on hosts that the
 * network does not know are left out.
 */
final class Shuffle {
    /** A pair of racks. */
    record Pair(int from, int to) implements Comparable<Pair> {
        @Override
        public int compareTo(Pair o) {
            return from != o.from ? Integer.compare(from, o.from) : Integer.compare(to, o.to);
        }
    }

    /** How much larger than the truth Spark's sizes may be: they are one byte each, a power of 1.1. */
    private static final double COARSE = 1.1;

    private final double[][] byRack;

    /** Nothing, for so many racks and tasks. */
    Shuffle(int racks, int tasks) {
        byRack = new double[racks][tasks];
    }

    int tasks() {
        return byRack.length == 0 ? 0 : byRack[0].length;
    }

    /** Notes bytes in a rack that task {@code task} will read. */
    void add(int rack, int task, double bytes) {
        byRack[rack][task] += bytes;
    }

    /** Notes bytes in a rack of which every task will read the same. */
    void addEvenly(int rack, double bytes) {
        double[] row = byRack[rack];
        for (int t = 0; t < row.length; t++) row[t] += bytes / row.length;
    }

    /**
     * What Spark's rounded sizes must be multiplied by, so that their sum is what the map tasks wrote; 1 where the two are too
     * far from each other to be of the same outputs, as after lost outputs.
     */
    static double correction(double rounded, double written) {
        boolean same = rounded > 0 && written <= rounded && written * COARSE >= rounded;
        return same ? written / rounded : 1;
    }

    /** By rack that holds any: whole bytes by task. */
    Map<Integer, long[]> maps() {
        Map<Integer, long[]> maps = new TreeMap<>();
        for (int r = 0; r < byRack.length; r++) {
            long[] row = Arrays.stream(byRack[r]).mapToLong(Math::round).toArray();
            if (Arrays.stream(row).sum() > 0) maps.put(r, row);
        }
        return maps;
    }

    /** All bytes. */
    long bytes() {
        return maps().values().stream().flatMapToLong(Arrays::stream).sum();
    }

    /**
     * Bytes between racks, above zero, when tasks run where {@code ranIn} says (task to rack). Tasks that are not in it are
     * spread like {@code slots} (rack to number).
     */
    Map<Pair, Long> pairs(Map<Integer, Integer> ranIn, Map<Integer, Integer> slots) {
        double all = slots.values().stream().mapToInt(Integer::intValue).sum();
        Map<Pair, Double> sums = new TreeMap<>();
        for (int from = 0; from < byRack.length; from++) {
            for (int task = 0; task < byRack[from].length; task++) {
                double bytes = byRack[from][task];
                Integer to = ranIn.get(task);
                if (to != null) {
                    sums.merge(new Pair(from, to), bytes, Double::sum);
                } else {
                    for (var slot : slots.entrySet()) {
                        sums.merge(new Pair(from, slot.getKey()), bytes * slot.getValue() / all, Double::sum);
                    }
                }
            }
        }
        Map<Pair, Long> pairs = new TreeMap<>();
        sums.forEach(
                (pair, bytes) -> {
                    if (pair.from() != pair.to() && Math.round(bytes) > 0) pairs.put(pair, Math.round(bytes));
                });
        return pairs;
    }
}
