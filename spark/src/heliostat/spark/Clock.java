package heliostat.spark;

/** Time since some instant, for waits. */
final class Clock {
    private Clock() {}

    static long ms() {
        return System.nanoTime() / 1_000_000;
    }
}
