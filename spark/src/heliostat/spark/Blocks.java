package heliostat.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.Dependency;
import org.apache.spark.NarrowDependency;
import org.apache.spark.Partition;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.CoalescedMapperPartitionSpec;
import org.apache.spark.sql.execution.CoalescedPartitionSpec;
import org.apache.spark.sql.execution.PartialMapperPartitionSpec;
import org.apache.spark.sql.execution.PartialReducerPartitionSpec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.ShuffledRowRDDPartition;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Which blocks of which shuffles a task reads. Adaptive execution joins small partitions, splits large ones by map tasks, and
 * then has several tasks read the same partition of the other side of a join; so a task's number does not say it.
 */
final class Blocks {
    /** The most steps through the RDDs of a stage, all tasks together: a second, about. */
    private static final int MOST_STEPS = 1_000_000;
    /** Behind the last map task of any shuffle. */
    private static final int ALL = Integer.MAX_VALUE;

    /** The output of map tasks from {@code firstMap} until before {@code endMap} for partitions from {@code first} until before {@code end}. */
    record Range(int shuffle, int firstMap, int endMap, int first, int end) {}

    private record Place(RDD<?> rdd, int partition) {}

    private Blocks() {}

    /** What a task of a stage with this last RDD reads, for each of {@code partitions}; null if that cannot be told. */
    static List<List<Range>> read(RDD<?> rdd, int[] partitions) {
        List<List<Range>> all = new ArrayList<>();
        int steps = 0;
        for (int partition : partitions) {
            List<Range> ranges = new ArrayList<>();
            var next = new ArrayDeque<Place>();
            next.push(new Place(rdd, partition));
            while (!next.isEmpty()) {
                if (++steps > MOST_STEPS) return null;
                Place at = next.pop();
                for (Dependency<?> d : CollectionConverters.asJava(at.rdd.dependencies())) {
                    if (d instanceof ShuffleDependency<?, ?, ?> shuffle) {
                        Range range = range(shuffle.shuffleId(), at.rdd.partitions()[at.partition]);
                        if (range == null) return null;
                        ranges.add(range);
                    } else if (d instanceof NarrowDependency<?> narrow) {
                        for (Object p : CollectionConverters.asJava(narrow.getParents(at.partition))) {
                            next.push(new Place(narrow.rdd(), (Integer) p));
                        }
                    } else {
                        return null;
                    }
                }
            }
            all.add(ranges);
        }
        return all;
    }

    private static Range range(int shuffle, Partition p) {
        if (!(p instanceof ShuffledRowRDDPartition row)) return new Range(shuffle, 0, ALL, p.index(), p.index() + 1);
        ShufflePartitionSpec spec = row.spec();
        if (spec instanceof CoalescedPartitionSpec c) return new Range(shuffle, 0, ALL, c.startReducerIndex(), c.endReducerIndex());
        if (spec instanceof PartialReducerPartitionSpec c) {
            return new Range(shuffle, c.startMapIndex(), c.endMapIndex(), c.reducerIndex(), c.reducerIndex() + 1);
        }
        if (spec instanceof PartialMapperPartitionSpec c) {
            return new Range(shuffle, c.mapIndex(), c.mapIndex() + 1, c.startReducerIndex(), c.endReducerIndex());
        }
        if (spec instanceof CoalescedMapperPartitionSpec c) return new Range(shuffle, c.startMapIndex(), c.endMapIndex(), 0, c.numReducers());
        return null;
    }
}
