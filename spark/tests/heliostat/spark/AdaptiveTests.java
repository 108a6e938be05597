package heliostat.spark;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** What {@link Blocks} and {@link Output} say of a task's bytes, against what Spark counts, where adaptive execution chose who reads what. */
final class AdaptiveTests implements AutoCloseable {
    /** Spark's sizes of blocks are a power of 1.1, the next above the truth. */
    private static final double COARSE = 1.1;

    private final SparkSession session;
    /** By stage and task: bytes of shuffles that it read, as Spark counted them. */
    private final Map<Integer, Map<Integer, Long>> counted = Collections.synchronizedMap(new TreeMap<>());

    AdaptiveTests() {
        session =
                SparkSession.builder()
                        .master("local[2]")
                        .config("spark.driver.host", "127.0.0.1")
                        .config("spark.driver.bindAddress", "127.0.0.1")
                        .config("spark.ui.enabled", "false")
                        .config("spark.log.level", "ERROR")
                        .config("spark.sql.shuffle.partitions", "8")
                        .config("spark.sql.autoBroadcastJoinThreshold", "-1")
                        .config("spark.sql.adaptive.advisoryPartitionSizeInBytes", "100k")
                        .config("spark.sql.adaptive.coalescePartitions.minPartitionSize", "10k")
                        .config("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "200k")
                        .config("spark.sql.adaptive.skewJoin.skewedPartitionFactor", "2")
                        .getOrCreate();
        session.sparkContext()
                .addSparkListener(
                        new SparkListener() {
                            @Override
                            public void onTaskEnd(SparkListenerTaskEnd e) {
                                var read = e.taskMetrics().shuffleReadMetrics();
                                counted.computeIfAbsent(e.stageId(), s -> Collections.synchronizedMap(new TreeMap<>()))
                                        .put(e.taskInfo().index(), read.localBytesRead() + read.remoteBytesRead());
                            }
                        });
    }

    /** A join of which one side has a key that half of its rows share. */
    private Dataset<Row> join() {
        Dataset<Row> left = session.range(0, 60_000, 1, 4).selectExpr("if(id < 30000, 7, id) key", "xxhash64(id) a", "xxhash64(id, 1) b");
        Dataset<Row> right = session.range(0, 60_000, 1, 3).selectExpr("id key", "xxhash64(id, 2) c");
        return left.join(right, "key");
    }

    /** Every task reads what is said of it; some task reads a range of this kind. */
    private void reads(Predicate<Blocks.Range> some) throws Exception {
        counted.clear();
        Dataset<Row> rows = join();
        Tests.same(rows.collectAsList().size(), 60_000);
        RDD<?> rdd = ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().toRdd();
        int tasks = rdd.getNumPartitions();
        // All have ended; Spark tells its listeners a moment later.
        for (long end = System.nanoTime() + 60_000_000_000L; last().size() < tasks && System.nanoTime() < end; ) Thread.onSpinWait();
        Map<Integer, Long> spark = last();
        Tests.same(spark.size(), tasks);
        List<List<Blocks.Range>> byTask = Blocks.read(rdd, IntStream.range(0, tasks).toArray());
        var tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
        for (int t = 0; t < tasks; t++) {
            double[] said = {0};
            for (Blocks.Range r : byTask.get(t)) {
                MapStatus[] maps = tracker.shuffleStatuses().get(r.shuffle()).get().mapStatuses();
                new Output(maps, 8, Map.of()).of(r, (host, bytes) -> said[0] += bytes);
            }
            long read = spark.get(t);
            if (said[0] < read || said[0] > read * COARSE + 1) throw new AssertionError("task " + t + " read " + read + ", said " + said[0]);
        }
        Tests.same(byTask.stream().flatMap(List::stream).anyMatch(some), true);
    }

    /** Of the last stage. */
    private Map<Integer, Long> last() {
        return counted.entrySet().stream().reduce((a, b) -> b).map(Map.Entry::getValue).orElse(Map.of());
    }

    static void run() throws Exception {
        try (AdaptiveTests t = new AdaptiveTests()) {
            // A large partition is split by map tasks.
            t.reads(r -> r.firstMap() > 0 && r.end() == r.first() + 1);
            // Small ones are joined.
            t.session.conf().set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "600k");
            t.reads(r -> r.firstMap() == 0 && r.endMap() > 4 && r.end() - r.first() > 1);
            // The join becomes one by broadcast, and each task of the other side reads what one map task wrote, or a part of it.
            t.session.conf().set("spark.sql.adaptive.autoBroadcastJoinThreshold", "100MB");
            t.reads(r -> r.endMap() == r.firstMap() + 1);
            // Nothing is joined or split.
            t.session.conf().set("spark.sql.adaptive.enabled", "false");
            t.reads(r -> r.end() == r.first() + 1);
        }
    }

    @Override
    public void close() {
        session.stop();
    }
}
