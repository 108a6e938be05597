package heliostat.spark;

import java.util.function.ToIntFunction;
import org.apache.spark.scheduler.HealthTracker;
import org.apache.spark.scheduler.TaskLocality;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.scheduler.TaskSetExcludelist;
import org.apache.spark.scheduler.TaskSetManager;
import org.apache.spark.util.SystemClock;
import scala.Enumeration;
import scala.Option;
import scala.Tuple3;

/** The tasks of a stage, each of which starts in the rack that the controller said. Speculative copies run anywhere. */
final class PlacedTaskSet extends TaskSetManager {
    private final Placement placement;
    private final ToIntFunction<String> rackOf;

    PlacedTaskSet(
            TaskSchedulerImpl scheduler,
            TaskSet set,
            int maxFailures,
            Option<HealthTracker> health,
            Placement placement,
            ToIntFunction<String> rackOf) {
        super(scheduler, set, maxFailures, health, new SystemClock());
        this.placement = placement;
        this.rackOf = rackOf;
    }

    /** Spark's own lists of waiting tasks leave out those that run, so what is taken here needs no mark there. */
    @Override
    public Option<Tuple3<Object, Enumeration.Value, Object>> dequeueTaskHelper(
            String executor, String host, Enumeration.Value locality, boolean speculative) {
        if (speculative) return super.dequeueTaskHelper(executor, host, locality, true);
        int task = placement.start(rackOf.applyAsInt(host), t -> waits(t, executor, host), Clock.ms());
        return task < 0 ? Option.empty() : Option.apply(new Tuple3<>(task, TaskLocality.ANY(), false));
    }

    private boolean waits(int task, String executor, String host) {
        if (successful()[task] || copiesRunning()[task] > 0) return false;
        Option<TaskSetExcludelist> failed = taskSetExcludelistHelperOpt();
        return failed.isEmpty()
                || !failed.get().isNodeExcludedForTask(host, task) && !failed.get().isExecutorExcludedForTask(executor, task);
    }
}
