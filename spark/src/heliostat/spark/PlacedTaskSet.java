package heliostat.spark;

import java.util.function.ToIntFunction;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.scheduler.HealthTracker;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.scheduler.TaskSetManager;
import org.apache.spark.util.SystemClock;
import scala.Enumeration;
import scala.Option;
import scala.Tuple3;

/** The tasks of a stage, of which each rack takes as many as the controller said. Speculative copies run anywhere. */
final class PlacedTaskSet extends TaskSetManager {
    private final Quota quota;
    private final ToIntFunction<String> rackOf;

    PlacedTaskSet(
            TaskSchedulerImpl scheduler,
            TaskSet set,
            int maxFailures,
            Option<HealthTracker> health,
            Quota quota,
            ToIntFunction<String> rackOf) {
        super(scheduler, set, maxFailures, health, new SystemClock());
        this.quota = quota;
        this.rackOf = rackOf;
    }

    @Override
    public Option<Tuple3<Object, Enumeration.Value, Object>> dequeueTaskHelper(
            String executor, String host, Enumeration.Value locality, boolean speculative) {
        if (speculative) return super.dequeueTaskHelper(executor, host, locality, true);
        int rack = rackOf.applyAsInt(host);
        if (!quota.allows(rack, Clock.ms())) return Option.empty();
        var task = super.dequeueTaskHelper(executor, host, locality, false);
        if (task.isDefined()) quota.take(rack, Clock.ms());
        return task;
    }

    @Override
    public void handleFailedTask(long id, Enumeration.Value state, TaskFailedReason reason) {
        Option<TaskInfo> info = taskInfos().get(id);
        // A task may be said to have failed more than once: by its executor, and when that is lost.
        if (info.isDefined() && info.get().running() && !info.get().speculative()) {
            quota.giveBack(rackOf.applyAsInt(info.get().host()));
        }
        super.handleFailedTask(id, state, reason);
    }
}
