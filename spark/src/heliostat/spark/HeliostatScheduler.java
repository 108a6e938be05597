package heliostat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import java.util.function.ObjDoubleConsumer;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.DirectTaskResult;
import org.apache.spark.scheduler.ShuffleMapStage;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.Stage;
import org.apache.spark.scheduler.Task;
import org.apache.spark.scheduler.TaskDescription;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.scheduler.TaskSetManager;
import org.apache.spark.scheduler.WorkerOffer;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's scheduler, which tells the controller of a shuffle before the tasks that read it are offered a slot. Under {@code
 * place} it keeps to the racks that the controller says.
 */
final class HeliostatScheduler extends TaskSchedulerImpl {
    /** How many shuffles are remembered with what was written. */
    private static final int MOST_SHUFFLES = 1000;

    /** An attempt of a stage. */
    private record Key(int stage, int attempt) {}

    private final SparkContext context;
    private final Settings settings;
    private final Coflows coflows;
    private final int slotsPerExecutor;
    private final Board board;
    private final Map<Key, Coflows.Reading> readings = new ConcurrentHashMap<>();
    private final Map<Key, Placement> placements = new ConcurrentHashMap<>();
    /** By stage that writes a shuffle: which one. */
    private final Map<Integer, Integer> writes = Collections.synchronizedMap(latest());
    /** By shuffle and host: bytes that its map tasks wrote. */
    private final Map<Integer, Map<String, Long>> written = Collections.synchronizedMap(latest());

    HeliostatScheduler(SparkContext context) {
        super(context);
        this.context = context;
        settings = Settings.of(context.getConf());
        coflows = new Coflows(settings);
        int cpus = context.getConf().getInt("spark.task.cpus", 1);
        slotsPerExecutor = Math.max(1, context.getConf().getInt("spark.executor.cores", 1) / cpus);
        board = new Board(context.startTime(), context.appName(), "Spark, mode " + settings.mode().name().toLowerCase(Locale.ROOT));
        context.addSparkListener(new Listener());
        if (settings.mode() != Settings.Mode.OFF) coflows.show(() -> board.report(System.currentTimeMillis(), slotsInAll()));
    }

