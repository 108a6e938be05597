package heliostat.spark;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.ExternalClusterManager;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.TaskScheduler;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend;

/**
 * Master URLs: {@code spark-heliostat://HOST:PORT} is a standalone cluster, {@code spark-heliostat} runs executors in the hosts
 * of an emulated network without a cluster. Both ask the controller about shuffles.
 */
public final class HeliostatClusterManager implements ExternalClusterManager {
    private static final String DIRECT = "spark-heliostat";
    private static final String STANDALONE = "spark-heliostat://";

    @Override
    public boolean canCreate(String master) {
        return master.equals(DIRECT) || master.startsWith(STANDALONE);
    }

    @Override
    public TaskScheduler createTaskScheduler(SparkContext context, String master) {
        return new HeliostatScheduler(context);
    }

    @Override
    public SchedulerBackend createSchedulerBackend(SparkContext context, String master, TaskScheduler scheduler) {
        TaskSchedulerImpl tasks = (TaskSchedulerImpl) scheduler;
        if (master.equals(DIRECT)) return new DirectBackend(tasks, context);
        String[] masters = master.substring(STANDALONE.length()).split(",");
        for (int i = 0; i < masters.length; i++) masters[i] = "spark://" + masters[i];
        return new StandaloneSchedulerBackend(tasks, context, masters);
    }

    @Override
    public void initialize(TaskScheduler scheduler, SchedulerBackend backend) {
        ((TaskSchedulerImpl) scheduler).initialize(backend);
    }
}
