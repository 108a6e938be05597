package heliostat.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.ObjDoubleConsumer;
import org.apache.spark.scheduler.MapStatus;

/** The map output of a shuffle: bytes by host, corrected by what the map tasks wrote. */
final class Output {
    private final MapStatus[] maps;
    private final int partitions;
    /** By host: bytes of all partitions before each. */
    private final Map<String, double[]> before = new HashMap<>();
    private final Map<String, Double> factors = new HashMap<>();

    /** @param written by host: bytes that its map tasks wrote, if that is known */
    Output(MapStatus[] maps, int partitions, Map<String, Long> written) {
        this.maps = maps;
        this.partitions = partitions;
        for (MapStatus m : maps) {
            if (m == null) continue;
            double[] sums = before.computeIfAbsent(m.location().host(), h -> new double[partitions + 1]);
            for (int p = 0; p < partitions; p++) sums[p + 1] += m.getSizeForBlock(p);
        }
        before.forEach(
                (host, sums) -> {
                    Arrays.parallelPrefix(sums, Double::sum);
                    factors.put(host, Shuffle.correction(sums[partitions], written.getOrDefault(host, 0L)));
                });
    }

    /** Tells the bytes of a range by host. A host may come several times. */
    void of(Blocks.Range range, ObjDoubleConsumer<String> each) {
        int first = Math.min(range.first(), partitions);
        int end = Math.min(range.end(), partitions);
        if (range.firstMap() == 0 && range.endMap() >= maps.length) {
            before.forEach((host, sums) -> each.accept(host, (sums[end] - sums[first]) * factors.get(host)));
            return;
        }
        for (int m = range.firstMap(); m < Math.min(range.endMap(), maps.length); m++) {
            if (maps[m] == null) continue;
            double sum = 0;
            for (int p = first; p < end; p++) sum += maps[m].getSizeForBlock(p);
            String host = maps[m].location().host();
            each.accept(host, sum * factors.get(host));
        }
    }

    /** Tells all bytes by host. */
    void all(ObjDoubleConsumer<String> each) {
        before.forEach((host, sums) -> each.accept(host, sums[partitions] * factors.get(host)));
    }
}