    private static <V> Map<Integer, V> latest() {
        return new LinkedHashMap<>() {
            private static final long serialVersionUID = 1;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Integer, V> eldest) {
                return size() > MOST_SHUFFLES;
            }
        };
    }

    @Override
    public Option<String> getRackForHost(String host) {
        int colon = host.indexOf(':');
        int rack = coflows.rackOf(colon < 0 ? host : host.substring(0, colon));
        return rack < 0 ? Option.empty() : Option.apply("r" + rack);
    }

    /** Called by the thread of the DAG scheduler: all map outputs are registered, and no task of the stage has a slot yet. */
    @Override
    public void submitTasks(TaskSet set) {
        try {
            begin(set);
        } catch (RuntimeException e) {
            log().warn("stage {} is not followed: {}", set.stageId(), String.valueOf(e));
        }
        super.submitTasks(set);
    }

    private void begin(TaskSet set) {
        Option<Stage> stage = dagScheduler().stageIdToStage().get(set.stageId());
        if (stage.isEmpty()) return;
        if (stage.get() instanceof ShuffleMapStage maps) {
            int shuffle = maps.shuffleDep().shuffleId();
            writes.put(set.stageId(), shuffle);
            // All of it is written again.
            if (set.tasks().length == maps.numPartitions()) written.remove(shuffle);
        }
        if (stage.get().parents().isEmpty() || coflows.rackCount() == 0) return;
        Shuffle shuffle = reads(set, stage.get());
        if (shuffle.bytes() == 0) return;
        Key key = new Key(set.stageId(), set.stageAttemptId());
        var reading = new Coflows.Reading(context.appName(), key.stage, key.attempt, shuffles(stage.get()), shuffle);
        readings.put(key, reading);
        coflows.begins(reading);
        if (settings.mode() != Settings.Mode.PLACE) return;
        int[] placed = coflows.place(reading, Slots.offered(slots(), busy(), shuffle.tasks()));
        if (placed.length > 0) placements.put(key, new Placement(placed, settings.patienceMs(), Clock.ms()));
    }

    private static List<Integer> shuffles(Stage stage) {
        List<Integer> ids = new ArrayList<>();
        for (Stage parent : CollectionConverters.asJava(stage.parents())) {
            if (parent instanceof ShuffleMapStage maps) ids.add(maps.shuffleDep().shuffleId());
        }
        Collections.sort(ids);
        return ids;
    }

    /** What the tasks of a set read of the shuffles before their stage. */
    private Shuffle reads(TaskSet set, Stage stage) {
        int tasks = set.tasks().length;
        Shuffle shuffle = new Shuffle(coflows.rackCount(), tasks);
        int[] partitions = Arrays.stream(set.tasks()).mapToInt(Task::partitionId).toArray();
        List<List<Blocks.Range>> byTask = Blocks.read(stage.rdd(), partitions);
        for (Stage parent : CollectionConverters.asJava(stage.parents())) {
            if (!(parent instanceof ShuffleMapStage maps)) continue;
            int id = maps.shuffleDep().shuffleId();
            Option<ShuffleStatus> status = mapOutputTracker().shuffleStatuses().get(id);
            if (status.isEmpty()) continue;
            int count = maps.shuffleDep().partitioner().numPartitions();
            Output output = new Output(status.get().mapStatuses(), count, written.getOrDefault(id, Map.of()));
            if (byTask == null) {
                double part = (double) tasks / stage.numPartitions();
                output.all(in((rack, bytes) -> shuffle.addEvenly(rack, bytes * part)));
                continue;
            }
            for (int t = 0; t < tasks; t++) {
                int task = t;
                for (Blocks.Range r : byTask.get(t)) {
                    if (r.shuffle() == id) output.of(r, in((rack, bytes) -> shuffle.add(rack, task, bytes)));
                }
            }
        }
        return shuffle;
    }

    /** Bytes of a host as those of its rack; those of hosts that the network does not know are left out. */
    private ObjDoubleConsumer<String> in(BiConsumer<Integer, Double> rack) {
        return (host, bytes) -> {
            int known = coflows.rackOf(host);
            if (known >= 0) rack.accept(known, bytes);
        };
    }

    private synchronized Map<Integer, Integer> slots() {
        Map<Integer, Integer> slots = new TreeMap<>();
        for (String host : CollectionConverters.asJava(executorIdToHost()).values()) {
            int rack = coflows.rackOf(host);
            if (rack >= 0) slots.merge(rack, slotsPerExecutor, Integer::sum);
        }
        return slots;
    }

    private int slotsInAll() {
        return slots().values().stream().mapToInt(Integer::intValue).sum();
    }

    private synchronized Map<Integer, Integer> busy() {
        Map<Integer, Integer> busy = new TreeMap<>();
        var hosts = CollectionConverters.asJava(executorIdToHost());
        CollectionConverters.asJava(runningTasksByExecutors())
                .forEach(
                        (executor, tasks) -> {
                            int rack = hosts.containsKey(executor) ? coflows.rackOf(hosts.get(executor)) : -1;
                            if (rack >= 0) busy.merge(rack, (Integer) tasks, Integer::sum);
                        });
        return busy;
    }

    @Override
    public TaskSetManager createTaskSetManager(TaskSet set, int maxFailures) {
        Placement placement = placements.get(new Key(set.stageId(), set.stageAttemptId()));
        if (placement == null) return super.createTaskSetManager(set, maxFailures);
        return new PlacedTaskSet(this, set, maxFailures, healthTrackerOpt(), placement, coflows::rackOf);
    }

    /** The tasks that this returns are sent to their executors afterwards. */
    @Override
    public synchronized Seq<Seq<TaskDescription>> resourceOffers(IndexedSeq<WorkerOffer> offers, boolean allFree) {
        Seq<Seq<TaskDescription>> launched = super.resourceOffers(offers, allFree);
        if (readings.isEmpty()) return launched;
        try {
            var hosts = CollectionConverters.asJava(executorIdToHost());
            Map<Coflows.Reading, Map<Integer, String>> starts = new HashMap<>();
            for (Seq<TaskDescription> some : CollectionConverters.asJava(launched)) {
                for (TaskDescription task : CollectionConverters.asJava(some)) {
                    TaskSetManager of = taskIdToTaskSetManager().get(task.taskId());
                    var reading = readings.get(new Key(of.taskSet().stageId(), of.taskSet().stageAttemptId()));
                    if (reading == null) continue;
                    starts.computeIfAbsent(reading, r -> new HashMap<>()).put(task.index(), hosts.get(task.executorId()));
                }
            }
            starts.forEach((reading, tasks) -> coflows.starts(reading, tasks, slots()));
        } catch (RuntimeException e) {
            log().warn("tasks that start are not followed: {}", String.valueOf(e));
        }
        return launched;
    }

    /** Called before the stage's end is known to the DAG scheduler, so that {@link #reads} has the exact sums. */
    @Override
    public synchronized void handleSuccessfulTask(TaskSetManager set, long id, DirectTaskResult<?> result) {
        Integer shuffle = writes.get(set.taskSet().stageId());
        Option<TaskInfo> info = set.taskInfos().get(id);
        if (shuffle != null && info.isDefined()) {
            long bytes = TaskMetrics.fromAccumulators(result.accumUpdates()).shuffleWriteMetrics().bytesWritten();
            written.computeIfAbsent(shuffle, s -> new ConcurrentHashMap<>()).merge(info.get().host(), bytes, Long::sum);
        }
        super.handleSuccessfulTask(set, id, result);
    }

    @Override
    public void stop(int exitCode) {
        super.stop(exitCode);
        coflows.close();
    }

    /** Ends coflows, and follows jobs; called by the thread of Spark's events. */
    private final class Listener extends SparkListener {
        private final Map<Integer, SparkListenerJobStart> jobs = new HashMap<>();

        @Override
        public void onStageSubmitted(SparkListenerStageSubmitted e) {
            board.stage(e.stageInfo().stageId(), e.stageInfo().numTasks());
        }

        @Override
        public void onTaskStart(SparkListenerTaskStart e) {
            board.taskStarts(e.stageId(), e.taskInfo().launchTime());
        }

        @Override
        public void onTaskEnd(SparkListenerTaskEnd e) {
            board.taskEnds(e.stageId(), e.taskInfo().successful());
            var reading = readings.get(new Key(e.stageId(), e.stageAttemptId()));
            if (reading != null && e.taskMetrics() != null) {
                coflows.read(reading, e.taskMetrics().shuffleReadMetrics().remoteBytesRead());
            }
        }

        @Override
        public void onStageCompleted(SparkListenerStageCompleted e) {
            Key key = new Key(e.stageInfo().stageId(), e.stageInfo().attemptNumber());
            placements.remove(key);
            var reading = readings.remove(key);
            if (reading != null) coflows.ends(reading);
        }

        @Override
        public void onJobStart(SparkListenerJobStart e) {
            jobs.put(e.jobId(), e);
            List<Integer> stages = new ArrayList<>();
            CollectionConverters.asJava(e.stageIds()).forEach(id -> stages.add((Integer) id));
            board.starts(Board.name(e.jobId(), query(e)), stages, e.time());
        }

        private static String query(SparkListenerJobStart e) {
            return e.properties() == null ? null : e.properties().getProperty(SQLExecution.EXECUTION_ID_KEY());
        }

        @Override
        public void onJobEnd(SparkListenerJobEnd e) {
            boolean succeeded = e.jobResult() == org.apache.spark.scheduler.JobSucceeded$.MODULE$;
            SparkListenerJobStart start = jobs.remove(e.jobId());
            if (start != null && query(start) == null) board.ends(Board.name(e.jobId(), null), e.time());
            coflows.jobEnded(e.jobId(), start == null ? e.time() : start.time(), e.time(), succeeded);
        }

        @Override
        public void onOtherEvent(SparkListenerEvent e) {
            if (e instanceof SparkListenerSQLExecutionEnd end) board.ends(Board.name(0, String.valueOf(end.executionId())), end.time());
        }
    }
}
