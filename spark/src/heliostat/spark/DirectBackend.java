package heliostat.spark;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import org.apache.spark.util.Utils;

/** Executors without a cluster: one process in each host of an emulated network, started by {@code heliostat exec}. */
final class DirectBackend extends CoarseGrainedSchedulerBackend {
    /** How long executors may take to end by themselves, in milliseconds. */
    private static final long END_MS = 5_000;

    private final SparkContext context;
    private final String application = "heliostat-" + UUID.randomUUID();
    private final String[] hosts;
    private final List<Process> executors = new CopyOnWriteArrayList<>();

    DirectBackend(TaskSchedulerImpl scheduler, SparkContext context) {
        super(scheduler, context.env().rpcEnv());
        this.context = context;
        hosts = context.getConf().get("spark.heliostat.hosts").split(",");
    }

    @Override
    public String applicationId() {
        return application;
    }

    @Override
    public boolean sufficientResourcesRegistered() {
        return totalRegisteredExecutors().get() >= hosts.length * minRegisteredRatio();
    }

    @Override
    public void start() {
        super.start();
        // When a signal ends the driver, its network may be gone, by which executors would learn of it.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> executors.forEach(Process::destroy)));
        try {
            for (int i = 0; i < hosts.length; i++) executors.add(start(hosts[i], i));
        } catch (IOException e) {
            executors.forEach(Process::destroy);
            throw new IllegalStateException("start executors: " + e.getMessage(), e);
        }
    }

    private Process start(String host, int id) throws IOException {
        SparkConf conf = context.getConf();
        var driver = context.env().rpcEnv().address();
        List<String> command =
                new ArrayList<>(
                        List.of(
                                conf.get("spark.heliostat.program"),
                                "exec",
                                "--name",
                                conf.get("spark.heliostat.network"),
                                host,
                                "--",
                                System.getProperty("java.home") + "/bin/java",
                                "-Xmx" + conf.get("spark.executor.memory", "1g")));
        // What the driver's own process was started with: the modules that Spark opens, by this version of Spark.
        for (String option : java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (option.startsWith("--add-opens") || option.startsWith("--add-modules")) command.add(option);
        }
        for (String name : List.of("spark.executor.defaultJavaOptions", "spark.executor.extraJavaOptions")) {
            String options = conf.get(name, "");
            if (!options.isBlank()) {
                Utils.splitCommandString(options).foreach(command::add);
            }
        }
        command.addAll(
                List.of(
                        "-cp",
                        System.getProperty("java.class.path"),
                        "org.apache.spark.executor.CoarseGrainedExecutorBackend",
                        "--driver-url",
                        "spark://CoarseGrainedScheduler@" + driver.host() + ":" + driver.port(),
                        "--executor-id",
                        String.valueOf(id),
                        "--hostname",
                        host,
                        "--bind-address",
                        host,
                        "--cores",
                        conf.get("spark.executor.cores", "1"),
                        "--app-id",
                        application,
                        "--resourceProfileId",
                        "0"));
        ProcessBuilder process = new ProcessBuilder(command).redirectErrorStream(true);
        process.redirectOutput(new File(conf.get("spark.heliostat.logs"), "executor-" + host + ".log"));
        process.environment().put("SPARK_LOCAL_IP", host);
        process.environment().put("SPARK_LOCAL_HOSTNAME", host);
        return process.start();
    }

    @Override
    public void stop() {
        super.stop();
        long until = Clock.ms() + END_MS;
        try {
            for (Process p : executors) {
                if (!p.waitFor(Math.max(0, until - Clock.ms()), TimeUnit.MILLISECONDS)) p.destroy();
            }
        } catch (InterruptedException e) {
            executors.forEach(Process::destroy);
            Thread.currentThread().interrupt();
        }
    }
}
